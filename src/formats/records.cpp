// records: packed little-endian 16 bytes, u64 address, u32 site, u16 thread, u8 size, u8 flags.
#include <algorithm>

#include "core/try.h"
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

struct Record {
    static constexpr std::size_t kBytes = 16;
    static constexpr ColumnSet kColumns{true, true, true, true};
    static constexpr std::string_view kName = "a record";
    static void decode(const std::uint8_t* at, std::size_t count, Columns& columns) {
        if (!columns.has.sites && !columns.has.threads && !columns.has.flags)
            return decode_addresses(at, count, columns);
        columns.has = kColumns;
        columns.resize(count);
        for (std::size_t i = 0; i < count; ++i, at += kBytes) {
            columns.addresses[i] = load<std::uint64_t>(at);
            const auto rest = load<std::uint64_t>(at + 8);
            columns.sites[i] = static_cast<std::uint32_t>(rest);
            columns.threads[i] = static_cast<std::uint16_t>(rest >> 32);
            columns.sizes[i] = static_cast<std::uint8_t>(rest >> 48);
            columns.flags[i] = static_cast<std::uint8_t>(rest >> 56);
        }
    }
    // What an engine without sites or threads makes use of.
    static void decode_addresses(const std::uint8_t* at, std::size_t count, Columns& columns) {
        std::uint64_t* const addresses = columns.addresses.data();
        std::uint32_t* const sizes = columns.has.sizes ? columns.sizes.data() : nullptr;
        for (std::size_t i = 0; i < count; ++i) addresses[i] = load<std::uint64_t>(at + i * kBytes);
        if (sizes == nullptr) return;
        for (std::size_t i = 0; i < count; ++i) sizes[i] = at[i * kBytes + 14];
    }
    static std::size_t cut(const std::uint8_t* at, std::size_t count, unsigned shift,
                           std::vector<std::uint64_t>& blocks, std::size_t filled) {
        constexpr std::size_t kRun = 64;
        for (std::size_t left = count; left != 0;) {
            const std::size_t run = std::min(kRun, left);
            left -= run;
            if (!cut_run(at, run, shift, blocks.data() + filled))
                filled = cut_one_by_one(at, run, left, shift, blocks, filled);
            else
                filled += run;
            at += run * kBytes;
        }
        return filled;
    }
    // False where one of them reaches into another block than it begins in. Two at a time: left to
    // itself, gcc 12 takes one. Sums that are too large set the highest bit: x86_64 without SSE4.2
    // compares numbers of 64 bits by a dozen instructions.
    static bool cut_run(const std::uint8_t* at, std::size_t count, unsigned shift,
                        std::uint64_t* blocks) {
        using Two = std::uint64_t __attribute__((vector_size(16)));
        const std::uint64_t size_of_block = std::uint64_t{1} << shift;
        const Two inside = Two{} + (size_of_block - 1);
        const Two to_highest = Two{} + ((std::uint64_t{1} << 63) - 1 - size_of_block);
        Two crosses{};
        auto cut_two = [&](const std::uint8_t* one, const std::uint8_t* other) {
            const auto x = load<Two>(one), y = load<Two>(other);
            const Two address = __builtin_shufflevector(x, y, 0, 2);
            const Two size = __builtin_shufflevector(x, y, 1, 3) << 8 >> 56;
            crosses |= (address & inside) + size + to_highest;
            return address >> shift;
        };
        std::size_t i = 0;
        for (; i + 2 <= count; i += 2, at += 2 * kBytes) {
            if (i % 4 == 0) prefetch_ahead(at);
            const Two two = cut_two(at, at + kBytes);
            std::memcpy(blocks + i, &two, sizeof two);
        }
        if (i < count) blocks[i] = cut_two(at, at)[0];
        return (crosses[0] | crosses[1]) >> 63 == 0;
    }
    // `after`: records still to come, for which there has to be room.
    static std::size_t cut_one_by_one(const std::uint8_t* at, std::size_t count, std::size_t after,
                                      unsigned shift, std::vector<std::uint64_t>& blocks,
                                      std::size_t filled) {
        const std::size_t most = (std::size_t{254} >> shift) + 2;  // of one access
        if (blocks.size() < filled + count * most + after) blocks.resize(filled + count * most + after);
        for (std::size_t i = 0; i < count; ++i, at += kBytes) {
            const auto address = load<std::uint64_t>(at);
            const std::uint64_t reach = std::max<std::uint64_t>(1, at[14]) - 1;
            const std::uint64_t last = address > ~reach ? ~std::uint64_t{0} : address + reach;
            for (std::uint64_t block = address >> shift; block <= last >> shift; ++block)
                blocks[filled++] = block;
        }
        return filled;
    }
    static void format(const Access& access, std::uint8_t* at) {
        store(at, access.address);
        store(at + 8, access.site);
        store(at + 12, access.thread);
        at[14] = static_cast<std::uint8_t>(access.size);
        at[15] = access.flags;
    }
};

// A record's size is one byte: a larger access becomes several that lie side by side.
class RecordWriter : public TraceWriter {
 public:
    explicit RecordWriter(std::unique_ptr<ByteSink> sink) : inner_(std::move(sink)) {}
    Result<void> write(const AccessBatch& batch) override {
        constexpr std::uint32_t kLargest =
            128;  // a power of two, so that aligned pieces stay in one block
        if (std::all_of(batch.sizes.begin(), batch.sizes.end(),
                        [](std::uint32_t size) { return size <= 255; }))
            return inner_.write(batch);
        Columns split;
        split.has = {true, true, true, true};
        for (std::size_t i = 0; i < batch.count(); ++i) {
            Access access = batch.at(i);
            std::uint32_t left = access.size;
            while (left > 255) {
                std::uint32_t take = kLargest - static_cast<std::uint32_t>(access.address % kLargest);
                access.size = take;
                split.push(access);
                access.address += take;
                left -= take;
            }
            access.size = left;
            split.push(access);
            if (split.count() < kReadBatch) continue;
            TRY(inner_.write(split.batch()));
            split.clear();
        }
        return inner_.write(split.batch());
    }
    Result<void> finish(const TraceInfo& info) override { return inner_.finish(info); }
    ColumnSet holds() const override { return Record::kColumns; }

 private:
    FixedRecordWriter<Record> inner_;
};

}  // namespace

// The second half of each record ends with a size that is a power of two and a flag, and the first
// half, an address, does not: in a file of bare addresses both halves look alike.
bool recognize_records(std::span<const std::uint8_t> head) {
    const std::size_t records = head.size() / Record::kBytes;
    if (records < 8) return false;
    auto ends_as_record = [](const std::uint8_t* word) {
        return std::has_single_bit(word[6]) && word[6] <= 64 && word[7] <= 1;
    };
    for (std::size_t i = 0; i < records; ++i) {
        const std::uint8_t* at = head.data() + i * Record::kBytes;
        if (!ends_as_record(at + 8) || ends_as_record(at)) return false;
    }
    return true;
}

Result<std::unique_ptr<TraceReader>> open_records(ByteStream stream) {
    return std::make_unique<FixedRecordReader<Record>>(std::move(stream));
}
Result<std::unique_ptr<TraceWriter>> create_records(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<RecordWriter>(std::move(sink));
}

}  // namespace revisit
