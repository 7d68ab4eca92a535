#include "formats/part.h"

#include <algorithm>

#include "core/try.h"
#include "formats/format.h"

namespace revisit {
namespace {

template <class T>
std::span<const T> piece(std::span<const T> column, std::size_t from, std::size_t count) {
    return column.empty() ? column : column.subspan(from, count);
}

// Accesses [low, high) of another reader.
class SkippingReader : public TraceReader {
 public:
    SkippingReader(std::unique_ptr<TraceReader> inner, std::uint64_t low, std::uint64_t high)
        : inner_(std::move(inner)), low_(low), high_(high) {}

    Result<AccessBatch> next() override {
        while (at_ < high_) {
            auto batch = inner_->next();
            if (!batch || batch->count() == 0) return batch;
            const std::uint64_t begin = at_, end = at_ + batch->count();
            at_ = end;
            if (end <= low_) continue;
            const std::size_t from = static_cast<std::size_t>(std::max(low_, begin) - begin);
            const std::size_t count = static_cast<std::size_t>(std::min(high_, end) - begin) - from;
            if (count == 0) continue;
            return AccessBatch{piece(batch->addresses, from, count), piece(batch->sites, from, count),
                               piece(batch->sizes, from, count), piece(batch->threads, from, count),
                               piece(batch->flags, from, count)};
        }
        return AccessBatch{};
    }
    TraceInfo info() const override { return inner_->info(); }
    std::uint64_t bytes_read() const override { return inner_->bytes_read(); }
    std::uint64_t bytes_total() const override { return inner_->bytes_total(); }

 private:
    std::unique_ptr<TraceReader> inner_;
    std::uint64_t low_, high_;
    std::uint64_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> open_trace_part(const std::string& path, std::string_view format,
                                                     unsigned part, unsigned parts) {
    if (path == "-") return fail("standard input cannot be read in parts; store the trace in a file");
    auto stream = TRY(ByteStream::open(path));
    auto entry = TRY(tell_format(stream, format, path));
    if (entry->record_bytes != 0 && !stream.packed() && stream.file_bytes_total() != 0) {
        // What is left over after the last whole record is the last part's to complain about.
        const std::uint64_t bytes = stream.file_bytes_total(), records = bytes / entry->record_bytes;
        auto edge = [&](std::uint64_t i) {
            return static_cast<std::uint64_t>(static_cast<unsigned __int128>(records) * i / parts) *
                   entry->record_bytes;
        };
        auto range =
            TRY(ByteStream::open_range(path, edge(part), part + 1 == parts ? bytes : edge(part + 1)));
        return entry->open(std::move(range));
    }
    std::uint64_t accesses = 0;
    auto counting = TRY(open_trace(path, format));
    for (;;) {
        auto batch = TRY(counting->next());
        if (batch.count() == 0) break;
        accesses += batch.count();
    }
    auto reader = open_trace(path, format);
    if (!reader) return reader;
    return std::make_unique<SkippingReader>(std::move(*reader), accesses * part / parts,
                                            accesses * (part + 1) / parts);
}

}  // namespace revisit
