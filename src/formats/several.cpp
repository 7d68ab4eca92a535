// Several traces read as one, in their order: `analyze part-0.u64 part-1.u64`.
//
// What all of them offer, the whole offers: ranges where each has ranges, chunks where each has ranges
// or chunks, else a stream.
#include <algorithm>

#include "core/try.h"
#include "formats/columns.h"
#include "formats/format.h"

namespace revisit {
namespace {

using Readers = std::vector<std::unique_ptr<TraceReader>>;

// Which of several parts number `at` lies in; `ends` are the sums of their counts.
template <class Number>
std::size_t part_at(const std::vector<Number>& ends, Number at) {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
}

class JoinedRanges final : public AccessRanges {
 public:
    static std::unique_ptr<JoinedRanges> of(const Readers& readers) {
        auto joined = std::make_unique<JoinedRanges>();
        for (const auto& reader : readers) {
            const AccessRanges* ranges = reader->ranges();
            if (ranges == nullptr) return nullptr;
            joined->parts_.push_back(ranges);
            joined->ends_.push_back(joined->count() + ranges->count());
        }
        return joined;
    }
    std::uint64_t count() const override { return ends_.empty() ? 0 : ends_.back(); }
    Result<AccessBatch> read(std::uint64_t first, std::size_t count,
                             AccessColumns& into) const override {
        std::size_t part = part_at(ends_, first);
        const std::uint64_t begin = part == 0 ? 0 : ends_[part - 1];
        if (first + count <= ends_[part]) return parts_[part]->read(first - begin, count, into);
        // Across a seam: columns that a part does not have are zeros.
        AccessColumns all, one;
        for (const std::uint64_t end = first + count; first < end; ++part) {
            const std::uint64_t low = part == 0 ? 0 : ends_[part - 1];
            if (first >= ends_[part]) continue;
            const std::size_t take = std::min(end, ends_[part]) - first;
            const AccessBatch batch = TRY(parts_[part]->read(first - low, take, one));
            widen(all, columns_of(batch));
            for (std::size_t i = 0; i < batch.count(); ++i) all.push(batch.at(i));
            first += take;
        }
        all.wanted = into.wanted;
        all.cut_shift = into.cut_shift;
        into = std::move(all);
        return into.batch();
    }
    std::optional<AddressFile> address_file() const override {
        return parts_.size() == 1 ? parts_[0]->address_file() : std::nullopt;
    }

 private:
    static void widen(AccessColumns& columns, const ColumnSet& with) {
        columns.has = {columns.has.sites || with.sites, columns.has.sizes || with.sizes,
                       columns.has.threads || with.threads, columns.has.flags || with.flags};
        columns.resize(columns.count());
    }
    std::vector<const AccessRanges*> parts_;
    std::vector<std::uint64_t> ends_;
};

class JoinedChunks final : public AccessChunks {
 public:
    static std::unique_ptr<JoinedChunks> of(const Readers& readers) {
        auto joined = std::make_unique<JoinedChunks>();
        for (const auto& reader : readers) {
            if (reader->chunks() == nullptr && reader->ranges() == nullptr) return nullptr;
            joined->parts_.push_back(reader.get());
            const std::size_t chunks = reader->chunks() != nullptr
                                           ? reader->chunks()->count()
                                           : (reader->ranges()->count() + kReadBatch - 1) / kReadBatch;
            joined->ends_.push_back(joined->count() + chunks);
            joined->accesses_ +=
                reader->chunks() != nullptr ? reader->chunks()->accesses() : reader->ranges()->count();
        }
        return joined;
    }
    std::size_t count() const override { return ends_.empty() ? 0 : ends_.back(); }
    std::uint64_t accesses() const override { return accesses_; }
    Result<AccessBatch> decode(std::size_t chunk, AccessColumns& into) const override {
        const std::size_t part = part_at(ends_, chunk);
        const std::size_t within = chunk - (part == 0 ? 0 : ends_[part - 1]);
        if (const AccessChunks* chunks = parts_[part]->chunks()) return chunks->decode(within, into);
        const AccessRanges& ranges = *parts_[part]->ranges();
        const std::uint64_t first = std::uint64_t{within} * kReadBatch;
        return ranges.read(first, std::min<std::uint64_t>(kReadBatch, ranges.count() - first), into);
    }

 private:
    std::vector<const TraceReader*> parts_;
    std::vector<std::size_t> ends_;
    std::uint64_t accesses_ = 0;
};

class JoinedReader : public TraceReader {
 public:
    explicit JoinedReader(Readers readers)
        : readers_(std::move(readers)), ranges_(JoinedRanges::of(readers_)) {
        if (!ranges_) chunks_ = JoinedChunks::of(readers_);
        set_format(readers_.front()->format());
        for (const auto& reader : readers_)
            if (reader->format() != format()) set_format("several formats");
    }

    Result<AccessBatch> next() override {
        for (; at_ < readers_.size(); ++at_) {
            const AccessBatch batch = TRY(readers_[at_]->next());
            if (batch.count() != 0) return batch;
        }
        return AccessBatch{};
    }
    const AccessRanges* ranges() const override { return ranges_.get(); }
    const AccessChunks* chunks() const override { return chunks_.get(); }
    // Of the first: recorders write what they know into every piece.
    TraceInfo info() const override { return readers_.front()->info(); }
    Result<bool> tells_places() override { return readers_.front()->tells_places(); }
    std::uint64_t bytes_read() const override { return sum(&TraceReader::bytes_read); }
    std::uint64_t bytes_total() const override { return sum(&TraceReader::bytes_total); }

 private:
    std::uint64_t sum(std::uint64_t (TraceReader::*of)() const) const {
        std::uint64_t total = 0;
        for (const auto& reader : readers_) total += (reader.get()->*of)();
        return total;
    }
    Readers readers_;
    std::unique_ptr<JoinedRanges> ranges_;
    std::unique_ptr<JoinedChunks> chunks_;
    std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> open_traces(std::span<const std::string> paths,
                                                 std::string_view format) {
    return open_traces(paths, format, 0);
}

Result<std::unique_ptr<TraceReader>> open_traces(std::span<const std::string> paths,
                                                 std::string_view format, unsigned threads) {
    if (paths.empty()) return fail("expected at least one trace");
    if (paths.size() == 1) return open_trace(paths.front(), format, threads);
    if (std::ranges::count(paths, "-") > 1) return fail("standard input can be read once only");
    Readers readers;
    for (const std::string& path : paths) readers.push_back(TRY(open_trace(path, format, threads)));
    // Site ids mean something within one recording only.
    for (const auto& reader : readers)
        if (reader->info().extra_json != readers.front()->info().extra_json)
            return fail(ErrorCode::unsupported,
                        "traces of different recordings have different sites; analyze each by itself "
                        "and merge the profiles");
    return std::make_unique<JoinedReader>(std::move(readers));
}

}  // namespace revisit
