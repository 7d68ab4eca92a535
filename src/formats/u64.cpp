// u64: little-endian 8-byte addresses and nothing else.
//
// As a stream, the reader hands out its buffer itself when it happens to be aligned, so that an engine
// at granularity 1 works on the file's bytes without a copy of its own.
#include "core/try.h"
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20;

struct Address {
    static constexpr std::size_t kBytes = 8;
    static constexpr ColumnSet kColumns{};
};

class U64Reader : public TraceReader {
 public:
    explicit U64Reader(ByteStream stream)
        : stream_(std::move(stream)), ranges_(RecordRanges<Address>::of(stream_)) {}

    Result<AccessBatch> next() override {
        stream_.consume(pending_);
        pending_ = 0;
        const auto bytes = TRY(stream_.peek(kBytesAtOnce));
        if (bytes.empty()) return AccessBatch{};
        std::size_t count = bytes.size() / 8;
        if (count == 0)
            return stream_.error_here(
                fmt::format("expected an address of 8 bytes, found the end after {}", bytes.size()));
        pending_ = count * 8;
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0)
            return AccessBatch{
                {reinterpret_cast<const std::uint64_t*>(bytes.data()), count}, {}, {}, {}, {}};
        copy_.resize(count);
        std::memcpy(copy_.data(), bytes.data(), pending_);
        return AccessBatch{copy_, {}, {}, {}, {}};
    }
    const AccessRanges* ranges() const override { return ranges_.get(); }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    ByteStream stream_;
    std::unique_ptr<RecordRanges<Address>> ranges_;
    std::size_t pending_ = 0;
    std::vector<std::uint64_t> copy_;
};

class U64Writer : public TraceWriter {
 public:
    explicit U64Writer(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
    Result<void> write(const AccessBatch& batch) override {
        return sink_->write(
            {reinterpret_cast<const char*>(batch.addresses.data()), batch.addresses.size_bytes()});
    }
    Result<void> finish(const TraceInfo&) override { return sink_->finish(); }
    ColumnSet holds() const override { return {}; }

 private:
    std::unique_ptr<ByteSink> sink_;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> open_u64(ByteStream stream) {
    return std::make_unique<U64Reader>(std::move(stream));
}
Result<std::unique_ptr<TraceWriter>> create_u64(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<U64Writer>(std::move(sink));
}

}  // namespace revisit
