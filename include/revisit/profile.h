// The profile: what every engine, recorder and predictor produces and every model and view consumes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/histogram.h"

namespace revisit {

inline constexpr std::string_view kProfileSchema = "revisit/profile@1";
inline constexpr std::size_t kRunGroups = 16;

// Lines that were fetched into a cache, and how many of their bytes were used before they left it.
struct LineUse {
    double fetches = 0;
    double bytes = 0;         // used, over all fetches
    std::uint64_t parts = 0;  // bit i: part i of a line's 64 was used in some fetch
    double error = 0;         // of bytes / fetches, where fetches were sampled: 95 % half-width
};

// A place in the source; `line` 0 = unknown.
struct Frame {
    std::string function;
    std::string file;
    std::uint32_t line = 0;
    bool operator==(const Frame&) const = default;
};

// One instruction that accesses memory. A site without symbols still has module + offset.
struct Site {
    std::uint32_t id = 0;  // what traces, pairs and contexts call it
    std::string module;
    std::uint64_t offset = 0;
    Frame frame;
    std::vector<Frame> inlined;  // outermost last: frame was inlined into inlined[0], and so on
    Frame loop;                  // where the innermost loop around it begins; line 0 = none is known
    std::string data;            // the object it accesses most: "heap main (app.c:7)"
    double accesses = 0;
    double writes = 0;
    Histogram reuse;
    std::optional<double> time_share =
        {};                              // of processor time, at its source line; where it was sampled
    std::optional<double> regular = {};  // of its misses, on a constant stride: prefetchers hide them
    LineUse line_use = {};               // of what it fetched, where Profile::line_use is there
    std::vector<double> simulated =
        {};                   // misses in each of Profile::caches, where those were simulated
    std::string member = {};  // of the data's type that it accesses, "particle.mass"; empty: not known
    std::uint64_t member_offset = 0;  // in that type, in bytes
};

// A node of the calling-context tree: `call` made from `parent`. Index 0 is the root.
struct Context {
    std::uint32_t parent = 0;
    std::string module;
    std::uint64_t offset = 0;
    Frame frame;
};

// Use → reuse: the access that touched the block last, and the one that came back for it. `use` and
// `reuse` are site ids; contexts are indices into Profile::contexts, 0 when unknown.
struct Pair {
    std::uint32_t use = 0;
    std::uint32_t reuse = 0;
    std::uint32_t use_context = 0;
    std::uint32_t reuse_context = 0;
    double count = 0;
    Histogram distances;
};

// A piece of data: a heap block's allocation context, a global, a function's stack frame.
struct Object {
    std::string kind;  // "heap", "global", "stack", "array"
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t context = 0;
    double accesses = 0;
    Histogram reuse;
    LineUse line_use = {};
    std::vector<double> simulated = {};  // as of a site
    std::string type = {};         // of its elements, where debug information names it: "particle"
    std::uint64_t type_bytes = 0;  // of one element
};

// First touches and invalidated reuses of a site, by call path: pairs show neither.
struct FirstTouch {
    std::uint32_t site = 0;
    std::uint32_t context = 0;  // index into Profile::contexts, 0 when unknown
    double cold = 0;
    double invalidated = 0;
};

struct ThreadProfile {
    std::uint32_t id = 0;
    double accesses = 0;
    Histogram reuse;
};

// One side of a block that threads take from each other: the write that took it, or the access that
// missed it afterwards.
struct SharingSide {
    std::uint32_t site = 0;
    std::uint32_t context = 0;  // index into Profile::contexts, 0 when unknown
    std::uint32_t thread = 0;
    bool write = true;
    std::uint64_t bytes = 0;   // bit i: part i of the block's 64 was touched; of a cache line, byte i
    std::string object;        // "global counters (app)"; empty: not known
    std::uint64_t offset = 0;  // in that object, of the first byte touched
    Frame frame;
};

// Reuses that were invalidated: `writer` took the block from `victim`'s thread, which came back for it
// with `victim`'s access. False sharing: the two touched no common byte.
struct Sharing {
    std::uint64_t line = 0;  // address of the block
    SharingSide writer, victim;
    double count = 0;
    bool false_sharing = false;
    double error = 0;  // of count, where it was sampled: 95 % half-width
};

struct SharingTotals {
    double invalidated = 0;
    double false_sharing = 0;  // of these
    double unlisted = 0;       // of these: too rare to be in the list
    double error = 0;          // of invalidated, where it was sampled: 95 % half-width
};

// The same run in blocks of another size.
struct GranularityProfile {
    std::uint64_t granularity = 0;
    double distinct = 0;
    Histogram reuse;
};

// Of the whole run, in a true LRU cache.
struct LineUseTotals {
    std::string cache;  // "1M:8:64"
    std::uint64_t line = 64;
    LineUse use;
};

// What a site did in a window of the run.
struct PhaseSite {
    std::uint32_t site = 0;
    double accesses = 0;
    Histogram reuse;  // one bin per power of two
};

// A window of the run, cut by accesses or by time.
struct Phase {
    double begin = 0;  // in accesses
    double end = 0;
    double distinct = 0;
    Histogram reuse;
    std::vector<PhaseSite> sites = {};  // those with most accesses first; where sites are counted
};

// Some of the runs that a merge summed: what differs between groups of runs is the noise of the sum.
struct RunGroup {
    double runs = 1;
    double accesses = 0;
    double distinct = 0;
    Histogram reuse;
};

struct Sampling {
    double period = 0;  // accesses a sample stands for
    double samples = 0;
    double pruned = 0;          // share of samples given up
    double accesses_error = 0;  // half-width of Profile::accesses; 0 = they were counted
    // Profile::distinct is between these, as a rule; 0 = not known.
    double distinct_low = 0, distinct_high = 0;
};

// One process of a run that had several, by exec: a shell that becomes another program is two.
struct ProcessSummary {
    std::uint32_t pid = 0;
    std::vector<std::string> command;
    double accesses = 0, samples = 0;
    double seconds = 0;        // of processor time
    std::uint32_t parent = 0;  // that started it; 0 = not known
};

// A cache whose sets were simulated while the accesses were counted, or seen by samples.
struct SimulatedCache {
    CacheSpec spec;
    double accesses = 0;
    double misses = 0;
    double error = 0;  // 95 % half-width of the misses, where sets were sampled
    // Sets with more than twice the misses of the average set, first to last, and their misses.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> crowded = {};
    double crowded_misses = 0;
};

// Reuses by their depth in a set of an LRU cache; the last entry counts all that are deeper.
struct SetDepths {
    std::uint64_t sets = 0;
    std::vector<double> counts;
};

// A shared cache gets only what misses the private ones. Of private caches of this size: the reuses of
// all cores, and the shared reuses of what missed (depth >= ways, cold or invalidated), by number of
// sets of the shared cache. First touches and invalidated reuses are not in `own`, first touches not
// in `shared`.
struct PrivateFilter {
    std::uint64_t ways = 0;
    SetDepths own;
    std::vector<SetDepths> shared;
    std::uint64_t blocks() const { return own.sets * ways; }
};

// What stands behind a prediction.
enum class Certainty : std::uint8_t {
    exact,      // shown: interpreted to the end, or formulas that must hold
    fitted,     // formulas that passed every check, and no proof that they hold beyond the samples
    estimated,  // anything else
};
constexpr std::string_view kCertainties[] = {"exact", "fitted", "estimated"};
constexpr std::string_view name_of(Certainty certainty) {
    return kCertainties[static_cast<std::size_t>(certainty)];
}

struct Profile {
    std::string method = "exact";
    std::string model = "single";
    std::uint64_t granularity = 64;
    double accesses = 0;
    double distinct = 0;
    Histogram reuse;
    std::optional<Histogram> time;
    std::optional<Histogram> shared;  // private model: what one stack for all threads would see
    std::optional<Sampling> sampled;

    std::vector<ThreadProfile> threads;
    std::vector<Site> sites;
    std::vector<Context> contexts;
    std::vector<Pair> pairs;
    std::vector<FirstTouch> touches;  // the most frequent first
    std::vector<Object> objects;
    std::vector<Phase> phases;
    std::vector<ProcessSummary> processes;
    std::vector<Sharing> sharing;  // private model, most frequent first
    std::optional<SharingTotals> sharing_totals;
    std::vector<PrivateFilter> filters;             // private and shared model, smallest first
    std::vector<SimulatedCache> caches;             // exact profiles of programs, nearest first
    std::vector<RunGroup> runs;                     // of a merge of runs, in at most kRunGroups groups
    std::vector<GranularityProfile> granularities;  // where several were asked for, the main one first
    std::optional<LineUseTotals> line_use;

    std::string machine;
    std::vector<std::string> command;
    std::string clock;                   // how time was counted, where it was not by access
    std::vector<std::string> notes;      // what a reader should know: limits, causes, certificates
    std::vector<std::string> assumes;    // predictions: what is taken for granted, exact or not
    std::optional<Certainty> certainty;  // predictions alone

    // Predictions: certified to be what a run would measure, or not.
    std::optional<bool> exact() const {
        return certainty ? std::optional(*certainty == Certainty::exact) : std::nullopt;
    }
};

REVISIT_API std::string to_json(const Profile& profile);
REVISIT_API Result<Profile> profile_from_json(std::string_view text, const std::string& file = {});

REVISIT_API Result<Profile> load_profile(const std::string& path);  // "-" = standard input
REVISIT_API Result<void> save_profile(const Profile& profile, const std::string& path);

// Sums profiles: threads, ranks, processes, runs. Granularity and model must agree, and bins must line
// up (a coarser binning takes a finer one in, such as log2 and log2:8). What was refused changes
// nothing.
REVISIT_API Result<void> merge_profile(Profile& into, const Profile& other);

// The same for many profiles, in memory that does not grow with their number.
class REVISIT_API ProfileMerger {
 public:
    // `runs`: the profiles are runs of one program, and what differs between them is kept as noise.
    explicit ProfileMerger(Profile first, bool runs = false);
    ~ProfileMerger();
    Result<void> add(const Profile& other);
    const Profile& sum() const { return sum_; }
    Profile take() { return std::move(sum_); }

 private:
    struct Indexes;
    Result<void> check(const Profile& other) const;
    void keep_runs(const Profile& other);
    Profile sum_;
    bool runs_;
    std::unique_ptr<Indexes> indexes_;
};

}  // namespace revisit
