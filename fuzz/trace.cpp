// Every trace parser on arbitrary bytes: it gives accesses or an Error, in bounded memory, and what it
// gave survives a trip through revisit's own format. The first byte picks the format (or sniffing).
#include <cstdlib>
#include <cstring>

#include "formats/columns.h"
#include "formats/format.h"
#include "formats/revisit_chunk.h"

using namespace revisit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
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
