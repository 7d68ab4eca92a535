// What the analyzer tells the sampler, through the environment, and the names of the variables.
#pragma once

#include <cstdint>

namespace revisit::watch {

inline constexpr const char* kSettingsVariable = "REVISIT_WATCH";

// What the kernel may refuse, simulated: each bit is for one kind of event.
enum Refuse : std::uint64_t { kRefuseWatchpoints = 1, kRefuseEvents = 2 };

struct PmuEvent {  // as perf_event_open takes it
    std::uint64_t type = 0, config = 0, config1 = 0, config2 = 0;
};

// Precise events of the processor that take samples instead of a timer.
struct PmuSettings {
    std::uint64_t events = 0;  // so many; 0 = none
    PmuEvent event[2];         // loads and stores, or one for both
    PmuEvent leader;           // of their group, where the processor wants one; config 0 = none
    PmuEvent counter;          // of accesses, where the events do not count these; config 0 = none
    std::uint64_t precise = 0;
    std::uint64_t tells_address = 0;  // else the look-ahead finds it
    std::uint64_t counts = 0;         // whether the events' own counts are accesses
    std::uint64_t raw = 0;            // registers come along
    std::uint64_t first = 200000;     // events to the first sample, and between samples at full speed

    bool clock() const { return events != 0 && (counts != 0 || counter.config != 0); }
};

// In decimal, in this order, with commas between.
struct Settings {
    std::uint64_t period = 500000;  // nanoseconds of processor time between samples, at least
    std::uint64_t share = 40;       // thousandths of the time that sampling may take; 0 = no limit
    std::uint64_t window = 1024;    // accesses looked ahead
    std::uint64_t uses = 512;       // of these, the first so many are uses
    std::uint64_t watchpoints = 3;  // for reuses, a thread
    std::uint64_t shift = 3;        // blocks of 1 << shift bytes
    std::uint64_t budget = 8000;    // instructions a look-ahead may take
    std::uint64_t spread = 16;      // fewer than so many accesses are skipped before
    std::uint64_t rates = 3;        // one part in so many goes into how fast accesses go; 0 none
    std::uint64_t seed = 1;
    std::uint64_t check = 0;    // every so many predicted reuses a watchpoint checks; 0 never
    std::uint64_t filters = 0;  // on system calls that this process has, which the program gets too
    std::uint64_t refuse = 0;   // for tests: bits of Refuse
    PmuSettings pmu;
};
inline constexpr unsigned kSettings = sizeof(Settings) / sizeof(std::uint64_t);

}  // namespace revisit::watch
