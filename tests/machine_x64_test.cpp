// The x86_64 look-ahead: its decoder against capstone, and what it computes against the same C code
// compiled for this machine. The x86_64 code comes from clang, which compiles for it anywhere; without
// it these are skipped.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "machine/x64/ahead.h"
#include "x64_code.h"

#if REVISIT_HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

namespace revisit::machine {
namespace {

// Loops, branches, division, bytes and words, structures, tables, recursion. No calls outside, no data.
#define SHARED_CODE                                                                                \
    typedef unsigned long u64;                                                                     \
    typedef unsigned int u32;                                                                      \
    typedef unsigned char u8;                                                                      \
    struct Item {                                                                                  \
        u64 key;                                                                                   \
        int count;                                                                                 \
        short small;                                                                               \
        u8 tag;                                                                                    \
        struct Item* next;                                                                         \
    };                                                                                             \
    static __attribute__((noinline)) u64 mix(u64 x) {                                              \
        x ^= x >> 31;                                                                              \
        x *= 0x9e3779b97f4a7c15ul;                                                                 \
        x = x << 13 | x >> 51;                                                                     \
        return x - (x >> 7);                                                                       \
    }                                                                                              \
    static __attribute__((noinline)) u64 depth(u64 n, u64* m) {                                    \
        if (n < 2) return n;                                                                       \
        m[n % 64] += n;                                                                            \
        return depth(n - 1, m) + depth(n / 2, m) * 3;                                              \
    }                                                                                              \
    u64 work(u64 seed, u64* m) {                                                                   \
        struct Item* items = (struct Item*)(m + 128);                                              \
        u32* words = (u32*)(m + 1024);                                                             \
        u8* bytes = (u8*)(m + 1600);                                                               \
        u64 sum = seed;                                                                            \
        for (int i = 0; i < 60; i++) {                                                             \
            u64 x = mix(seed + (u64)i);                                                            \
            struct Item one = {x, (int)(x >> 40), (short)(x >> 20), (u8)x, i ? &items[i - 1] : 0}; \
            items[i] = one;                                                                        \
            words[i] = (u32)(x >> 11);                                                             \
            bytes[i] = (u8)(x >> 5);                                                               \
            sum += x % 97 + (u64)((long)x / 1001) + (u32)x % 13 + (u64)(int)((int)x / 7);          \
        }                                                                                          \
        for (int i = 1; i < 60; i++)                                                               \
            for (int k = i; k > 0 && words[k - 1] > words[k]; k--) {                               \
                u32 t = words[k];                                                                  \
                words[k] = words[k - 1];                                                           \
                words[k - 1] = t;                                                                  \
            }                                                                                      \
        for (struct Item* p = &items[59]; p; p = p->next) {                                        \
            p->count += p->small;                                                                  \
            p->tag ^= bytes[p->count & 31];                                                        \
            sum += (u64)(long)p->count + p->tag + (p->key > sum ? p->key >> 9 : p->key << 3);      \
            if ((p->key & 0xff) == 0x80 || (short)p->key < 0) sum = ~sum - p->tag;                 \
        }                                                                                          \
        for (int i = 0; i < 59; i++) sum = sum * 31 + words[i] + (bytes[i] < bytes[i + 1]);        \
        return sum ^ depth(9 + seed % 5, m) ^ (u64)__builtin_ctzl(sum | 1ul << 40) ^               \
               (sum >> (seed & 63));                                                               \
    }
// Numbers with a fraction, compared, converted and computed with. No constants: these would be data.
#define SHARED_FLOATS                                                                   \
    typedef unsigned long u64;                                                          \
    u64 work(u64 seed, u64* m) {                                                        \
        double* d = (double*)(m + 128);                                                 \
        float* f = (float*)(m + 400);                                                   \
        double one = (double)(int)(1 + (seed >> 63)), sum = one;                        \
        for (int i = 0; i < 60; i++) {                                                  \
            d[i] = (double)(int)(seed % 10007 * (u64)(i + 7) % 5003) / (double)(i + 3); \
            f[i] = (float)d[i] * (float)(i - 30);                                       \
        }                                                                               \
        for (int i = 1; i < 60; i++)                                                    \
            for (int k = i; k > 0 && d[k - 1] > d[k]; k--) {                            \
                double t = d[k];                                                        \
                d[k] = d[k - 1];                                                        \
                d[k - 1] = t;                                                           \
            }                                                                           \
        for (int i = 0; i < 60; i++) {                                                  \
            if (d[i] < (double)f[i])                                                    \
                sum += d[i];                                                            \
            else if (f[i] >= (float)sum)                                                \
                sum = sum / (d[i] + one);                                               \
            else                                                                        \
                sum = sum - d[i];                                                       \
            if (sum == d[i]) m[2]++;                                                    \
            m[i & 31] += (u64)(long)sum + (u64)(long)(int)f[i];                         \
            d[i] = sum;                                                                 \
        }                                                                               \
        return (u64)(long)(sum * d[7]) ^ (u64)(long)(f[9] - (float)sum);                \
    }
#define TEXT_OF(...) TEXT_OF_(__VA_ARGS__)
#define TEXT_OF_(...) #__VA_ARGS__
constexpr const char *kSource = TEXT_OF(SHARED_CODE), *kFloats = TEXT_OF(SHARED_FLOATS);

namespace native {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
SHARED_CODE
namespace floats {
SHARED_FLOATS
}
#pragma GCC diagnostic pop
}  // namespace native

// Code at 0x10000, data at its own address, everything else faults.
struct CodeAndData {
    std::vector<std::uint8_t> code;
    std::vector<std::uint8_t> data;
    static constexpr std::uint64_t kCode = 0x10000, kData = 0x700000000000;

    unsigned fetch(std::uint64_t pc, std::uint8_t (&to)[15]) {
        if (pc < kCode || pc >= kCode + code.size()) return 0;
        auto bytes = static_cast<unsigned>(std::min<std::uint64_t>(15, kCode + code.size() - pc));
        std::memcpy(to, code.data() + (pc - kCode), bytes);
        return bytes;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        if (address < kData || address + bytes > kData + data.size()) return Loaded::fault;
        value = 0;
        std::memcpy(&value, data.data() + (address - kData), bytes);
        return Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        if (!known || address < kData || address + bytes > kData + data.size()) return false;
        std::memcpy(data.data() + (address - kData), &value, bytes);
        return true;
    }
};

void compare_with_native(const char* source, unsigned long (*work)(unsigned long, unsigned long*),
                         std::size_t least) {
    for (const char* options : {"-O0", "-O1", "-O2 -fno-vectorize -fno-slp-vectorize",
                                "-Os -fno-vectorize -fno-slp-vectorize", "-O1 -mavx"}) {
        X64Code compiled = compile_for_x64(source, options);
        if (compiled.text.empty()) GTEST_SKIP() << "no clang-19 for x86_64";
        const std::vector<std::uint8_t>& code = compiled.text;
        std::uint64_t entry = compiled.functions["work"];
        X64Table table;  // where it is kept, runs of instructions are lifted together
        const std::pair<X64Table*, std::size_t> ways[] = {{nullptr, 0}, {&table, 0}, {&table, 3}};
        for (unsigned long seed : {1ul, 77777ul, 0x123456789abcdeful})
            for (const auto& [kept, stops_every] : ways) {
                CodeAndData memory{code, {}};
                memory.data.resize(1 << 20);
                X64State state;
                state.known = 0xffff;
                state.flags_known = kAllFlags;
                for (std::uint8_t& known : state.v_known) known = 15;
                state.k_known = 255;
                state.r[7] = seed;                // rdi
                state.r[6] = CodeAndData::kData;  // rsi
                state.r[4] = CodeAndData::kData + memory.data.size() - 64;
                state.pc = CodeAndData::kCode + entry;
                std::uint64_t back = 0xdead;
                memory.store(state.r[4], 8, back, true);
                X64Ahead<CodeAndData> ahead(state, memory, kept);
                std::size_t accesses = 0;
                Step step = Step::access;
                while (step == Step::access)
                    step = ahead.run(3000000, [&] {
                        return ++accesses > 0 && (stops_every == 0 || accesses % stops_every != 0);
                    });
                std::vector<unsigned long> expected_data(1 << 17);
                unsigned long expected = work(seed, expected_data.data());
                ASSERT_EQ(step, Step::stop) << options;  // at the return address, where no code is
                ASSERT_EQ(state.pc, back) << options << " stopped at " << std::hex << state.pc;
                ASSERT_TRUE(state.is_known(0));
                EXPECT_EQ(state.r[0], expected) << options << " " << seed;
                EXPECT_EQ(std::memcmp(memory.data.data(), expected_data.data(), 64 * 8), 0) << options;
                EXPECT_GT(accesses, least);
            }
    }
}

TEST(WatchX64, computes_what_the_same_code_does_here) {
    compare_with_native(kSource, native::work, 1000);
}

TEST(WatchX64, computes_floating_point_as_this_machine_does) {
    compare_with_native(kFloats, native::floats::work, 400);
}

#if REVISIT_HAVE_CAPSTONE
struct Compared {
    std::size_t known = 0, all = 0;
    std::map<std::string, std::string> differences;  // one of each kind
    std::map<std::string, std::size_t> left_out;
};

void compare_with_capstone(const std::vector<std::uint8_t>& code, Compared& compared) {
    csh handle;
    ASSERT_EQ(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    cs_insn* found = cs_malloc(handle);
    const std::uint8_t* at = code.data();
    std::size_t left = code.size();
    std::uint64_t address = 0;
    static const x86_reg kNames[] = {X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX,
                                     X86_REG_RSP, X86_REG_RBP, X86_REG_RSI, X86_REG_RDI,
                                     X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
                                     X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15};
    auto name = [&](std::uint8_t r) {
        return r == X64Instruction::kNone ? X86_REG_INVALID
               : r == X64Instruction::kPc ? X86_REG_RIP
                                          : kNames[r];
    };
    while (left > 0) {
        const std::uint8_t* here = at;
        std::size_t here_left = left;
        if (!cs_disasm_iter(handle, &at, &left, &address, found)) {
            at = here + 1;
            left = here_left - 1;
            continue;
        }
        compared.all++;
        X64Instruction i =
            decode_x64(here, static_cast<unsigned>(std::min<std::size_t>(15, here_left)));
        if (i.length == 0) {
            compared.left_out[found->mnemonic]++;
            continue;
        }
        compared.known++;
        auto check = [&](bool same, const char* what) {
            if (same) return true;
            std::string text = std::string(what) + ": " + found->mnemonic + " " + found->op_str + ":";
            for (unsigned k = 0; k < found->size; k++) {
                char byte[4];
                std::snprintf(byte, sizeof byte, " %02x", here[k]);
                text += byte;
            }
            compared.differences.emplace(std::string(what) + found->mnemonic, text);
            return false;
        };
        if (!check(i.length == found->size, "length")) continue;
        if (i.op == X64Instruction::Op::nop ||
            (i.op >= X64Instruction::Op::movs && i.op <= X64Instruction::Op::cmps))
            continue;
        const cs_x86& detail = found->detail->x86;
        const cs_x86_op* operand = nullptr;
        for (unsigned k = 0; k < detail.op_count; k++)
            if (detail.operands[k].type == X86_OP_MEM) operand = &detail.operands[k];
        if (!check(i.has_memory == (operand != nullptr), "memory") || operand == nullptr) continue;
        check(name(i.base) == operand->mem.base, "base");
        // capstone 4 takes the index of some EVEX instructions for a vector register.
        bool is_vector = operand->mem.index >= X86_REG_XMM0 && operand->mem.index <= X86_REG_ZMM31;
        if (operand->mem.index != X86_REG_RIZ && !is_vector)
            check(name(i.index) == operand->mem.index, "index");
        check(i.displacement == operand->mem.disp, "displacement");
        if (i.index != X64Instruction::kNone) check(i.scale == operand->mem.scale, "scale");
        if (i.op != X64Instruction::Op::lea) check(i.memory_bytes == operand->size, "size");
    }
    cs_free(found, 1);
    cs_close(&handle);
}

TEST(WatchX64, decodes_as_capstone_does) {
    Compared compared;
    std::string floats =
        "double f(double* a, float* b, int n) { double s = 0; for (int i = 0; i < n; i++) { a[i] = "
        "a[i] * b[i] + (double)i; "
        "s += a[i] > 3 ? a[i] / 2 : -a[i]; } return s; } void g(int* a, unsigned char* b, long* c, int "
        "n) { for (int i = 0; i < n; "
        "i++) { a[i] += b[i] * 3; c[i] ^= (long)a[i] << 7; b[i] = (unsigned char)(c[i] > 4 ? 1 : b[i] "
        "+ 7); } } "
        "struct S { double a, b; float c; int d; } ; void h(struct S* a, struct S* b) { *a = *b; a->c "
        "+= (float)b->d; }";
    for (const char* options :
         {"-O0", "-O1", "-O2", "-O3 -mavx2 -mbmi -mbmi2 -mpopcnt",
          "-O3 -mavx512f -mavx512vl -mavx512bw -mprefer-vector-width=512", "-Os -msse4.2"})
        for (const std::string& source : {std::string(kSource), floats}) {
            X64Code compiled = compile_for_x64(source, options);
            if (compiled.text.empty()) GTEST_SKIP() << "no clang-19 for x86_64";
            compare_with_capstone(compiled.text, compared);
        }
    EXPECT_GT(compared.all, 1500u);
    EXPECT_GT(compared.known, compared.all * 98 / 100);
    // Whole programs, where the machine has some, and those that a variable names.
    std::vector<std::string> paths = {"/usr/x86_64-linux-gnu/lib/libc.so.6",
                                      "/lib/x86_64-linux-gnu/libc.so.6"};
    if (const char* more = std::getenv("REVISIT_X64_PROGRAMS")) {
        std::istringstream words(more);
        for (std::string path; words >> path;) paths.push_back(path);
    }
    for (const std::string& path : paths) {
        std::ifstream file(path, std::ios::binary);
        std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        Elf64_Ehdr header;
        if (bytes.size() < sizeof header) continue;
        std::memcpy(&header, bytes.data(), sizeof header);
        for (unsigned k = 0; k < header.e_phnum; k++) {
            Elf64_Phdr part;
            std::memcpy(&part, bytes.data() + header.e_phoff + k * sizeof part, sizeof part);
            if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
            std::vector<std::uint8_t> code(bytes.data() + part.p_offset,
                                           bytes.data() + part.p_offset + part.p_filesz);
            compare_with_capstone(code, compared);
        }
    }
    // What capstone 4 has wrong itself.
    for (const char* wrong : {"sizefrstor", "sizefnsave", "sizefnstsw", "sizecomisd", "sizecomiss",
                              "sizevcomisd", "sizevcomiss"})
        compared.differences.erase(wrong);
    for (const auto& [kind, text] : compared.differences) ADD_FAILURE() << text;
    RecordProperty("known", static_cast<int>(compared.known));
    RecordProperty("instructions", static_cast<int>(compared.all));
    if (std::getenv("REVISIT_X64_PROGRAMS") == nullptr) return;
    std::printf("%zu of %zu instructions known\n", compared.known, compared.all);
    for (const auto& [mnemonic, times] : compared.left_out)
        std::printf("  left out: %s %zu\n", mnemonic.c_str(), times);
}
#endif

}  // namespace
}  // namespace revisit::machine
