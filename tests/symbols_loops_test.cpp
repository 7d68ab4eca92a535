// Loops in machine code: a nest of two, as clang 19 compiles it for both machines.
#include <elf.h>
#include <gtest/gtest.h>

#include "symbols/loops.h"

namespace revisit {
namespace {

using Code = std::vector<std::uint8_t>;

// for (i…) { for (j…) s += a[i * n + j]; a[i] = s; }
const Code kArm = [] {
    Code bytes;
    for (std::uint32_t word :
         {0x7100043fu, 0x5400026bu, 0xd37e7c2au, 0xaa1f03e9u, 0x2a1f03e8u, 0x2a0103ebu,
          0xaa0003ecu, 0xaa0b03edu, 0xaa0c03eeu, 0xb84045cfu, 0xf10005adu, 0x0b0801e8u,
          0x54ffffa1u, 0xb8297808u, 0x91000529u, 0x8b0a018cu, 0xeb0b013fu, 0x54fffec1u,
          0x2a0803e0u, 0xd65f03c0u, 0x2a1f03e8u, 0x2a0803e0u, 0xd65f03c0u})
        for (int i = 0; i < 4; i++) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    return bytes;
}();
const Code kX86 = {0x85, 0xf6, 0x7e, 0x47, 0x89, 0xf1, 0x48, 0x8d, 0x14, 0x8d, 0x00, 0x00, 0x00,
                   0x00, 0x31, 0xf6, 0x49, 0x89, 0xf8, 0x31, 0xc0, 0x66, 0x66, 0x2e, 0x0f, 0x1f,
                   0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x45, 0x31, 0xc9, 0x66, 0x66, 0x66, 0x66,
                   0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x43, 0x03, 0x04, 0x88,
                   0x49, 0xff, 0xc1, 0x4c, 0x39, 0xc9, 0x75, 0xf4, 0x89, 0x04, 0xb7, 0x48, 0xff,
                   0xc6, 0x49, 0x01, 0xd0, 0x48, 0x39, 0xce, 0x75, 0xd6, 0xc3, 0x31, 0xc0, 0xc3};

class Loops : public ::testing::Test {
 protected:
    void SetUp() override {
#if !REVISIT_HAVE_CAPSTONE
        GTEST_SKIP() << "built without capstone";
#endif
    }
};

TEST_F(Loops, nest_of_two_on_both_machines) {
    std::vector<CodeLoop> arm = loops_in(kArm, 0x1000, EM_AARCH64);
    ASSERT_EQ(arm.size(), 2u);
    EXPECT_EQ(arm, (std::vector<CodeLoop>{{0x1024, 0x1030}, {0x101c, 0x1044}}));
    std::vector<CodeLoop> x86 = loops_in(kX86, 0x4000, EM_X86_64);
    EXPECT_EQ(x86, (std::vector<CodeLoop>{{0x4030, 0x403a}, {0x4020, 0x4048}}));

    EXPECT_EQ(innermost(arm, 0x1024), &arm[0]);
    EXPECT_EQ(innermost(arm, 0x1030), &arm[0]);
    EXPECT_EQ(innermost(arm, 0x1034), &arm[1]);
    EXPECT_EQ(innermost(arm, 0x1018), nullptr);
    EXPECT_EQ(innermost(arm, 0x1048), nullptr);
}

TEST_F(Loops, branches_to_elsewhere_are_none_and_data_is_stepped_over) {
    // From the middle on, the outer loop's head lies before the code.
    std::vector<CodeLoop> part = loops_in(std::span(kArm).subspan(0x24), 0x24, EM_AARCH64);
    EXPECT_EQ(part, (std::vector<CodeLoop>{{0x24, 0x30}}));
    Code with_data(8, 0xff);
    with_data.insert(with_data.end(), kArm.begin(), kArm.end());
    with_data.push_back(0x11);  // half an instruction
    EXPECT_EQ(loops_in(with_data, 0, EM_AARCH64), (std::vector<CodeLoop>{{0x2c, 0x38}, {0x24, 0x4c}}));
    EXPECT_TRUE(loops_in({}, 0, EM_X86_64).empty());
    EXPECT_TRUE(loops_in(kArm, 0, EM_RISCV).empty());
}

}  // namespace
}  // namespace revisit
