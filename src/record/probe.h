// What the kernel and the processor let a profiler do, found out by trying.
#pragma once

#include <string>

namespace revisit::record {

struct Probe {
    bool works = false;
    std::string detail;
};

// How many hardware watchpoints a thread can hold at once.
Probe probe_watchpoints();
// Whether hardware counters can be opened at all (a virtual machine often has none).
Probe probe_counters();

}  // namespace revisit::record
