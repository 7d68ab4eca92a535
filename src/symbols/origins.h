// Where accesses come from: the tables a recorder fills and a profile is explained with.
//
// Problem. An engine knows one number beside an access; a profile wants its instruction, its call path
// and its data object. Idea. Let that number be a label: each different (site, context, object) gets
// the next one, engines and traces call it the site, and afterwards `explain` turns a profile by labels
// into one by sites, contexts, pairs and objects, all from the same histograms. Nothing is counted
// twice, and a stored trace carries this table, so analysing it gives what profiling the program gave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "revisit/error.h"
#include "revisit/profile.h"
#include "revisit/trace.h"
#include "symbols/symbolize.h"

namespace revisit {

inline constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
// The name of a last frame that says where the innermost loop begins (stream.h, DEFINE_SITE).
inline constexpr std::string_view kLoopFrame = "*";

// An instruction: a place in a mapped file, an address outside of any, or a literal source location.
struct CodePlace {
    std::uint32_t module = kNowhere;   // index into Origins::modules
    std::uint64_t offset = 0;          // in the file; without a module, the address
    std::uint32_t literal = kNowhere;  // index into Origins::literals: known from the compiler
    bool operator==(const CodePlace&) const = default;
};

struct ContextNode {
    std::uint32_t parent = 0;  // node 0 is the root, where thread 0 begins
    std::uint32_t place = 0;   // the call, or the function entered, or where another thread begins
};

// A thread's calls hang below a node of its own, so that every label identifies its thread too.
inline constexpr std::uint32_t kThreadBegins = 0xfffe0000u;  // and the thread's number
constexpr bool begins_thread(std::uint32_t place) {
    return place >= kThreadBegins && place - kThreadBegins <= 0xffffu;
}

struct DataObject {
    std::string kind;  // "heap", "mapped", "global", "file", "stack"
    std::string name;  // empty: named by `place` (the allocating call; stack: its function)
    std::uint64_t bytes = 0;
    std::uint32_t place = kNowhere;
    std::uint32_t context = 0;
};

// Where an object lay: a heap block, a global. Of those at one address, the last.
struct Extent {
    std::uint64_t low = 0, high = 0;
    std::uint32_t object = 0;
    bool operator==(const Extent&) const = default;
};

inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

struct Label {
    std::uint32_t place = 0;
    std::uint32_t context = 0;
    std::uint32_t object = kNowhere;
    std::uint64_t offset =
        kNoOffset;  // in the object, of the first access: an instruction has one member
    bool operator==(const Label&) const = default;
};

struct Origins {
    std::vector<Module> modules;  // every file that was mapped, by file
    std::vector<std::vector<Frame>> literals;
    std::vector<CodePlace> places;
    std::vector<ContextNode> contexts{{0, 0}};
    std::vector<DataObject> objects;
    std::vector<Label> labels;
    std::vector<Extent> extents;  // by address, without overlap; where sharing is asked about
    std::vector<std::string> command;
    // The modules' files, for all who name places: to open one takes up to 40 ms. Copies share it; one
    // thread at a time may use it.
    std::shared_ptr<Symbolizer> symbols = std::make_shared<Symbolizer>();

    bool operator==(const Origins&) const;
};

// As a trace carries it. The trace's own modules and site addresses are filled too, for readers that
// know no more than those.
TraceInfo to_trace_info(const Origins& origins);
Result<Origins> origins_from(const TraceInfo& info);

// Turns a profile whose sites are labels into one by places, with symbols looked up.
void explain(Profile& profile, const Origins& origins);

}  // namespace revisit
