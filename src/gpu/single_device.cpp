// Exact reuse distances on one device, and the ways a trace takes to it.
//
//     source offers            what reaches the device
//     ranges, bare addresses   the file's own bytes, read by several threads into pinned memory and
//                              cut to blocks on the device (address_feed.cuh)
//     ranges with sizes or     blocks, and numbers of sites: decoded, cut and copied by as many
//     sites, chunks            threads as may be used (piece_queue.h)
//     a stream, a program      blocks, copied by one thread while the device counts those before
//
// Whatever the device throws becomes an Error. After that the counter is not used any more.
//
// Nothing here sees CUDA: tests feed counters of the host, and counters that fail.
#include "gpu/single_device.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/ranges.h"
#include "gpu/outcome.h"

namespace revisit {
namespace {

// An error of the host on its way through the device's code.
struct HostFailure : std::runtime_error {
    explicit HostFailure(Error what) : std::runtime_error(what.message), error(std::move(what)) {}
    Error error;
};

class SingleDeviceEngine final : public Engine {
 public:
    SingleDeviceEngine(const EngineOptions& options,
                       std::future<std::unique_ptr<gpu::ExactCounter>> starting)
        : options_(options), starting_(std::move(starting)) {}

    bool takes_ranges() const override { return !options_.sites; }
    Result<void> add_ranges(const AccessRanges& trace, const AccessProgress& progress) override {
        AccessColumns first;
        if (trace.count() == 0) return {};
        // Accesses of known size touch any number of blocks: those are cut on the host.
        if (options_.granularity > 1 && !TRY(trace.read(0, 1, first)).sizes.empty())
            return add_chunks(ChunkedRanges(trace), progress);
        return on_device([&] {
            gpu::AddressInput input;
            input.count = trace.count();
            input.granularity = options_.granularity;
            input.threads = thread_count(options_.threads);
            input.read = [&, file = trace.address_file()](std::uint64_t from, std::size_t count,
                                                          std::uint64_t* into) {
                if (!file || !read_file(*file, from, count, into))
                    read_addresses(trace, from, count, into);
            };
            if (progress) input.progress = [&](std::uint64_t done) { progress(done, input.count); };
            counter().add_addresses(input);
        });
    }

    bool takes_chunks() const override { return true; }
    Result<void> add_chunks(const AccessChunks& trace, const AccessProgress& progress) override {
        return on_device([&] {
            std::vector<Worker> workers(thread_count(options_.threads));
            for (Worker& worker : workers) {
                worker.cutter.emplace(options_.granularity);
                worker.columns.wanted = {options_.sites, options_.granularity > 1, false,
                                         options_.sites};
            }
            gpu::BlockInput input;
            input.pieces = trace.count();
            input.workers = static_cast<unsigned>(workers.size());
            input.make = [&](std::size_t chunk, unsigned worker, const auto& hand_over) {
                make_piece(trace, chunk, workers[worker], hand_over);
            };
            if (options_.sites) input.sites = [&] { return numbers_.expected(); };
            if (progress)
                input.progress = [&](std::size_t done) {
                    const double share = static_cast<double>(done) /
                                         static_cast<double>(std::max<std::size_t>(1, trace.count()));
                    const auto total = static_cast<double>(trace.accesses());
                    progress(static_cast<std::uint64_t>(share * total), trace.accesses());
                };
            counter().add_pieces(input);
        });
    }

    Result<void> add(const BlockBatch& batch) override {
        return on_device([&] {
            const std::uint32_t* sites = nullptr;
            if (options_.sites) {
                numbers_.number(batch, numbered_);
                counter().expect_sites(numbers_.expected());
                sites = numbered_.data();
            }
            counter().add(batch.blocks.data(), batch.count(), gpu::Memory::pageable, sites);
        });
    }

    Result<Profile> finish() override {
        Profile profile;
        TRY(on_device([&] {
            const gpu::Outcome outcome = counter().finish();
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(outcome.accesses);
            profile.distinct = static_cast<double>(outcome.distinct);
            profile.reuse = histogram_of(outcome.reuse, options_.bins, outcome.distinct);
            if (options_.time)
                profile.time = histogram_of(outcome.time, options_.bins, outcome.distinct);
            if (options_.sites) {
                Attribution sites;
                numbers_.add_counts(outcome, options_.bins, sites);
                sites.fill(profile, options_.bins, true, false);
            }
        }));
        return profile;
    }

 private:
    // What one thread decodes chunks with.
    struct Worker {
        AccessColumns columns;
        std::optional<BlockCutter> cutter;
        BlockColumns blocks;
        std::vector<std::uint32_t> numbers;
    };
    // An access of gigabytes has millions of blocks: they are handed over as they are cut.
    static constexpr std::size_t kMostBlocks = std::size_t{1} << 19;

    template <class Work>
    Result<void> on_device(Work work) {
        if (failure_) return unexpected(*failure_);
        try {
            work();
            return {};
        } catch (const HostFailure& failure) {
            failure_ = failure.error;
        } catch (const std::exception& failure) {
            failure_ = device_error(failure).error();
        }
        return unexpected(*failure_);
    }
    gpu::ExactCounter& counter() {
        if (!counter_) counter_ = starting_.get();
        return *counter_;
    }

    void make_piece(const AccessChunks& trace, std::size_t chunk, Worker& worker,
                    const gpu::BlockInput::HandOver& hand_over) {
        const auto accesses = trace.decode(chunk, worker.columns);
        if (!accesses) throw HostFailure(accesses.error());
        if (options_.granularity == 1)
            return pass_on(BlockCutter::as_they_are(*accesses), true, worker, hand_over);
        worker.blocks.clear();
        const auto cut = worker.cutter->cut(*accesses, [&](const BlockBatch& piece) -> Result<void> {
            if (worker.blocks.blocks.size() + piece.count() > kMostBlocks) {
                pass_on(worker.blocks.batch(), false, worker, hand_over);
                worker.blocks.clear();
            }
            worker.blocks.append(piece);
            return {};
        });
        if (!cut) throw HostFailure(cut.error());
        pass_on(worker.blocks.batch(), true, worker, hand_over);
    }
    void pass_on(const BlockBatch& blocks, bool is_last, Worker& worker,
                 const gpu::BlockInput::HandOver& hand_over) {
        const std::uint32_t* sites = nullptr;
        if (options_.sites) {
            numbers_.number(blocks, worker.numbers);
            sites = worker.numbers.data();
        }
        hand_over({blocks.blocks.data(), sites, blocks.count()}, is_last);
    }
    // Straight to where they are wanted. False where that fails: the trace knows what is wrong.
    static bool read_file(const AddressFile& file, std::uint64_t from, std::size_t count,
                          std::uint64_t* into) {
        char* to = reinterpret_cast<char*>(into);
        std::size_t left = count * sizeof *into;
        std::uint64_t at = file.offset + from * sizeof *into;
        while (left != 0) {
            const ssize_t got = pread(file.descriptor, to, left, static_cast<off_t>(at));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            to += got;
            at += static_cast<std::uint64_t>(got);
            left -= static_cast<std::size_t>(got);
        }
        return true;
    }
    static void read_addresses(const AccessRanges& trace, std::uint64_t from, std::size_t count,
                               std::uint64_t* into) {
        AccessColumns columns;
        columns.wanted = {};
        for (std::size_t done = 0; done < count;) {
            const std::size_t take = std::min(kRangeAtOnce, count - done);
            const auto batch = trace.read(from + done, take, columns);
            if (!batch) throw HostFailure(batch.error());
            std::memcpy(into + done, batch->addresses.data(), take * sizeof(std::uint64_t));
            done += take;
        }
    }

    EngineOptions options_;
    std::future<std::unique_ptr<gpu::ExactCounter>> starting_;
    std::unique_ptr<gpu::ExactCounter> counter_;
    std::optional<Error> failure_;
    SiteNumbers numbers_;
    std::vector<std::uint32_t> numbered_;
};

}  // namespace

std::unique_ptr<Engine> make_single_device_engine(
    const EngineOptions& options, std::future<std::unique_ptr<gpu::ExactCounter>> counter) {
    return std::make_unique<SingleDeviceEngine>(options, std::move(counter));
}

unexpected<Error> device_error(const std::exception& failure) {
    if (dynamic_cast<const gpu::OutOfMemory*>(&failure) != nullptr)
        return fail(ErrorCode::device_memory, failure.what());
    return fail(ErrorCode::device, failure.what());
}

}  // namespace revisit
