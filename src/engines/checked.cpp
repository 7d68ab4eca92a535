// Checks at the library's edge, once for all engines.
//
// Problem. Engines index columns by the number of blocks and assume that finish() is called once. A
// caller of another language, or with a bug, hands over a column that is too short.
// Idea. One wrapper checks each batch before the engine sees it, and what a source reads. It
// costs a virtual call and five comparisons per batch of thousands of accesses.
#include "engines/checked.h"

#include <fmt/format.h>

#include <utility>

#include "core/try.h"

namespace revisit {
namespace {

class CheckedRanges final : public AccessRanges {
 public:
    explicit CheckedRanges(const AccessRanges& ranges) : ranges_(ranges) {}
    std::uint64_t count() const override { return ranges_.count(); }
    Result<AccessBatch> read(std::uint64_t first, std::size_t count,
                             AccessColumns& into) const override {
        const AccessBatch batch = TRY(ranges_.read(first, count, into));
        // An access touches one block or more.
        if (into.is_cut ? batch.count() < count : batch.count() != count)
            return fail(
                fmt::format("expected {} accesses of a source, found {}", count, batch.count()));
        TRY(check(batch));
        return batch;
    }
    std::optional<AddressFile> address_file() const override { return ranges_.address_file(); }

 private:
    const AccessRanges& ranges_;
};

class CheckedChunks final : public AccessChunks {
 public:
    explicit CheckedChunks(const AccessChunks& chunks) : chunks_(chunks) {}
    std::size_t count() const override { return chunks_.count(); }
    std::uint64_t accesses() const override { return chunks_.accesses(); }
    Result<AccessBatch> decode(std::size_t chunk, AccessColumns& into) const override {
        const AccessBatch batch = TRY(chunks_.decode(chunk, into));
        TRY(check(batch));
        return batch;
    }

 private:
    const AccessChunks& chunks_;
};

class CheckedEngine final : public Engine {
 public:
    explicit CheckedEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

    Result<void> add(const BlockBatch& batch) override {
        if (finished_) return fail(kFinished);
        TRY(check(batch));
        return engine_->add(batch);
    }
    bool takes_ranges() const override { return engine_->takes_ranges(); }
    Result<void> add_ranges(const AccessRanges& ranges, const AccessProgress& progress) override {
        if (finished_) return fail(kFinished);
        return engine_->add_ranges(CheckedRanges(ranges), progress);
    }
    bool takes_chunks() const override { return engine_->takes_chunks(); }
    Result<void> add_chunks(const AccessChunks& chunks, const AccessProgress& progress) override {
        if (finished_) return fail(kFinished);
        return engine_->add_chunks(CheckedChunks(chunks), progress);
    }
    Result<Profile> finish() override {
        if (std::exchange(finished_, true)) return fail(kFinished);
        return engine_->finish();
    }
    Result<Histogram> reuse_so_far() override {
        if (finished_) return fail(kFinished);
        return engine_->reuse_so_far();
    }

 private:
    static constexpr const char* kFinished = "the engine was finished already; make another one";
    std::unique_ptr<Engine> engine_;
    bool finished_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_checked(std::unique_ptr<Engine> engine) {
    return std::make_unique<CheckedEngine>(std::move(engine));
}

}  // namespace revisit
