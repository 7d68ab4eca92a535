// Exact reuse distances on many machines, over MPI.
//
// Problem. A trace larger than a node's memory and patience, in a file that all nodes can read.
// Idea. As on threads (engines/exact_threads.cpp): rank k counts part k of the file with an engine that
// starts empty, and the first touches of a part are resolved by earlier parts. Here they flow as one
// stream down the ranks: rank k sends its own first touches to rank k-1, and after them whatever of
// rank k+1's stream it did not know itself. Rank 0 ends with what is new to all. Sends never wait for
// the receiver, so all ranks play their streams side by side. Cost. Rank k sends every block that
// occurs in part k or after it once: 8 bytes times the distinct blocks of the trace's rest, at most 8
// D. docs/cluster.md holds that against measured volumes. A rank with several threads is as many lanes,
// each with a part of the file and an engine: the stream goes down the lanes as it goes down the ranks.
// A rank with a GPU counts its part there, also from an empty stack; what it hands back, its first
// touches and the stack, goes into an engine on the CPU, which plays what comes from the next rank.
// Failure. A rank that fails ends its process;
// mpirun then ends the job. Nothing is shown before all ranks have reported to rank 0, so there is no
// partial result.
#include "cluster/cluster.h"

#include <fmt/format.h>

#ifdef REVISIT_HAVE_MPI

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <new>
#include <optional>
#include <thread>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/exact.h"
#include "formats/byte_stream.h"
#include "formats/part.h"
#include "gpu/gpu.h"
#include "revisit/blocks.h"
#include "revisit/units.h"

namespace revisit {
namespace {

enum Tag : int { kBlocks = 1, kEnd = 2, kCounts = 3 };
constexpr std::size_t kSegment = std::size_t{1} << 17;  // blocks a message: 1 MiB

// Messages on their way. They wait for their receivers here, not in our way.
class Outbox {
 public:
    void send(std::vector<std::uint64_t> words, int to, Tag tag) {
        sent_bytes_ += words.size() * sizeof(std::uint64_t);
        waiting_.push_back({std::move(words), {}});
        Message& message = waiting_.back();
        MPI_Isend(message.words.data(), static_cast<int>(message.words.size()), MPI_UINT64_T, to, tag,
                  MPI_COMM_WORLD, &message.request);
        while (!waiting_.empty()) {
            int done = 0;
            MPI_Test(&waiting_.front().request, &done, MPI_STATUS_IGNORE);
            if (done == 0) break;
            waiting_.pop_front();
        }
    }
    void wait() {
        for (Message& message : waiting_) MPI_Wait(&message.request, MPI_STATUS_IGNORE);
        waiting_.clear();
    }
    std::uint64_t sent_bytes() const { return sent_bytes_; }

 private:
    struct Message {
        std::vector<std::uint64_t> words;
        MPI_Request request;
    };
    std::deque<Message> waiting_;  // a deque: requests stay where they are
    std::uint64_t sent_bytes_ = 0;
};

// Sends what is in `list`, in messages of a segment, when it is worth one or `all` must go.
void pass_on(BigVector<std::uint64_t>& list, Outbox& out, int to, bool all) {
    if (list.size() < kSegment && !all) return;
    for (std::size_t at = 0; at < list.size(); at += kSegment) {
        const auto first = list.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = static_cast<std::ptrdiff_t>(std::min(kSegment, list.size() - at));
        out.send(std::vector<std::uint64_t>(first, first + count), to, kBlocks);
    }
    list.clear();
}

std::vector<std::uint64_t> receive(int from, Tag& tag) {
    MPI_Status status;
    MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    std::vector<std::uint64_t> words(static_cast<std::size_t>(count));
    MPI_Recv(words.data(), count, MPI_UINT64_T, from, status.MPI_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    tag = static_cast<Tag>(status.MPI_TAG);
    return words;
}

// What one thread of a rank counts.
struct Lane {
    std::unique_ptr<TraceReader> reader;
    std::uint64_t accesses = 0;           // after cutting into blocks
    std::unique_ptr<PartCounter> device;  // counts the part, where there is one
    Histogram counted_on_device;
    std::optional<ExactEngine> engine;
    bool lists = false;                // first touches, all but the very first lane
    BigVector<std::uint64_t> unknown;  // to this lane's part and all after it that have spoken
};
using Lanes = std::deque<Lane>;  // a deque: engines write to lists that stay where they are

Result<void> end_part(Lane& lane) {
    if (!lane.device) return lane.engine->settle();
    auto part = TRY(lane.device->finish());
    lane.device.reset();
    lane.counted_on_device = std::move(part.reuse);
    lane.engine->list_first_touches(nullptr);
    TRY(lane.engine->touch(part.stack));
    if (!lane.lists) return {};
    lane.unknown.assign(part.first_touches.begin(), part.first_touches.end());
    lane.engine->list_first_touches(&lane.unknown);
    return {};
}

Result<void> count_part(Lane& lane, const EngineOptions& options) {
    BlockCutter cutter(options.granularity);
    for (;;) {
        auto batch = TRY(lane.reader->next());
        if (batch.count() == 0) return end_part(lane);
        auto added = cutter.cut(batch, [&](const BlockBatch& piece) {
            lane.accesses += piece.count();
            return lane.device ? lane.device->add(piece.blocks)
                               : lane.engine->add({piece.blocks, {}, {}, {}});
        });
        if (!added) return added;
    }
}

// What lane `from` did not know goes down to the first one.
Result<void> pass_down(Lanes& lanes, std::size_t from, bool all) {
    for (std::size_t i = from; i > 0; --i) {
        TRY(lanes[i - 1].engine->add({lanes[i].unknown, {}, {}, {}}));
        lanes[i].unknown.clear();
        if (!all) continue;
        TRY(lanes[i - 1].engine->settle());
    }
    return {};
}

Result<void> count_parts(Lanes& lanes, const EngineOptions& options) {
    std::vector<Result<void>> status(lanes.size());
    parallel_for(static_cast<unsigned>(lanes.size()), lanes.size(),
                 [&](std::size_t i) { status[i] = count_part(lanes[i], options); });
    for (const Result<void>& done : status)
        if (!done) return done;
    return pass_down(lanes, lanes.size() - 1, true);
}

std::uint64_t accesses_of(const Lanes& lanes) {
    std::uint64_t sum = 0;
    for (const Lane& lane : lanes) sum += lane.accesses;
    return sum;
}

// Of reuses.
Histogram histogram_of(const Lanes& lanes) {
    Histogram sum;
    for (const Lane& lane : lanes) {
        sum.merge(lane.engine->distances().histogram());
        sum.merge(lane.counted_on_device);
    }
    sum.cold = 0;
    return sum;
}

// Rank 0 sums what the others send it; each sends (accesses, bytes sent, then low, high, count by bin).
Profile collect(Lanes& lanes, const Outbox& out, int ranks) {
    Profile profile = lanes.front().engine->finish().value();
    const double distinct = profile.reuse.cold;  // what reached the first lane of all and is new to it
    profile.reuse = histogram_of(lanes);
    profile.reuse.cold = distinct;
    std::uint64_t accesses = accesses_of(lanes), bytes = out.sent_bytes(), most = bytes;
    for (int rank = 1; rank < ranks; ++rank) {
        Tag tag;
        const auto words = receive(rank, tag);
        accesses += words[0];
        bytes += words[1];
        most = std::max(most, words[1]);
        Histogram counted;
        for (std::size_t i = 2; i + 2 < words.size(); i += 3)
            counted.bins.push_back({words[i], words[i + 1], static_cast<double>(words[i + 2]), 0});
        profile.reuse.merge(counted);
    }
    profile.accesses = static_cast<double>(accesses);
    profile.notes.push_back(
        fmt::format("counted by {} ranks, which sent each other {} bytes of blocks, {} at most", ranks,
                    bytes, most));
    return profile;
}

void report(const Lanes& lanes, Outbox& out) {
    std::vector<std::uint64_t> words = {accesses_of(lanes), out.sent_bytes()};
    for (const Bin& bin : histogram_of(lanes).bins) {
        words.push_back(bin.low);
        words.push_back(bin.high);
        words.push_back(static_cast<std::uint64_t>(bin.count));
    }
    out.send(std::move(words), 0, kCounts);
}

// mpirun binds a rank to a core unless told, whatever threads it has.
unsigned cores_of_this_process() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return ~0u;
    return static_cast<unsigned>(CPU_COUNT(&cores));
}

// Among the ranks of this machine: the one whose turn it is to take the first device is 0.
unsigned node_rank() {
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    int rank = 0;
    MPI_Comm_rank(here, &rank);
    MPI_Comm_free(&here);
    return static_cast<unsigned>(rank);
}

// The lowest rank that failed speaks for all.
Result<void> agree(Result<void> mine, int rank, int ranks) {
    int failed = mine ? ranks : rank, first = 0;
    MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == ranks) return {};
    if (first == rank) return mine;
    // mpirun ends all ranks once one has failed: the others wait, so that the message is out by then.
    std::this_thread::sleep_for(std::chrono::seconds(5));
    return fail("");
}

// The file's size and a hash of 64 pieces of it, spread evenly: ranks that see different files under
// one name, such as one that was not copied to every machine, are reported instead of counted together.
Result<std::array<std::uint64_t, 2>> fingerprint(const std::string& path) {
    constexpr std::uint64_t kPieces = 64, kBytes = 4096;
    if (path == "-") return std::array<std::uint64_t, 2>{};  // refused in a moment
    const auto stream = TRY(ByteStream::open(path));
    const auto file = stream.file();
    if (!file) return std::array<std::uint64_t, 2>{};  // empty, or no file
    std::uint64_t hash = 0xcbf29ce484222325;
    std::vector<std::uint8_t> bytes(kBytes);
    for (std::uint64_t i = 0; i < kPieces; ++i) {
        const std::uint64_t room = file->size() > kBytes ? file->size() - kBytes : 0;
        const std::uint64_t at = room / (kPieces - 1) * i + room % (kPieces - 1) * i / (kPieces - 1);
        const std::size_t size = static_cast<std::size_t>(std::min(kBytes, file->size()));
        TRY(file->read(at, bytes.data(), size));
        for (std::size_t k = 0; k < size; ++k) hash = (hash ^ bytes[k]) * 0x100000001b3;
    }
    return std::array{file->size(), hash};
}

// Every rank must have rank 0's file.
Result<void> same_file(const std::string& path, int rank, int ranks) {
    auto mine = fingerprint(path);
    const std::array<std::uint64_t, 2> own = mine.value_or(std::array<std::uint64_t, 2>{});
    std::array<std::uint64_t, 2> first = own;
    MPI_Bcast(first.data(), 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    Result<void> good;
    if (!mine)
        good = unexpected(mine.error());
    else if (own[0] != first[0])
        good =
            fail(ErrorCode::cluster, path, {},
                 fmt::format("rank {} has a file of {} bytes, rank 0 one of {}; expected the same file "
                             "on all ranks",
                             rank, own[0], first[0]));
    else if (own[1] != first[1])
        good =
            fail(ErrorCode::cluster, path, {},
                 fmt::format("rank {} has other content in it than rank 0; expected the same file on "
                             "all ranks",
                             rank));
    return agree(std::move(good), rank, ranks);
}

}  // namespace

ClusterReport describe_cluster() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::string name(version, static_cast<std::size_t>(length));
    return {true, name.substr(0, name.find(','))};
}

Result<std::optional<Profile>> analyze_on_cluster(const std::string& trace, std::string_view format,
                                                  EngineOptions options) {
    if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return fail(ErrorCode::cluster, "MPI did not start");
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (options.time || options.sites || options.pairs || options.model != StackModel::single)
        return unexpected(
            agree(fail(ErrorCode::unsupported,
                       "a cluster counts reuse distances of the single model: no time, sites or pairs"),
                  rank, ranks)
                .error());
    if (options.phases != 0)
        return unexpected(
            agree(fail(ErrorCode::unsupported, "a cluster does not cut a run into phases"), rank, ranks)
                .error());
    TRY(same_file(trace, rank, ranks));
    Lanes lanes(options.device == Device::gpu ? 1 : std::max(1u, options.threads));
    Result<void> good;
    if (options.device == Device::gpu) {
        auto device = make_gpu_part_counter(options, node_rank());
        if (device)
            lanes.front().device = std::move(*device);
        else
            good = unexpected(device.error());
    }
    for (std::size_t i = 0; i < lanes.size() && good; ++i) {
        const std::size_t part = static_cast<std::size_t>(rank) * lanes.size() + i;
        auto opened =
            open_trace_part(trace, format, static_cast<unsigned>(part),
                            static_cast<unsigned>(static_cast<std::size_t>(ranks) * lanes.size()));
        if (opened)
            lanes[i].reader = std::move(*opened);
        else
            good = unexpected(opened.error());
    }
    TRY(agree(std::move(good), rank, ranks));
    if (options.granularity == 0) {
        const std::uint64_t natural = lanes.front().reader->info().natural_granularity;
        options.granularity = natural != 0 ? natural : 64;
    }
    options.threads = 1;  // of each engine
    try {
        for (std::size_t i = 0; i < lanes.size(); ++i) {
            lanes[i].engine.emplace(options);
            lanes[i].lists = rank != 0 || i != 0;
            if (lanes[i].lists) lanes[i].engine->list_first_touches(&lanes[i].unknown);
        }
        TRY(agree(count_parts(lanes, options), rank, ranks));
        Outbox out;
        BigVector<std::uint64_t>& unknown = lanes.front().unknown;
        if (rank != 0) pass_on(unknown, out, rank - 1, true);
        for (Tag tag = rank + 1 < ranks ? kBlocks : kEnd; tag != kEnd;) {
            const auto list = receive(rank + 1, tag);
            TRY(lanes.back().engine->add({list, {}, {}, {}}));
            if (tag == kEnd) TRY(lanes.back().engine->settle());
            TRY(pass_down(lanes, lanes.size() - 1, tag == kEnd));
            if (rank != 0) pass_on(unknown, out, rank - 1, tag == kEnd);
        }
        std::optional<Profile> profile;
        if (rank != 0) {
            out.send({}, rank - 1, kEnd);
            report(lanes, out);
        } else {
            profile = collect(lanes, out, ranks);
            if (const unsigned cores = cores_of_this_process(); cores < lanes.size())
                profile->notes.push_back(fmt::format(
                    "a rank's {} threads had {} cores; let mpirun bind ranks to more: --bind-to none",
                    lanes.size(), cores));
        }
        out.wait();
        MPI_Finalize();
        return profile;
    } catch (const std::bad_alloc&) {
        return fail(fmt::format("rank {}: not enough memory", rank));
    }
}

}  // namespace revisit

#else

namespace revisit {

ClusterReport describe_cluster() {
    return {false, "this build has no MPI"};
}

Result<std::optional<Profile>> analyze_on_cluster(const std::string&, std::string_view, EngineOptions) {
    return fail(ErrorCode::not_built,
                "this build has no MPI; build with Open MPI's development files installed");
}

}  // namespace revisit

#endif
