// champsim: 64-byte instruction records: u64 ip, u8 is_branch, u8 taken, u8 destination registers[2],
// u8 source registers[4], u64 destination memory[2], u64 source memory[4]; a memory slot of 0 is
// unused. An instruction's loads come before its stores. The site is the low half of the instruction's
// address.
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

struct Instruction {
    static constexpr std::size_t kBytes = 64;
    static constexpr ColumnSet kColumns{true, false, false, true};
    static void parse(const std::uint8_t* at, Columns& columns) {
        auto site = static_cast<std::uint32_t>(load<std::uint64_t>(at));
        for (int i = 0; i < 4; ++i)
            if (auto address = load<std::uint64_t>(at + 32 + 8 * i); address != 0)
                columns.push({address, site, 0, 0, 0});
        for (int i = 0; i < 2; ++i)
            if (auto address = load<std::uint64_t>(at + 16 + 8 * i); address != 0)
                columns.push({address, site, 0, 0, kWrite});
    }
    static void format(const Access& access, std::uint8_t* at) {
        store(at, std::uint64_t{access.site});
        store(at + ((access.flags & kWrite) != 0 ? 16 : 32), access.address);
    }
};

// Address 0 means "no access" in this format and cannot be written.
class ChampsimWriter : public FixedRecordWriter<Instruction> {
 public:
    using FixedRecordWriter::FixedRecordWriter;
    Result<void> write(const AccessBatch& batch) override {
        for (std::uint64_t address : batch.addresses)
            if (address == 0) return fail("the champsim format cannot hold an access to address 0");
        return FixedRecordWriter::write(batch);
    }
};

}  // namespace

// Proven by code: addresses of instructions that mostly follow each other, with branches among them. Or
// by what `convert` writes, in which every instruction has one access and nothing else.
bool recognize_champsim(std::span<const std::uint8_t> head) {
    const std::size_t instructions = head.size() / Instruction::kBytes;
    if (instructions < 8) return false;
    std::size_t follow = 0, branches = 0, bare = 0;
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < instructions; ++i) {
        const std::uint8_t* at = head.data() + i * Instruction::kBytes;
        auto word = [&](int number) { return load<std::uint64_t>(at + 8 * number); };
        if (at[8] > 1 || at[9] > at[8]) return false;
        const auto ip = word(0);
        follow += ip > before && ip - before <= 16;
        branches += at[8];
        before = ip;
        bare += word(1) == 0 && word(3) == 0 && word(5) == 0 && word(6) == 0 && word(7) == 0 &&
                (word(2) == 0) != (word(4) == 0);
    }
    return bare == instructions || (branches > 0 && 2 * follow > instructions);
}

Result<std::unique_ptr<TraceReader>> open_champsim(ByteStream stream) {
    return std::make_unique<MixedRecordReader<Instruction>>(std::move(stream));
}
Result<std::unique_ptr<TraceWriter>> create_champsim(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<ChampsimWriter>(std::move(sink));
}

}  // namespace revisit
