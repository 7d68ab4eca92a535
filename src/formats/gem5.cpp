// gem5: packet traces of gem5's CommMonitor and MemTraceProbe: "gem5", then messages of protobuf, each
// after its length. The first is a header, the others are packets:
//
//     1 tick │ 2 command │ 3 address │ 4 size │ 5 flags │ 6 packet id │ 7 program counter
//
// Command 4 is a write; 2, 3 and 5 are responses and 0 is none: left out, as are packets whose flags
// say that they fetch instructions. The numbers of all other commands differ between gem5's versions,
// and count as reads. The low half of the program counter is the site, where packets have it.
// Read by hand: a message is a list of numbered integers and strings, and protobuf's library would be
// the largest of revisit's dependencies.
#include <fmt/format.h>

#include "core/try.h"
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

constexpr std::uint32_t kGem5Magic = 0x356d6567;  // "gem5"
constexpr std::size_t kLongestMessage = std::size_t{1} << 20;
constexpr std::uint64_t kInstructionFetch = 0x100;
enum Command : std::uint64_t {
    kNone = 0,
    kReadResponse = 2,
    kReadInvalidate = 3,
    kWriteRequest = 4,
    kWriteResponse = 5
};

// Protobuf's integer: seven bits per byte, lowest first. False where it does not end.
bool take_integer(std::span<const std::uint8_t>& from, std::uint64_t& value) {
    value = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(from.size(), 10); ++i) {
        value |= std::uint64_t{from[i] & 0x7fu} << 7 * i;
        if ((from[i] & 0x80) != 0) continue;
        from = from.subspan(i + 1);
        return true;
    }
    return false;
}

struct Packet {
    std::uint64_t fields[8] = {};
    std::uint8_t seen = 0;  // one bit per field
};

// False where the message is broken.
bool parse(std::span<const std::uint8_t> message, Packet& packet) {
    while (!message.empty()) {
        std::uint64_t key, value;
        if (!take_integer(message, key)) return false;
        std::size_t bytes = 0;
        switch (key & 7) {
            case 0:
                if (!take_integer(message, value)) return false;
                if (key >> 3 < 8) {
                    packet.fields[key >> 3] = value;
                    packet.seen |= static_cast<std::uint8_t>(1u << (key >> 3));
                }
                continue;
            case 1:
                bytes = 8;
                break;
            case 2:
                if (!take_integer(message, value) || value > message.size()) return false;
                bytes = static_cast<std::size_t>(value);
                break;
            case 5:
                bytes = 4;
                break;
            default:
                return false;
        }
        if (bytes > message.size()) return false;
        message = message.subspan(bytes);
    }
    return true;
}

class Gem5Reader : public TraceReader {
 public:
    explicit Gem5Reader(ByteStream stream) : stream_(std::move(stream)) {
        columns_.has = {true, true, false, true};
    }

    Result<AccessBatch> next() override {
        columns_.clear();
        if (!begun_) {
            const auto magic = TRY(stream_.peek(4));
            if (magic.size() < 4 || load<std::uint32_t>(magic.data()) != kGem5Magic)
                return stream_.error_here("expected \"gem5\"");
            stream_.consume(4);
            Packet header;
            TRY(take_message(header));
            begun_ = true;
        }
        while (columns_.count() < kReadBatch) {
            Packet packet;
            if (!TRY(take_message(packet))) break;
            constexpr unsigned kNeeded = 1u << 2 | 1u << 3 | 1u << 4;
            if ((packet.seen & kNeeded) != kNeeded)
                return stream_.error_here("expected a packet with command, address and size");
            const std::uint64_t command = packet.fields[2];
            if (command == kNone || command == kReadResponse || command == kReadInvalidate ||
                command == kWriteResponse || (packet.fields[5] & kInstructionFetch) != 0)
                continue;
            columns_.push({packet.fields[3], static_cast<std::uint32_t>(packet.fields[7]),
                           static_cast<std::uint32_t>(packet.fields[4]), 0,
                           command == kWriteRequest ? kWrite : std::uint8_t{0}});
        }
        return columns_.batch();
    }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    // False at the end of the file.
    Result<bool> take_message(Packet& packet) {
        auto bytes = TRY(stream_.peek(10));
        if (bytes.empty()) return false;
        auto rest = bytes;
        std::uint64_t length;
        if (!take_integer(rest, length) || length > kLongestMessage)
            return stream_.error_here("expected the length of a message");
        const std::size_t head = bytes.size() - rest.size();
        bytes = TRY(stream_.peek(head + static_cast<std::size_t>(length)));
        if (bytes.size() < head + length)
            return stream_.error_here(
                fmt::format("expected a message of {} bytes, found the end", length));
        if (!parse(bytes.subspan(head, static_cast<std::size_t>(length)), packet))
            return stream_.error_here("expected a message of protobuf");
        stream_.consume(head + static_cast<std::size_t>(length));
        return true;
    }

    ByteStream stream_;
    Columns columns_;
    bool begun_ = false;
};

}  // namespace

bool recognize_gem5(std::span<const std::uint8_t> head) {
    return head.size() >= 4 && load<std::uint32_t>(head.data()) == kGem5Magic;
}
Result<std::unique_ptr<TraceReader>> open_gem5(ByteStream stream) {
    return std::make_unique<Gem5Reader>(std::move(stream));
}

}  // namespace revisit
