// Precise memory events of the processor, as a source of samples and as a clock of accesses.
//
// Problem. Which of them there are, how they are encoded and whether they work is different on every
// processor, and virtual machines often show events that never count. Idea. A list of candidates from
// what sysfs tells, each tried: opened as the sampler opens it, then run for a moment on a loop of
// our own, and taken only if samples with our addresses (or counts) come out. The system calls
// are behind a small interface, so that tests bring processors that are not here.
// Encodings. Intel: MEM_INST_RETIRED.ALL_LOADS and ALL_STORES (0x81d0, 0x82d0; MEM_UOPS_RETIRED on
// older cores), precise, with data address; else mem-loads by latency, with the auxiliary leader where
// sysfs names one. AMD: ibs_op, counting operations; LS dispatch (0x0729) beside it as the clock.
// Arm: MEM_ACCESS (0x13) as timer and clock, addresses by looking ahead; statistical profiling (SPE)
// tells addresses too late for a watchpoint. Not verified on hardware.
#pragma once

#include <linux/perf_event.h>

#include <memory>
#include <string>
#include <vector>

#include "watch/perf_ring.h"
#include "watch/preload/settings.h"

namespace revisit::watch {

class PerfSystem {
 public:
    virtual ~PerfSystem() = default;
    virtual std::string read(const std::string& path) const = 0;  // a short file; empty = not there
    virtual std::vector<std::string> list(const std::string& directory) const = 0;
    // The event's number, or minus the error's.
    virtual int open(const perf_event_attr& attributes, int group) = 0;
    virtual void close(int event) = 0;
    // Lets the events count while memory that is ours is accessed `kTouches` times.
    static constexpr std::uint64_t kTouches = 1u << 20;
    virtual void touch(const std::vector<int>& events) = 0;
    virtual bool is_ours(std::uint64_t address) const = 0;
    virtual std::uint64_t count(int event) = 0;
    virtual PerfRing ring(int event, bool has_raw) = 0;
};
std::unique_ptr<PerfSystem> this_system();

struct SourceReport {
    std::string name;
    bool works = false;
    std::string detail;
    PmuSettings settings;
};

// All sources but the timer, the preferred first; `detail` says why one is not here.
std::vector<SourceReport> find_sources(PerfSystem& system);

// As the sampler opens it too.
perf_event_attr pmu_attributes(const PmuEvent& event, const PmuSettings& settings,
                               std::uint64_t period);

}  // namespace revisit::watch
