// oracle: libCacheSim's oracleGeneral, 24 packed bytes: u32 time, u64 object id, u32 size, i64 index of
// the object's next request (-1 = none). An object is one thing whatever its size, so the id is taken
// as an address and the size left out; analyze at granularity 1 to keep neighbouring ids apart, which
// is what `analyze` does with this format unless told otherwise.
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

struct Request {
    static constexpr std::size_t kBytes = 24;
    static constexpr ColumnSet kColumns{};
    static constexpr std::string_view kName = "a record";
    static void decode(const std::uint8_t* at, std::size_t count, Columns& columns) {
        for (std::size_t i = 0; i < count; ++i)
            columns.addresses[i] = load<std::uint64_t>(at + i * kBytes + 4);
    }
};

class OracleReader : public FixedRecordReader<Request> {
 public:
    using FixedRecordReader::FixedRecordReader;
    TraceInfo info() const override {
        TraceInfo info;
        info.natural_granularity = 1;
        return info;
    }
};

}  // namespace

// Times never fall, and the next request of an object is where the record says: bare addresses may look
// like the former, never like the latter. Requests are counted from 0 or from 1. A trace that begins
// without any reuse proves nothing.
bool recognize_oracle(std::span<const std::uint8_t> head) {
    constexpr std::size_t kLinks = 4;  // that prove it
    const std::size_t requests = head.size() / Request::kBytes;
    auto object = [&](std::size_t i) {
        return load<std::uint64_t>(head.data() + i * Request::kBytes + 4);
    };
    auto next_of = [&](std::size_t i) {
        return load<std::int64_t>(head.data() + i * Request::kBytes + 16);
    };
    std::uint32_t time = 0;
    for (std::size_t i = 0; i < requests; ++i) {
        const auto now = load<std::uint32_t>(head.data() + i * Request::kBytes);
        if (now < time || next_of(i) < -1) return false;
        time = now;
    }
    for (const std::int64_t first : {0, 1}) {
        std::size_t links = 0;
        bool all = true;
        for (std::size_t i = 0; i < requests && all; ++i) {
            const std::int64_t next = next_of(i) - first;
            if (next_of(i) == -1 || next >= static_cast<std::int64_t>(requests)) continue;
            all = next > static_cast<std::int64_t>(i) &&
                  object(static_cast<std::size_t>(next)) == object(i);
            links += all;
        }
        if (all && links >= kLinks) return true;
    }
    return false;
}

Result<std::unique_ptr<TraceReader>> open_oracle(ByteStream stream) {
    return std::make_unique<OracleReader>(std::move(stream));
}

}  // namespace revisit
