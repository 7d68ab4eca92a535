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

// Times never fall, and a next request lies after this one.
bool recognize_oracle(std::span<const std::uint8_t> head) {
    std::size_t requests = head.size() / Request::kBytes;
    if (requests < 8) return false;
    std::uint32_t time = 0;
    for (std::size_t i = 0; i < requests; ++i) {
        const std::uint8_t* at = head.data() + i * Request::kBytes;
        auto now = load<std::uint32_t>(at);
        auto next = load<std::int64_t>(at + 16);
        if (now < time || (next != -1 && next <= static_cast<std::int64_t>(i)) ||
            next > std::int64_t{1} << 48)
            return false;
        time = now;
    }
    return true;
}

Result<std::unique_ptr<TraceReader>> open_oracle(ByteStream stream) {
    return std::make_unique<OracleReader>(std::move(stream));
}

}  // namespace revisit
