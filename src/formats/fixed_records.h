// Binary formats made of records of one size, little-endian.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "formats/byte_stream.h"
#include "formats/columns.h"
#include "formats/compress.h"
#include "revisit/trace.h"

namespace revisit {

static_assert(std::endian::native == std::endian::little,
              "binary traces are little-endian, and so are both targets");

template <class T>
T load(const std::uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
void store(std::uint8_t* at, T value) {
    std::memcpy(at, &value, sizeof value);
}

// `Record` gives kBytes, kColumns and `static void parse(const uint8_t*, Columns&)`.
template <class Record>
class FixedRecordReader : public TraceReader {
 public:
    explicit FixedRecordReader(ByteStream stream) : stream_(std::move(stream)) {
        columns_.has = Record::kColumns;
    }

    Result<AccessBatch> next() override {
        columns_.clear();
        while (columns_.count() < kReadBatch) {
            auto bytes = stream_.peek(Record::kBytes);
            if (!bytes) return std::unexpected(bytes.error());
            if (bytes->empty()) break;
            std::size_t records = bytes->size() / Record::kBytes;
            if (records == 0)
                return stream_.error_here(
                    fmt::format("expected a record of {} bytes, found the end after {}", Record::kBytes,
                                bytes->size()));
            std::size_t done = 0;
            for (; done < records && columns_.count() < kReadBatch; ++done)
                Record::parse(bytes->data() + done * Record::kBytes, columns_);
            stream_.consume(done * Record::kBytes);
        }
        return columns_.batch();
    }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    ByteStream stream_;
    Columns columns_;
};

// `Record` gives kBytes and `static void format(const Access&, uint8_t*)`.
template <class Record>
class FixedRecordWriter : public TraceWriter {
 public:
    explicit FixedRecordWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
    Result<void> write(const AccessBatch& batch) override {
        buffer_.assign(batch.count() * Record::kBytes, 0);
        for (std::size_t i = 0; i < batch.count(); ++i)
            Record::format(batch.at(i), buffer_.data() + i * Record::kBytes);
        return sink_->write({reinterpret_cast<const char*>(buffer_.data()), buffer_.size()});
    }
    Result<void> finish(const TraceInfo&) override { return sink_->finish(); }

 private:
    std::unique_ptr<ByteSink> sink_;
    std::vector<std::uint8_t> buffer_;
};

}  // namespace revisit
