// The GPU's exact counter as the rest of the program sees it: plain C++20, no CUDA.
//
// Failures are thrown as std::runtime_error with a sentence, OutOfMemory among them; engine.cpp turns
// them into Errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace revisit::gpu {

struct OutOfMemory : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Device {
    std::string name;
    std::uint64_t memory = 0;
};
// What is there; when nothing is, `why` says so in half a sentence.
struct Devices {
    std::vector<Device> list;
    std::string why;
};
Devices find_devices();

enum class Memory : std::uint8_t { pageable, pinned, device };

struct Settings {
    // Bins a power of two counted on the device (at most kMostPerOctave); 0 reports every distance.
    unsigned per_octave = 1;
    bool time = false;
    std::size_t chunk = 0;  // accesses at a time; 0 = chosen
    int device = 0;
    bool touches = false;      // keep what take_touches() hands out
    bool stage_times = false;  // measure stages (they are then not overlapped with each other)
};
inline constexpr unsigned kMostPerOctave = 32;

// Either by bin number (as Binning::index gives it), or (distance, count) pairs in rising order.
struct Counts {
    std::vector<std::uint64_t> by_bin;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> by_distance;
};

struct Stage {
    std::string name;
    double milliseconds = 0;
};

struct Outcome {
    std::uint64_t accesses = 0;
    std::uint64_t distinct = 0;
    Counts reuse;
    Counts time;
    // by site: bins_a_site numbers each, cold last
    std::vector<std::uint64_t> sites;
    std::size_t bins_a_site = 0;
    std::vector<Stage> stages;
};

// What a stretch of accesses leaves, for those who know what came before it: its blocks in the order of
// first touch and in the order of last touch, and when that was, in accesses from its beginning.
struct Touches {
    std::vector<std::uint64_t> first, first_times, last, last_times;
};

// Addresses that a counter fetches itself and cuts to blocks on the device.
struct AddressInput {
    std::uint64_t count = 0;
    std::uint64_t granularity = 1;
    // Addresses [first, first + count), by any thread; throws what went wrong.
    std::function<void(std::uint64_t first, std::size_t count, std::uint64_t* into)> read;
    std::function<void(std::uint64_t done)> progress;
    unsigned threads = 1;  // that may read
};

// Blocks that any thread may make, in pieces of any length, with sites or without.
struct BlockPiece {
    const std::uint64_t* blocks = nullptr;
    const std::uint32_t* sites = nullptr;  // null: none
    std::size_t count = 0;
};
struct BlockInput {
    std::size_t pieces = 0;
    // Hands over what piece number `piece` holds, in order, in as many calls as it likes; `is_last`
    // says that nothing of it follows. Workers are numbered from 0. Throws what went wrong.
    using HandOver = std::function<void(const BlockPiece&, bool is_last)>;
    std::function<void(std::size_t piece, unsigned worker, const HandOver&)> make;
    std::function<std::uint32_t()> sites;  // numbers of all sites handed over so far are below it
    std::function<void(std::size_t pieces)> progress;
    unsigned workers = 1;
};

class ExactCounter {
 public:
    virtual ~ExactCounter() = default;
    // Takes accesses in trace order; returns once `blocks` is no longer needed. Device memory and sites
    // do not go together.
    virtual void add(const std::uint64_t* blocks, std::size_t count, Memory where,
                     const std::uint32_t* sites = nullptr) = 0;
    virtual void add_addresses(const AddressInput& input) = 0;
    virtual void add_pieces(const BlockInput& input) = 0;
    // From now on accesses carry sites 0 … sites-1: all of them, from the first, and in log2 bins only.
    virtual void expect_sites(std::uint32_t sites) = 0;
    // Of all accesses since the last call. The next ones begin with an empty stack; counts add up.
    virtual Touches take_touches() = 0;
    virtual Outcome finish() = 0;
};
std::unique_ptr<ExactCounter> make_exact_counter(const Settings& settings);

// Memory for callers that do not see CUDA (benchmarks, tests).
std::uint64_t* allocate_pinned(std::size_t count);
void free_pinned(std::uint64_t* memory);
std::uint64_t* upload(const std::uint64_t* blocks, std::size_t count);
void free_device(std::uint64_t* memory);

}  // namespace revisit::gpu
