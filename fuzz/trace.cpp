// Every trace parser on arbitrary bytes: it gives accesses or an Error, in bounded memory, and what it
// gave survives a trip through revisit's own format. The first byte picks the format (or sniffing).
// Packed bytes give the same whether they are unpacked as they are read or ahead, frame by frame.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "formats/columns.h"
#include "formats/format.h"
#include "formats/revisit_chunk.h"

using namespace revisit;

namespace {

class Bytes final : public ByteSource {
 public:
    explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        const std::size_t count = std::min(size, bytes_.size());
        std::copy_n(bytes_.data(), count, into);
        bytes_ = bytes_.subspan(count);
        return count;
    }

 private:
    std::span<const std::uint8_t> bytes_;
};

struct Unpacked {
    std::string bytes;
    bool fails = false, ends = false;
};

Unpacked unpack(std::span<const std::uint8_t> packed, bool ahead) {
    Unpacked out;
    auto source = unpacked(std::make_unique<Bytes>(packed), "fuzz", ahead ? 3 : 1);
    if (!source) return {"", true, false};
    std::uint8_t block[4096];
    while (out.bytes.size() < (1u << 20)) {
        const auto count = (*source)->read(block, sizeof block);
        out.fails = !count;
        out.ends = count && *count == 0;
        if (out.fails || out.ends) break;
        out.bytes.append(reinterpret_cast<const char*>(block), *count);
    }
    return out;
}

void check_unpacking_ahead(std::span<const std::uint8_t> packed) {
    constexpr std::uint8_t kZstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (packed.size() < 4 || !std::equal(std::begin(kZstd), std::end(kZstd), packed.begin())) return;
    const Unpacked plain = unpack(packed, false), ahead = unpack(packed, true);
    if (!plain.fails && !plain.ends) return;  // long
    if (plain.fails != ahead.fails || (plain.ends && plain.bytes != ahead.bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    check_unpacking_ahead({data + 1, size - 1});
    std::size_t choice = data[0] % (formats().size() + 1);
    std::string_view format = choice < formats().size() ? formats()[choice].name : std::string_view{};
    auto stream =
        ByteStream::of_memory(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), "fuzz");
    if (!stream) return 0;
    auto reader = open_stream(std::move(*stream), format);
    if (!reader) return 0;
    for (std::size_t accesses = 0; accesses < (1u << 20);) {
        auto batch = (*reader)->next();
        if (!batch || batch->count() == 0) break;
        accesses += batch->count();
        if (batch->count() > kChunkAccesses) continue;
        std::string packed;
        encode_accesses(*batch, packed);
        ChunkHeader header;
        std::memcpy(&header, packed.data(), sizeof header);
        std::span<const std::uint8_t> bytes(
            reinterpret_cast<const std::uint8_t*>(packed.data()) + sizeof header,
            packed.size() - sizeof header);
        if (!header.plausible()) std::abort();
        Columns back;
        if (!decode_accesses(header, bytes, back) || back.count() != batch->count()) std::abort();
        for (std::size_t i = 0; i < batch->count(); ++i)
            if (back.batch().at(i) != batch->at(i)) std::abort();
    }
    return 0;
}
