// Interprets a slice and writes down which reference touched what in which iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/run/deadline.h"
#include "predict/run/observe.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

inline constexpr std::uint32_t kNoLoop = UINT32_MAX;
inline constexpr std::int32_t kCold = -1;  // what a first touch has for the reference before it

// `rounds` accesses of `size` bytes from one address on, `step` bytes apart, in turn with the others of
// the same rounds: `together` of them, reported one after the other.
struct Stretch {
    std::uint32_t reference = 0;  // index into Trace::references
    std::uint64_t address = 0;
    std::int64_t step = 0, rounds = 1;
    std::uint32_t size = 0;
    std::size_t together = 1;
};

// What an iteration adds to a register, of so many bits.
struct Advance {
    std::int32_t reg = -1;
    std::int64_t step = 0;
    std::uint8_t width = 64;
};

// Iterations that are left out: those after the first `from`, as if they had been executed.
struct Leap {
    std::uint32_t from = 0;
    std::int64_t iterations = 0;
    std::vector<Advance> registers;  // all that go from one iteration to the next
};

struct RunOptions {
    std::uint64_t max_accesses = 50'000'000;
    std::uint64_t max_steps = 2'000'000'000;
    std::uint64_t seed = 1;
    int layout = 0;                   // other numbers put objects elsewhere, in another order
    double branch_probability = 0.5;  // of a branch that only the data decides
    bool keep = true;                 // record accesses; else only call `sink`
    // Accesses in order, some thousands at a time; false stops the run.
    std::function<bool(std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references, std::span<const std::uint32_t> sizes)>
        sink;
    // Rounds of an inner loop that touch the same blocks, of so many bytes, as the round before: that
    // round, and how many follow. `sink` does not hear of them.
    std::uint64_t block_bytes = 1;
    std::function<void(std::span<const Stretch> round, std::int64_t times)> again;
    // Instead of `sink`.
    std::function<void(const Stretch&)> progression;
    // Of the entry function's outermost loops: hears each arrival at a header, and kNoLoop after them,
    // when `sink` has had all before it.
    // What it answers holds until it is asked again.
    enum class Show : std::uint8_t { accesses, nothing, stop };
    std::function<Show(std::uint32_t loop, std::uint32_t iteration)> outermost;
    std::map<std::int32_t, Leap> leaps;  // by number of an outermost loop of the entry function
    // Loops by function and number: `report` hears each arrival at their headers, and kNoLoop after the
    // last, when `sink` has had all before it.
    const std::set<std::pair<std::uint32_t, std::int32_t>>* reported = nullptr;
    std::function<void(std::uint32_t function, std::int32_t loop, std::uint32_t iteration)> report;
    Deadline deadline;
    std::int32_t watch = 0;  // how many watches the program has (observe.h); 0 = do not look
    bool stride = true;      // take whole runs of an inner loop at once where that is the same
};

// One execution of a loop, from entry to exit.
struct LoopRun {
    std::uint32_t loop = 0;    // index into Trace::loops
    std::int32_t parent = -1;  // the run it was entered from
    std::uint32_t parent_iteration = 0;
    std::uint32_t iterations = 0;  // times the header was reached
    std::int64_t first = 0;        // its variable in iteration 0
    std::int64_t step = 0;
};

// A loop or a reference under one path of calls.
struct LoopPlace {
    std::uint32_t function = 0;
    std::uint32_t loop = 0;
    std::int32_t parent = -1;
    bool linear = true;  // its variable moved by one step always
    // Iterations (arrivals at the header) of the shortest and the longest run; 0 = none ended.
    std::uint32_t shortest = 0, longest = 0;
};
struct ReferencePlace {
    std::uint32_t function = 0;
    std::uint32_t reference = 0;
    std::uint64_t context = 0;         // the path of calls, hashed: the same in every run
    std::vector<std::uint32_t> loops;  // enclosing, outermost first
    std::vector<Extremes> indices;     // by extent, see Reference::extents
};

struct Access32 {
    std::uint64_t address = 0;
    std::uint32_t reference = 0;  // index into Trace::references
    std::int32_t run = -1;        // innermost LoopRun
    std::uint32_t iteration = 0;  // of it
    std::uint32_t size = 0;
};

struct Trace {
    std::vector<LoopPlace> loops;
    std::vector<ReferencePlace> references;
    std::vector<LoopRun> runs;
    std::vector<Access32> accesses;
    std::uint64_t count = 0;
    bool complete = true;       // false: stopped at max_accesses
    std::vector<Doubt> doubts;  // data decided a branch, memory was unknown, recursion
    std::vector<std::vector<std::uint64_t>> block_counts;  // by function and block
    std::vector<Observed> observed;                        // by watch, less one
    std::vector<std::vector<bool>> tables;  // by global: entries that were read, where entries differ

    // The doubts that matter at a granularity.
    std::vector<Doubt> doubts_at(std::uint64_t granularity) const;
};

// Which pointer argument (of the pointers, from 0) an address belongs to, and where in it.
struct ArgumentPlace {
    std::size_t pointer = 0;
    std::int64_t offset = 0;
};
std::optional<ArgumentPlace> argument_place(std::uint64_t address);

// Names the integer arguments and globals of unknown value that `parameters` must give.
std::vector<std::string> open_parameters(const Program& program, const Parameters& parameters);

Result<Trace> interpret(const Program& program, const Parameters& parameters,
                        const RunOptions& options = {});

}  // namespace revisit::predict
