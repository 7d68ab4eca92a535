#include "watch/pmu.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "watch/preload/pmu_event.h"

namespace revisit::watch {
namespace {

constexpr const char* kDevices = "/sys/bus/event_source/devices/";

std::uint64_t number(const std::string& text) {
    std::uint64_t value = 0;
    bool is_hexadecimal = text.starts_with("0x");
    std::from_chars(text.data() + (is_hexadecimal ? 2 : 0), text.data() + text.size(), value,
                    is_hexadecimal ? 16 : 10);
    return value;
}

// "event=0xcd,umask=0x1,ldlat=3", as sysfs describes an event.
PmuEvent described(std::uint64_t type, const std::string& text) {
    PmuEvent event{type, 0, 0, 0};
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = std::min(text.find(',', at), text.size()), equals = text.find('=', at);
        if (equals < end) {
            std::string name = text.substr(at, equals - at);
            std::uint64_t value = number(text.substr(equals + 1, end - equals - 1));
            if (name == "event") event.config |= (value & 0xff) | (value >> 8 & 0xf) << 32;
            if (name == "umask") event.config |= value << 8;
            if (name == "ldlat") event.config1 = value;
        }
        at = end + 1;
    }
    return event;
}

struct Candidate {
    std::string name, missing;  // why it cannot even be tried
    std::vector<PmuSettings> variants;
};

PmuSettings of_pair(const PmuEvent& loads, const PmuEvent& stores, bool counts) {
    PmuSettings settings;
    settings.events = stores.config != 0 ? 2 : 1;
    settings.event[0] = loads;
    settings.event[1] = stores;
    settings.precise = 2;
    settings.tells_address = 1;
    settings.counts = counts;
    return settings;
}

Candidate intel(const PerfSystem& system) {
    Candidate out{"Intel PEBS", "the processor is another", {}};
    if (system.read("/proc/cpuinfo").find("GenuineIntel") == std::string::npos) return out;
    out.missing = "the kernel shows no counters";
    for (const char* device : {"cpu_core", "cpu"}) {
        std::string at = std::string(kDevices) + device + "/", type = system.read(at + "type");
        if (type.empty()) continue;
        out.missing.clear();
        std::uint64_t pmu = number(type);
        out.variants.push_back(of_pair({pmu, 0x81d0, 0, 0}, {pmu, 0x82d0, 0, 0}, true));
        std::string loads = system.read(at + "events/mem-loads"),
                    stores = system.read(at + "events/mem-stores"),
                    leader = system.read(at + "events/mem-loads-aux");
        if (loads.empty()) continue;
        PmuSettings by_latency =
            of_pair(described(pmu, loads), stores.empty() ? PmuEvent{} : described(pmu, stores), false);
        if (!leader.empty()) by_latency.leader = described(pmu, leader);
        out.variants.push_back(by_latency);
    }
    return out;
}

Candidate amd(const PerfSystem& system) {
    Candidate out{"AMD IBS", "the kernel shows no ibs_op", {}};
    std::string at = std::string(kDevices) + "ibs_op/", type = system.read(at + "type");
    if (type.empty()) return out;
    out.missing.clear();
    PmuSettings settings;
    settings.events = 1;
    constexpr std::uint64_t kCountOperations = 1u << 19;
    settings.event[0] = {number(type), kCountOperations, 0, 0};
    settings.tells_address = 1;
    settings.raw = 1;
    settings.counter = {PERF_TYPE_RAW, 0x0729, 0, 0};
    out.variants.push_back(settings);
    if (!system.read(at + "format/swfilt").empty()) {  // lets the kernel leave its own samples out
        settings.event[0].config2 = 1;
        out.variants.push_back(settings);
    }
    return out;
}

Candidate arm(const PerfSystem& system) {
    Candidate out{"Arm MEM_ACCESS", "the kernel shows no counters", {}};
    for (const std::string& device : system.list(kDevices)) {
        if (!device.starts_with("armv8") && !device.starts_with("armv9")) continue;
        std::string type = system.read(kDevices + device + "/type");
        if (type.empty()) continue;
        out.missing.clear();
        PmuSettings settings;
        settings.events = 1;
        settings.event[0] = {number(type), 0x13, 0, 0};
        settings.counts = 1;
        out.variants.push_back(settings);
    }
    return out;
}

class Trial {
 public:
    Trial(PerfSystem& system, const PmuSettings& settings) : system_(system), settings_(settings) {}
    ~Trial() {
        for (int event : open_) system_.close(event);
    }

    // Why it does not work; empty if it does.
    std::string run() {
        constexpr std::uint64_t kPeriod = 1008;
        if (std::string why = open_all(kPeriod, true); !why.empty()) return why;
        for (int event : open_) system_.close(event);
        open_.clear();
        if (std::string why = open_all(kPeriod, false); !why.empty()) return why;
        PerfRing ring = system_.ring(open_[first_], settings_.raw != 0);
        system_.touch(open_);
        if (settings_.counts && system_.count(open_[first_]) < PerfSystem::kTouches / 4)
            return "it opens, but does not count";
        PmuSample sample;
        if (settings_.tells_address && (!ring.newest(sample) || !system_.is_ours(sample.address)))
            return "it opens, but tells no address of a test loop";
        return {};
    }

 private:
    std::string open_all(std::uint64_t period, bool signals) {
        first_ = 0;
        int group = -1;
        auto open = [&](perf_event_attr attributes, bool is_sampler) -> std::string {
            if (is_sampler && signals) attributes.sigtrap = attributes.remove_on_exec = 1;
            int event = system_.open(attributes, group);
            if (event < 0) return fmt::format("the kernel refuses it ({})", std::strerror(-event));
            open_.push_back(event);
            return {};
        };
        if (settings_.leader.config) {
            if (std::string why = open(pmu_attributes(settings_.leader, settings_, 0), false);
                !why.empty())
                return why;
            group = open_[0];
            first_ = 1;
        }
        for (std::uint64_t i = 0; i < settings_.events; i++)
            if (std::string why = open(pmu_attributes(settings_.event[i], settings_, period), true);
                !why.empty())
                return why;
        return {};
    }

    PerfSystem& system_;
    const PmuSettings& settings_;
    std::vector<int> open_;
    std::size_t first_ = 0;
};

class ThisSystem : public PerfSystem {
 public:
    ~ThisSystem() override {
        for (auto [event, map] : maps_) munmap(map, 2 * page_);
    }
    std::string read(const std::string& path) const override {
        std::ifstream file(path);
        std::string text(4096, '\0');
        file.read(text.data(), static_cast<std::streamsize>(text.size()));
        text.resize(static_cast<std::size_t>(file.gcount()));
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }
    std::vector<std::string> list(const std::string& directory) const override {
        std::vector<std::string> names;
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
            names.push_back(entry.path().filename());
        std::ranges::sort(names);
        return names;
    }
    int open(const perf_event_attr& attributes, int group) override {
        long file = syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
        return static_cast<int>(file < 0 ? -errno : file);
    }
    void close(int event) override {
        if (auto map = maps_.find(event); map != maps_.end()) {
            munmap(map->second, 2 * page_);
            maps_.erase(map);
        }
        ::close(event);
    }
    void touch(const std::vector<int>& events) override {
        memory_.resize(1 << 14);
        for (int event : events) ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
        for (std::uint64_t i = 0; i < kTouches / 2; i++) {
            volatile std::uint64_t& word = memory_[i * 7 & (memory_.size() - 1)];
            word = word + 1;
        }
        for (int event : events) ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    }
    bool is_ours(std::uint64_t address) const override {
        // The loop's own variables lie on the stack, near.
        auto near = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
        return address - reinterpret_cast<std::uint64_t>(memory_.data()) < memory_.size() * 8 ||
               address - near + (1 << 16) < (1 << 17);
    }
    std::uint64_t count(int event) override {
        std::uint64_t value = 0;
        return ::read(event, &value, sizeof value) == sizeof value ? value : 0;
    }
    PerfRing ring(int event, bool has_raw) override {
        void* map = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        if (map == MAP_FAILED) return {};
        maps_[event] = map;
        return {static_cast<perf_event_mmap_page*>(map), static_cast<std::byte*>(map) + page_, page_,
                has_raw};
    }

 private:
    std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> memory_;
    std::map<int, void*> maps_;
};

}  // namespace

std::unique_ptr<PerfSystem> this_system() {
    return std::make_unique<ThisSystem>();
}

perf_event_attr pmu_attributes(const PmuEvent& event, const PmuSettings& settings,
                               std::uint64_t period) {
    perf_event_attr attributes;
    fill_attributes(attributes, event, settings, period);
    return attributes;
}

std::vector<SourceReport> find_sources(PerfSystem& system) {
    std::vector<SourceReport> out;
    for (Candidate& candidate : std::vector{intel(system), amd(system), arm(system)}) {
        SourceReport report{candidate.name, false, candidate.missing, {}};
        for (const PmuSettings& variant : candidate.variants) {
            report.detail = Trial(system, variant).run();
            if (!report.detail.empty()) continue;
            report.works = true;
            report.settings = variant;
            report.detail =
                fmt::format("a trial gave {}{}; not verified on hardware",
                            variant.tells_address ? "addresses" : "counts (addresses by looking ahead)",
                            variant.clock() ? ", accesses are counted" : "");
            break;
        }
        out.push_back(std::move(report));
    }
    return out;
}

}  // namespace revisit::watch
