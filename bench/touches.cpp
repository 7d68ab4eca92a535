// How many next touches counting through loops finds (machine/touch_count.h), and why not the others.
//
// The examples' hot loops are compiled for x86_64 and aarch64 and interpreted here. At random points,
// for lines whose next touch is further off than a window looks, counting to it is tried as the sampler
// does; interpreting all of it says what is true. Per kernel: found of asked, wrong ones, replays that
// were counted (machine/replay_count.h), and what ended the search for the others: an `unknown` value
// (and the instruction it ended before), `work` used up. Needs the examples' sources, and compilers.
// The program is freestanding code without relocations, so its constants are not what they are.
//
//   bench_touches EXAMPLES [STOPS [PART OF A NAME]]
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "machine/a64/a64.h"
#include "machine/loops.h"
#include "machine/side_buffer.h"
#include "machine/x64/ahead.h"
#include "x64_code.h"

namespace revisit::machine {
namespace {

constexpr std::uint64_t kCode = 0x10000, kData = 0x700000000000, kBytes = 24u << 20, kStack = 1u << 16;
constexpr unsigned kShift = 6;
constexpr std::uint64_t kWindow = 1024, kMost = 1500, kInstructions = 24000, kFar = 30000000;

struct World {
    std::vector<std::uint8_t> code, data = std::vector<std::uint8_t>(kBytes);

    const std::uint8_t* at(std::uint64_t address, unsigned bytes) const {
        if (address - kData < kBytes && address - kData + bytes <= kBytes)
            return data.data() + (address - kData);
        if (address - kCode < code.size() && address - kCode + bytes <= code.size())
            return code.data() + (address - kCode);
        return nullptr;
    }
};
// The program's own memory.
struct Real {
    World& world;
    bool fetch(std::uint64_t pc, std::uint32_t& to) {
        const std::uint8_t* from = world.at(pc, 4);
        if (from != nullptr) std::memcpy(&to, from, 4);
        return from != nullptr;
    }
    unsigned fetch(std::uint64_t pc, std::uint8_t (&to)[15]) {
        const std::uint8_t* from = world.at(pc, 15);
        if (from != nullptr) std::memcpy(to, from, 15);
        return from != nullptr ? 15 : 0;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        const std::uint8_t* from = world.at(address, bytes);
        if (from == nullptr) return Loaded::fault;
        value = 0;
        std::memcpy(&value, from, bytes);
        return Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool) {
        auto* to = const_cast<std::uint8_t*>(world.at(address, bytes));
        if (to != nullptr) std::memcpy(to, &value, bytes);
        return to != nullptr;
    }
};
// … under what looking ahead stores, as the sampler has it.
struct Seen : Real {
    SideBuffer side = {};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> lost = {};

    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        std::uint64_t aligned = address & ~std::uint64_t{7}, low = 0, high = 0;
        if (Real::load(aligned, 8, low) == Loaded::fault) return Loaded::fault;
        unsigned offset = address & 7, unknown = side.overlay(aligned, low);
        if (offset + bytes > 8) {
            if (Real::load(aligned + 8, 8, high) == Loaded::fault) return Loaded::fault;
            unknown |= static_cast<unsigned>(side.overlay(aligned + 8, high)) << 8;
        }
        value = low >> 8 * offset;
        if (offset) value |= high << (64 - 8 * offset);
        value = cut(value, bytes);
        for (auto [from, to] : lost)
            if (address < to && from < address + bytes) return Loaded::unknown;
        return unknown >> offset & ((1u << bytes) - 1) ? Loaded::unknown : Loaded::value;
    }
    bool loses_stores = false;
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        return side.store(address, bytes, value, known) || loses_stores;
    }
    void lose(std::uint64_t low, std::uint64_t high) { lost.emplace_back(low, high); }
};

struct X64Side {
    using State = X64State;
    using Loops = machine::Loops<X64>;
    using Table = X64Table;
    template <class Memory>
    using Ahead = X64Ahead<Memory>;
    static constexpr const char* kName = "x86_64";
    static void begin(State& s, std::uint64_t pc) {
        s.known = 0xffff;
        s.flags_known = kAllFlags;
        s.pc = kCode + pc;
        s.r[7] = kData;
        s.r[4] = kData + kBytes - kStack - 8;
    }
    static std::uint64_t stack(const State& s) { return (s.r[4] - 128) & ~std::uint64_t{7}; }
    template <class Memory>
    static Ahead<Memory> ahead(State& s, Memory& memory, Table& table) {
        return {s, memory, &table, true, false};
    }
};
struct A64Side {
    using State = A64State;
    using Loops = machine::Loops<A64>;
    using Table = QuickTable;
    template <class Memory>
    using Ahead = A64Ahead<Memory>;
    static constexpr const char* kName = "aarch64";
    static void begin(State& s, std::uint64_t pc) {
        s.known = ~0u;
        s.flags_known = true;
        s.pc = kCode + pc;
        s.x[0] = kData;
        s.x[31] = kData + kBytes - kStack;
    }
    static std::uint64_t stack(const State& s) { return s.x[31] & ~std::uint64_t{7}; }
    template <class Memory>
    static Ahead<Memory> ahead(State& s, Memory& memory, Table& table) {
        return {s, memory, nullptr, &table};
    }
};

struct Kernel {
    const char *name, *example, *body;
};
// m is the data; what is not set below is zero.
constexpr Kernel kKernels[] = {
    {"matmul ijk", "matmul.c", "multiply_ijk(800, m, m + 640000, m + 1280000);"},
    {"matmul ikj", "matmul.c", "multiply_ikj(800, m, m + 640000, m + 1280000);"},
    {"matmul tiled", "matmul.c", "multiply_tiled(800, m, m + 640000, m + 1280000);"},
    {"stencil plain", "stencil.c",
     "double* p[2] = {m, m + 700000}; double** volatile q = p; plain(q, 500, 100);"},
    {"stencil blocked", "stencil.c",
     "double* p[2] = {m, m + 700000}; double** volatile q = p; blocked(q, 500, 100);"},
    {"spmv", "spmv.c",
     "int rows = 20000, *first = (int*)m, *column = (int*)(m + 20000); double *x = m + 200000, *y = m "
     "+ "
     "220000; for (int r = 0; r < 1000; r++) { multiply(rows, first, column, m + 240000, x, y); "
     "double* "
     "s = x; x = y; y = s; }"},
    {"spmv set up", "spmv.c",
     "int rows = 20000, *first = (int*)m, *column = (int*)(m + 20000); unsigned state = 7; for (int "
     "row = "
     "0; row <= rows; row++) { first[row] = row * 8; for (int i = 0; i < 8 && row < rows; i++) { state "
     "= "
     "state * 1664525u + 1013904223u; column[row * 8 + i] = (int)((state >> 1) % (unsigned)rows); } }"},
};

X64Code compile(const Kernel& kernel, const std::string& examples, const std::string& compiler,
                const std::string& options) {
    std::string source = "#include \"" + examples + "/" + kernel.example +
                         "\"\nvoid hot(double* m) { " + kernel.body + " }\n";
    return compile_for_x64(source,
                           options + " -w -fno-stack-protector" +
                               (compiler[0] == 'c' ? " -I/usr/x86_64-linux-gnu/include" : ""),
                           compiler);
}

// Whether a replay from `from`, with the stack as it was, to `to`, on memory as it is now, counts the
// accesses between: 0 no, 1 yes, 2 wrongly.
template <class Side, class State>
unsigned replay(World& world, const State& from, const std::vector<std::uint64_t>& stack,
                const State& to, std::uint64_t truth, typename Side::Table& table,
                typename Side::Loops& loops) {
    auto seen = std::make_unique<Seen>(Seen{{world}});
    State state = to;
    ReplayEnd<State> end;
    if (!find_replay_end(Side::ahead(state, *seen, table), state, end)) return 0;
    seen = std::make_unique<Seen>(Seen{{world}});
    seen->loses_stores = true;
    for (std::size_t k = 0; k < stack.size(); k++)
        seen->store(Side::stack(from) + 8 * k, 8, stack[k], true);
    state = from;
    ReplayCount counted = count_replay(Side::ahead(state, *seen, table), state, *seen, loops, end,
                                       kShift, 400000, 1u << 30);
    return counted.accesses == 0 ? 0 : counted.accesses == truth ? 1 : 2;
}

template <class Side>
void run(const Kernel& kernel, const X64Code& code, const X64Code* set_up, const std::string& what,
         unsigned stops) {
    using State = typename Side::State;
    auto world = std::make_unique<World>();
    auto table = std::make_unique<typename Side::Table>();
    auto loops = std::make_unique<typename Side::Loops>();
    std::mt19937_64 random(1);
    Real real{*world};
    State state;
    auto begin = [&](const X64Code& of) {
        world->code = of.text;
        world->code.resize(world->code.size() + 64);
        state = {};
        Side::begin(state, of.functions.at("hot"));
    };
    if (set_up != nullptr) {
        begin(*set_up);
        Side::ahead(state, real, *table).run(1u << 30, [] { return true; });
    }
    begin(code);
    unsigned asked = 0, found = 0, wrong = 0, replayed[3] = {};
    auto count = [&](std::uint64_t instructions) {  // the program goes on so far
        auto ahead = Side::ahead(state, real, *table);
        std::uint64_t accesses = 0;
        ahead.run(instructions, [&] {
            accesses += blocks_of(ahead.touched(), kShift);
            return true;
        });
        return accesses;
    };
    for (unsigned stop = 0; stop < stops; stop++) {
        count(random() % 100000);
        State from = state;
        std::vector<std::uint64_t> stack(128);
        for (std::size_t k = 0; k < stack.size(); k++)
            real.load(Side::stack(from) + 8 * k, 8, stack[k]);
        std::uint64_t accesses = count(10000 + random() % 100000);
        replayed[replay<Side>(*world, from, stack, state, accesses, *table, *loops)]++;
    }
    std::map<std::string, unsigned> why;
    for (unsigned stop = 0; stop < 60 * stops && asked < stops; stop++) {
        auto ahead = Side::ahead(state, real, *table);
        if (ahead.run(1000 + random() % 100000, [] { return true; }) != Step::done) break;
        if (ahead.run(10000, [&] { return false; }) != Step::access) break;
        std::uint64_t block = ahead.touched().address >> kShift;
        State later = state;
        auto seen = std::make_unique<Seen>(Seen{{*world}});
        auto looking = Side::ahead(later, *seen, *table);
        TouchCount counted = count_to_touch(looking, later, *seen, *loops, NextTouch{block}, kShift,
                                            kMost, kInstructions, [](std::uint64_t, std::uint64_t) {});
        std::uint64_t distance = 0, truth = 0;
        ahead.run(kFar, [&] {
            const Touched& op = ahead.touched();
            for (unsigned k = 0; k < op.pieces && truth == 0; k++) {
                std::uint64_t low = op.address + k * op.bytes, high = low + op.bytes - 1;
                for (std::uint64_t b = low >> kShift; b <= high >> kShift && truth == 0; b++)
                    if (++distance, b == block) truth = distance;
            }
            return truth == 0;
        });
        if (truth != 0 && truth <= kWindow) continue;
        asked++;
        found += counted.distance != 0;
        wrong += counted.distance != 0 && counted.distance != truth;
        if (counted.distance != 0) continue;
        char text[80];
        std::snprintf(text, sizeof text,
                      counted.why == TouchCount::Why::unknown ? "unknown at %lx" : "work",
                      later.pc - kCode);
        why[text]++;
    }
    std::printf("%-16s %-8s %-44s %3u of %3u found, %u wrong, %3u of %u replayed, %u wrong",
                kernel.name, Side::kName, what.c_str(), found, asked, wrong, replayed[1] + replayed[2],
                stops, replayed[2]);
    for (auto& [text, times] : why) std::printf("; %s: %u", text.c_str(), times);
    std::puts("");
    std::fflush(stdout);
}

}  // namespace
}  // namespace revisit::machine

using namespace revisit::machine;

int main(int argc, char** argv) {
    if (argc < 2) return std::puts("usage: bench_touches EXAMPLES [STOPS [PART OF A NAME]]"), 2;
    unsigned stops = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 30;
    const struct {
        const char *compiler, *options;
        bool is_x64;
    } kCompilers[] = {{"x86_64-linux-gnu-gcc", "-O2", true},
                      {"x86_64-linux-gnu-gcc", "-O3", true},
                      {"clang-19 --target=x86_64-linux-gnu", "-O2", true},
                      {"clang-19 --target=x86_64-linux-gnu", "-O3 -mavx2", true},
                      {"gcc", "-O2", false},
                      {"gcc", "-O3", false}};
    for (const Kernel& kernel : kKernels) {
        if (kernel.name == std::string("spmv set up")) break;
        for (const auto& one : kCompilers) {
            std::string what = std::string(one.compiler) + " " + one.options;
            if (argc > 3 && (kernel.name + (" " + what)).find(argv[3]) == std::string::npos) continue;
            X64Code code = compile(kernel, argv[1], one.compiler, one.options), set_up;
            if (code.text.empty()) continue;
            bool needs = kernel.name == std::string("spmv");
            if (needs) set_up = compile(*(std::end(kKernels) - 1), argv[1], one.compiler, "-O1");
            if (one.is_x64)
                run<X64Side>(kernel, code, needs ? &set_up : nullptr, what, stops);
            else
                run<A64Side>(kernel, code, needs ? &set_up : nullptr, what, stops);
        }
    }
}
