// What the kernel and the processor let a profiler do, found out by trying.
#pragma once

#include <string>

namespace revisit::record {

// What REVISIT_PRETEND says that the kernel refuses, for tests: "watchpoints", or "events" for all.
bool pretends_no(const char* what);

struct Probe {
    bool works = false;
    std::string detail;
};

// How many hardware watchpoints a thread can hold at once.
Probe probe_watchpoints();
// Whether a timer of processor time can be opened, which takes samples.
Probe probe_clock();
// Whether hardware counters can be opened at all (a virtual machine often has none).
Probe probe_counters();

}  // namespace revisit::record
