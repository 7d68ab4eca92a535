// Instructions of x86_64, one after the other, to be stepped through: each that x64_ahead.h computes,
// with operands in registers and in memory, in all widths. What they compute means nothing; that the
// interpreter says the same is all. `from` has 256 bytes, `to` as many, both aligned to 64.
#pragma once

#include <cstdint>

#include "x64_floats.h"

namespace revisit::machine::instructions {

// clang-format off
// Of two operands, in the encodings that have two and three.
#define REVISIT_PACKED_INTEGERS(f, r) \
    f("paddb", r) f("paddw", r) f("paddd", r) f("paddq", r) f("psubb", r) f("psubw", r) \
    f("psubd", r) f("psubq", r) f("paddsb", r) f("paddsw", r) f("paddusb", r) f("paddusw", r) \
    f("psubsb", r) f("psubsw", r) f("psubusb", r) f("psubusw", r) f("pminub", r) f("pmaxub", r) \
    f("pminsw", r) f("pmaxsw", r) f("pcmpeqb", r) f("pcmpeqw", r) f("pcmpeqd", r) \
    f("pcmpgtb", r) f("pcmpgtw", r) f("pcmpgtd", r) f("pand", r) f("pandn", r) f("por", r) \
    f("pxor", r) f("pavgb", r) f("pavgw", r) f("pmullw", r) f("pmulhw", r) f("pmulhuw", r) \
    f("pmuludq", r) f("pmaddwd", r) f("psadbw", r) f("punpcklbw", r) f("punpcklwd", r) \
    f("punpckldq", r) f("punpcklqdq", r) f("punpckhbw", r) f("punpckhwd", r) f("punpckhdq", r) \
    f("punpckhqdq", r) f("packsswb", r) f("packssdw", r) f("packuswb", r) f("unpcklps", r) \
    f("unpckhps", r) f("unpcklpd", r) f("unpckhpd", r) f("andps", r) f("andnps", r) f("orps", r) \
    f("xorps", r) f("andpd", r)
#define REVISIT_PACKED_FLOATS(f, r) \
    f("addps", r) f("mulps", r) f("subps", r) f("divps", r) f("minps", r) f("maxps", r) \
    f("addpd", r) f("mulpd", r) f("subpd", r) f("divpd", r) f("minpd", r) f("maxpd", r)
#define REVISIT_PACKED_SHIFTS(f, r) \
    f("psllw", r) f("pslld", r) f("psllq", r) f("psrlw", r) f("psrld", r) f("psrlq", r) \
    f("psraw", r) f("psrad", r)
#define REVISIT_PACKED_SSE4(f, r) \
    f("pshufb", r) f("pcmpeqq", r) f("pcmpgtq", r) f("pminsb", r) f("pmaxsb", r) f("pminuw", r) \
    f("pmaxuw", r) f("pminsd", r) f("pmaxsd", r) f("pminud", r) f("pmaxud", r) f("pmulld", r) \
    f("pmuldq", r) f("packusdw", r) f("phaddw", r) f("pmaddubsw", r) f("psignb", r) \
    f("pmulhrsw", r)
#define REVISIT_WIDENING(f, r) \
    f("pmovzxbw", r) f("pmovzxbd", r) f("pmovzxbq", r) f("pmovzxwd", r) f("pmovzxwq", r) \
    f("pmovzxdq", r) f("pmovsxbw", r) f("pmovsxbd", r) f("pmovsxbq", r) f("pmovsxwd", r) \
    f("pmovsxwq", r) f("pmovsxdq", r)
#define REVISIT_UNARY(f, r) \
    f("pabsb", r) f("pabsw", r) f("pabsd", r) f("movsldup", r) f("movshdup", r)
#define REVISIT_OLD(m, r) m " %%xmm1, %%xmm0\n" m " 16(%0), %%xmm2\n" "paddb %%xmm3, %%xmm0\n"
#define REVISIT_OLD_FLOAT(m, r) m " %%xmm1, %%xmm0\n" m " 16(%0), %%xmm2\n" "movdqu 32(%0), %%xmm0\n"
#define REVISIT_NEW(m, r) "v" m " 16(%0), %%" r "1, %%" r "3\n" "v" m " %%" r "2, %%" r "0, %%" r "4\n"
#define REVISIT_NEW_SHIFT(m, r) "v" m " 16(%0), %%" r "1, %%" r "3\n" "v" m " $5, %%" r "1, %%" r "2\n"
#define REVISIT_NEW_WIDENING(m, r) "v" m " %%xmm1, %%" r "3\n" "v" m " 3(%0), %%" r "4\n"
#define REVISIT_NEW_UNARY(m, r) "v" m " %%" r "1, %%" r "3\n" "v" m " 16(%0), %%" r "2\n"
#define REVISIT_AVX2(r) \
    "vmovdqu (%0), %%" r "0\n" "vmovdqu 32(%0), %%" r "1\n" "vmovdqu 9(%0), %%" r "2\n" \
    REVISIT_PACKED_INTEGERS(REVISIT_NEW, r) REVISIT_PACKED_FLOATS(REVISIT_NEW, r) \
    REVISIT_PACKED_SHIFTS(REVISIT_NEW_SHIFT, r) REVISIT_PACKED_SSE4(REVISIT_NEW, r) \
    REVISIT_WIDENING(REVISIT_NEW_WIDENING, r) REVISIT_UNARY(REVISIT_NEW_UNARY, r) \
    "vpalignr $5, %%" r "1, %%" r "2, %%" r "5\n" \
    "vpblendw $0x5a, %%" r "1, %%" r "2, %%" r "5\n" \
    "vpblendd $0xa5, %%" r "1, %%" r "2, %%" r "5\n" \
    "vpblendvb %%" r "0, %%" r "1, %%" r "2, %%" r "6\n" \
    "vblendvps %%" r "0, %%" r "1, %%" r "2, %%" r "6\nvptest %%" r "1, %%" r "2\n" \
    "vpmovmskb %%" r "1, %%eax\nvmovmskps %%" r "1, %%eax\n" \
    "vpsllvd 16(%0), %%" r "1, %%" r "3\nvpsrlvq %%" r "2, %%" r "1, %%" r "3\n" \
    "vpsravd %%" r "2, %%" r "1, %%" r "3\nvpbroadcastb 1(%0), %%" r "7\n" \
    "vpbroadcastw 2(%0), %%" r "7\nvpbroadcastd %%xmm1, %%" r "7\n" \
    "vpbroadcastq 8(%0), %%" r "8\nvpshufd $0x1b, 16(%0), %%" r "9\n" \
    "vshufps $0x93, %%" r "1, %%" r "2, %%" r "9\nvpsrldq $3, %%" r "1, %%" r "10\n" \
    "vpslldq $9, %%" r "1, %%" r "10\nvmovdqu %%" r "1, 1(%1)\n" \
    "vpermilps $0x1b, %%" r "1, %%" r "3\nvpand (%0), %%" r "1, %%" r "11\n" \
    "vpcmpeqd %%" r "4, %%" r "4, %%" r "4\nvpxor %%" r "4, %%" r "4, %%" r "4\n" \
    "vmovddup 8(%0), %%" r "5\nvshufpd $5, %%" r "1, %%" r "2, %%" r "9\n" \
    "vcvtdq2ps %%" r "1, %%" r "6\nvcvtdq2pd 4(%0), %%" r "6\n" \
    "vcmpltps %%" r "1, %%" r "2, %%" r "3\n"
// r is the register, n its bytes, f and d how many floats and doubles it has.
#define REVISIT_AVX512(r, n, f, d) \
    "vmovdqu8 (%0), %%" r "16\nvmovdqu64 32(%0), %%" r "17\nvmovdqu8 %%" r "16, %%" r "18\n" \
    "kmovq 8(%0), %%k1\nkmovd 4(%0), %%k2\nmov 8(%0), %%rax\nkmovq %%rax, %%k3\n" \
    "kmovd %%ecx, %%k4\nvpcmpeqb 64(%0), %%" r "16, %%k5\nkmovq %%k5, %%rax\n" \
    "kmovd %%k5, %%ecx\nkmovw %%k5, %%edx\nvpcmpb $0, %%" r "17, %%" r "16, %%k5\n" \
    "vpcmpub $1, " n "(%0), %%" r "16, %%k6%{%%k1%}\nvpcmpub $0, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $0, %%" r "17, %%" r "16, %%k6\nvpcmpd $0, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $0, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $1, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $1, %%" r "17, %%" r "16, %%k6\nvpcmpd $1, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $1, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $2, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $2, %%" r "17, %%" r "16, %%k6\nvpcmpd $2, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $2, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $3, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $3, %%" r "17, %%" r "16, %%k6\nvpcmpd $3, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $3, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $4, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $4, %%" r "17, %%" r "16, %%k6\nvpcmpd $4, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $4, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $5, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $5, %%" r "17, %%" r "16, %%k6\nvpcmpd $5, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $5, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $6, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $6, %%" r "17, %%" r "16, %%k6\nvpcmpd $6, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $6, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvpcmpub $7, 16(%0), %%" r "16, %%k5\n" \
    "vpcmpw $7, %%" r "17, %%" r "16, %%k6\nvpcmpd $7, (%0)%{1to" f "%}, %%" r "16, %%k7\n" \
    "vpcmpuq $7, %%" r "17, %%" r "16, %%k2%{%%k3%}\nvptestnmb %%" r "16, %%" r "17, %%k5\n" \
    "vptestmd 16(%0), %%" r "17, %%k6%{%%k5%}\nvptestmb %%" r "16, %%" r "16, %%k4\n" \
    "vpcmpgtb %%" r "16, %%" r "17, %%k3\nvpcmpeqq (%0), %%" r "17, %%k3\n" \
    "kortestd %%k5, %%k6\nkortestq %%k5, %%k5\nkortestb %%k4, %%k4\nktestd %%k5, %%k6\n" \
    "ktestw %%k1, %%k2\nkorq %%k1, %%k2, %%k3\nkandd %%k1, %%k2, %%k3\n" \
    "kandnw %%k1, %%k2, %%k3\nkxorq %%k1, %%k2, %%k4\nkxnorb %%k1, %%k2, %%k4\n" \
    "knotd %%k1, %%k4\nkunpckdq %%k1, %%k2, %%k3\nkunpckwd %%k1, %%k2, %%k3\n" \
    "kunpckbw %%k1, %%k2, %%k3\nkshiftrq $7, %%k1, %%k3\nkshiftld $9, %%k1, %%k3\n" \
    "kshiftrw $3, %%k1, %%k4\nkshiftlb $2, %%k1, %%k4\nkaddd %%k1, %%k2, %%k3\n" \
    "kmovq %%k3, 8(%1)\nkmovw %%k4, 2(%1)\nkmovb %%k1, %%k5\nkmovw 6(%0), %%k2\n" \
    "vpaddb 16(%0), %%" r "16, %%" r "19\nvpaddb %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpaddb " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpaddw 16(%0), %%" r "16, %%" r "19\nvpaddw %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpaddw " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpminub 16(%0), %%" r "16, %%" r "19\nvpminub %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpminub " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpmaxub 16(%0), %%" r "16, %%" r "19\nvpmaxub %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpmaxub " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpsubb 16(%0), %%" r "16, %%" r "19\nvpsubb %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpsubb " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpminuw 16(%0), %%" r "16, %%" r "19\nvpminuw %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpminuw " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpavgb 16(%0), %%" r "16, %%" r "19\nvpavgb %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpavgb " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpaddsw 16(%0), %%" r "16, %%" r "19\nvpaddsw %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpaddsw " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpunpcklbw 16(%0), %%" r "16, %%" r "19\n" \
    "vpunpcklbw %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpunpcklbw " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpshufb 16(%0), %%" r "16, %%" r "19\nvpshufb %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpshufb " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpmulhuw 16(%0), %%" r "16, %%" r "19\n" \
    "vpmulhuw %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpmulhuw " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpackuswb 16(%0), %%" r "16, %%" r "19\n" \
    "vpackuswb %%" r "17, %%" r "16, %%" r "20%{%%k1%}\n" \
    "vpackuswb " n "(%0), %%" r "16, %%" r "21%{%%k2%}%{z%}\n" \
    "vpmaddwd 16(%0), %%" r "16, %%" r "19\nvpmaddwd %%" r "17, %%" r "16, %%" r "20\n" \
    "vpmaddwd " n "(%0), %%" r "16, %%" r "21\n" \
    "vpandd (%0)%{1to" f "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpandd %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vporq (%0)%{1to" d "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vporq %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpxord (%0)%{1to" f "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpxord %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpandnq (%0)%{1to" d "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpandnq %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpaddd (%0)%{1to" f "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpaddd %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpaddq (%0)%{1to" d "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpaddq %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpminsd (%0)%{1to" f "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpminsd %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpmaxuq (%0)%{1to" d "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpmaxuq %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpminuq (%0)%{1to" d "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpminuq %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\n" \
    "vpmaxsd (%0)%{1to" f "%}, %%" r "16, %%" r "19%{%%k3%}\n" \
    "vpmaxsd %%" r "17, %%" r "16, %%" r "20%{%%k4%}%{z%}\nvpabsd 16(%0), %%" r "19\n" \
    "vpabsd %%" r "17, %%" r "20%{%%k1%}\nvpabsq 16(%0), %%" r "19\n" \
    "vpabsq %%" r "17, %%" r "20%{%%k1%}\nvpternlogd $222, 16(%0), %%" r "17, %%" r "22\n" \
    "vpternlogq $222, %%" r "16, %%" r "17, %%" r "23%{%%k1%}\n" \
    "vpternlogd $198, 16(%0), %%" r "17, %%" r "22\n" \
    "vpternlogq $198, %%" r "16, %%" r "17, %%" r "23%{%%k1%}\n" \
    "vpternlogd $248, 16(%0), %%" r "17, %%" r "22\n" \
    "vpternlogq $248, %%" r "16, %%" r "17, %%" r "23%{%%k1%}\n" \
    "vpternlogd $150, 16(%0), %%" r "17, %%" r "22\n" \
    "vpternlogq $150, %%" r "16, %%" r "17, %%" r "23%{%%k1%}\n" \
    "vpternlogd $1, 16(%0), %%" r "17, %%" r "22\n" \
    "vpternlogq $1, %%" r "16, %%" r "17, %%" r "23%{%%k1%}\nvpbroadcastb %%eax, %%" r "24\n" \
    "vpbroadcastd %%ecx, %%" r "24\nvpbroadcastq %%rax, %%" r "24%{%%k1%}\n" \
    "vpbroadcastb 3(%0), %%" r "25\nvpsllw $3, %%" r "16, %%" r "26\n" \
    "vpsraq $7, %%" r "16, %%" r "26\nvpsrld 16(%0), %%" r "16, %%" r "26\n" \
    "vpsllvq %%" r "17, %%" r "16, %%" r "27\nvmovdqu8 16(%0), %%" r "28%{%%k1%}%{z%}\n" \
    "vmovdqu8 %%" r "16, (%1)%{%%k1%}\nvmovdqu32 %%" r "16, (%1)%{%%k2%}\n" \
    "vmovdqa64 %%" r "16, %%" r "29%{%%k2%}\nvmovups %%" r "17, 16(%1)\n" \
    "vmovdqu16 1(%0), %%" r "1\nvpmovm2b %%k1, %%" r "30\nvpmovm2d %%k2, %%" r "30\n" \
    "vpalignr $7, %%" r "16, %%" r "17, %%" r "31\nvpshufd $0x1b, %%" r "16, %%" r "31\n" \
    "vaddpd %%" r "16, %%" r "17, %%" r "30\nvmulps (%0)%{1to" f "%}, %%" r "17, %%" r "30\n" \
    "vpunpckhdq %%" r "16, %%" r "17, %%" r "18%{%%k4%}\nvpmovzxbw 5(%0), %%" r "31\n" \
    "vpsrldq $5, %%" r "16, %%" r "31\nvpslldq $3, %%" r "16, %%" r "31\n" \
    "vextracti32x4 $1, %%" r "16, %%xmm20\nvextracti64x2 $1, %%" r "17, 16(%1)\n" \
    "vinserti32x4 $1, 16(%0), %%" r "17, %%" r "21\nvpermq $0x1b, %%" r "16, %%" r "22\n" \
    "vpermd %%" r "16, %%" r "17, %%" r "22\nvmovdqu 16(%0), %%xmm3\n" \
    "vpaddb %%xmm16, %%xmm17, %%xmm18\nvmovd %%xmm16, %%eax\nvmovq %%xmm17, %%rax\n" \
    "vaddsd 8(%0), %%xmm16, %%xmm19\n"

[[gnu::noinline]] inline void plain(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        "mov 8(%0), %%al\nmov 24(%0), %%dl\nshl %%al\nshl $3, %%al\nmov 5(%0), %%cl\n"
        "shl %%cl, %%dl\nshlb $1, (%1)\nshlb %%cl, 8(%1)\nshr %%al\nshr $3, %%al\n"
        "mov 5(%0), %%cl\nshr %%cl, %%dl\nshrb $1, (%1)\nshrb %%cl, 8(%1)\nsar %%al\n"
        "sar $3, %%al\nmov 5(%0), %%cl\nsar %%cl, %%dl\nsarb $1, (%1)\nsarb %%cl, 8(%1)\n"
        "rol %%al\nrol $3, %%al\nmov 5(%0), %%cl\nrol %%cl, %%dl\nrolb $1, (%1)\n"
        "rolb %%cl, 8(%1)\nror %%al\nror $3, %%al\nmov 5(%0), %%cl\nror %%cl, %%dl\n"
        "rorb $1, (%1)\nrorb %%cl, 8(%1)\nmulb 8(%0)\nmov 8(%0), %%al\nimulb 16(%0)\nneg %%al\n"
        "not %%dl\nadc %%al, %%dl\nsbb 8(%0), %%dl\nxadd %%al, (%1)\ncmpxchg %%dl, 8(%1)\n"
        "mov 8(%0), %%ax\nmov 24(%0), %%dx\nshl %%ax\nshl $3, %%ax\nmov 5(%0), %%cl\n"
        "shl %%cl, %%dx\nshlw $1, (%1)\nshlw %%cl, 8(%1)\nshr %%ax\nshr $3, %%ax\n"
        "mov 5(%0), %%cl\nshr %%cl, %%dx\nshrw $1, (%1)\nshrw %%cl, 8(%1)\nsar %%ax\n"
        "sar $3, %%ax\nmov 5(%0), %%cl\nsar %%cl, %%dx\nsarw $1, (%1)\nsarw %%cl, 8(%1)\n"
        "rol %%ax\nrol $3, %%ax\nmov 5(%0), %%cl\nrol %%cl, %%dx\nrolw $1, (%1)\n"
        "rolw %%cl, 8(%1)\nror %%ax\nror $3, %%ax\nmov 5(%0), %%cl\nror %%cl, %%dx\n"
        "rorw $1, (%1)\nrorw %%cl, 8(%1)\nshld $5, %%ax, %%dx\nshrd $3, %%ax, %%dx\n"
        "mov 3(%0), %%cl\nshld %%cl, %%ax, %%dx\nshrd %%cl, %%ax, 8(%1)\nimul %%ax, %%dx\n"
        "imul $1001, 8(%0), %%dx\nbsf %%ax, %%dx\nbsr 8(%0), %%dx\nmov $0, %%ax\nbsf %%ax, %%dx\n"
        "bt $3, %%ax\nbts %%dx, %%ax\nmulw 8(%0)\nmov 8(%0), %%ax\nimulw 16(%0)\nneg %%ax\n"
        "not %%dx\nadc %%ax, %%dx\nsbb 8(%0), %%dx\nxadd %%ax, (%1)\ncmpxchg %%dx, 8(%1)\n"
        "mov 8(%0), %%eax\nmov 24(%0), %%edx\nshl %%eax\nshl $3, %%eax\nmov 5(%0), %%cl\n"
        "shl %%cl, %%edx\nshll $1, (%1)\nshll %%cl, 8(%1)\nshr %%eax\nshr $3, %%eax\n"
        "mov 5(%0), %%cl\nshr %%cl, %%edx\nshrl $1, (%1)\nshrl %%cl, 8(%1)\nsar %%eax\n"
        "sar $3, %%eax\nmov 5(%0), %%cl\nsar %%cl, %%edx\nsarl $1, (%1)\nsarl %%cl, 8(%1)\n"
        "rol %%eax\nrol $3, %%eax\nmov 5(%0), %%cl\nrol %%cl, %%edx\nroll $1, (%1)\n"
        "roll %%cl, 8(%1)\nror %%eax\nror $3, %%eax\nmov 5(%0), %%cl\nror %%cl, %%edx\n"
        "rorl $1, (%1)\nrorl %%cl, 8(%1)\nshld $5, %%eax, %%edx\nshrd $3, %%eax, %%edx\n"
        "mov 3(%0), %%cl\nshld %%cl, %%eax, %%edx\nshrd %%cl, %%eax, 8(%1)\nimul %%eax, %%edx\n"
        "imul $1001, 8(%0), %%edx\nbsf %%eax, %%edx\nbsr 8(%0), %%edx\nmov $0, %%eax\n"
        "bsf %%eax, %%edx\nbt $3, %%eax\nbts %%edx, %%eax\nmull 8(%0)\nmov 8(%0), %%eax\n"
        "imull 16(%0)\nneg %%eax\nnot %%edx\nadc %%eax, %%edx\nsbb 8(%0), %%edx\n"
        "xadd %%eax, (%1)\ncmpxchg %%edx, 8(%1)\nmov 8(%0), %%rax\nmov 24(%0), %%rdx\nshl %%rax\n"
        "shl $3, %%rax\nmov 5(%0), %%cl\nshl %%cl, %%rdx\nshlq $1, (%1)\nshlq %%cl, 8(%1)\n"
        "shr %%rax\nshr $3, %%rax\nmov 5(%0), %%cl\nshr %%cl, %%rdx\nshrq $1, (%1)\n"
        "shrq %%cl, 8(%1)\nsar %%rax\nsar $3, %%rax\nmov 5(%0), %%cl\nsar %%cl, %%rdx\n"
        "sarq $1, (%1)\nsarq %%cl, 8(%1)\nrol %%rax\nrol $3, %%rax\nmov 5(%0), %%cl\n"
        "rol %%cl, %%rdx\nrolq $1, (%1)\nrolq %%cl, 8(%1)\nror %%rax\nror $3, %%rax\n"
        "mov 5(%0), %%cl\nror %%cl, %%rdx\nrorq $1, (%1)\nrorq %%cl, 8(%1)\n"
        "shld $5, %%rax, %%rdx\nshrd $3, %%rax, %%rdx\nmov 3(%0), %%cl\nshld %%cl, %%rax, %%rdx\n"
        "shrd %%cl, %%rax, 8(%1)\nimul %%rax, %%rdx\nimul $1001, 8(%0), %%rdx\nbsf %%rax, %%rdx\n"
        "bsr 8(%0), %%rdx\nmov $0, %%rax\nbsf %%rax, %%rdx\nbt $3, %%rax\nbts %%rdx, %%rax\n"
        "mulq 8(%0)\nmov 8(%0), %%rax\nimulq 16(%0)\nneg %%rax\nnot %%rdx\nadc %%rax, %%rdx\n"
        "sbb 8(%0), %%rdx\nxadd %%rax, (%1)\ncmpxchg %%rdx, 8(%1)\nlahf\nsahf\nstc\ncmc\nclc\n"
        "mov 7(%0), %%al\nmov %%al, %%ah\nsahf\ncmpxchg16b (%1)\nmov 16(%0), %%rax\n"
        "mov (%1), %%rax\nmov 8(%1), %%rdx\ncmpxchg16b (%1)\ncmpxchg8b 8(%1)\n"
        ::"r"(from), "r"(to) : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void strings(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        "cld\nlea (%0), %%rsi\nlea (%1), %%rdi\nmov $9, %%ecx\nrep movsb\nmov $5, %%ecx\n"
        "rep stosw\nlea (%0), %%rsi\nlea (%1), %%rdi\nmov $20, %%ecx\nrepe cmpsb\n"
        "lea (%0), %%rdi\nmov (%0), %%al\nmov $64, %%ecx\nrepne scasb\nlea 3(%0), %%rdi\n"
        "mov $8, %%ecx\nrepe scasw\nlea (%0), %%rsi\nlodsb\nlodsq\nmovsq\nmov $0, %%ecx\n"
        "rep movsb\nstd\nlea 40(%0), %%rsi\nlea 40(%1), %%rdi\nmov $3, %%ecx\nrep movsq\ncmpsl\n"
        "cld\nmov $3, %%ecx\n1: dec %%eax\nloop 1b\njrcxz 2f\nnop\n2: fldl 8(%0)\nfstpl 16(%1)\n"
        "fnstcw 32(%1)\nfldcw 32(%1)\nfildl 8(%0)\nfistpl 24(%1)\nfnstsw %%ax\nfldt (%0)\n"
        "fstpt 16(%1)\nfnclex\nstmxcsr 40(%1)\nldmxcsr 40(%1)\nrdtsc\nlfence\n"
        "movnti %%eax, (%1)\nxor %%eax, %%eax\nnop\n"
        ::"r"(from), "r"(to) : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void sse2(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        REVISIT_PACKED_INTEGERS(REVISIT_OLD, "") REVISIT_PACKED_FLOATS(REVISIT_OLD_FLOAT, "")
        REVISIT_PACKED_SHIFTS(REVISIT_OLD, "")
        "psllw $0, %%xmm1\npxor 48(%0), %%xmm1\npslld $0, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $0, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $0, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $0, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $0, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $0, %%xmm1\npxor 48(%0), %%xmm1\npsrad $0, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $0, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $0, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllw $3, %%xmm1\npxor 48(%0), %%xmm1\npslld $3, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $3, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $3, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $3, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $3, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $3, %%xmm1\npxor 48(%0), %%xmm1\npsrad $3, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $3, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $3, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllw $7, %%xmm1\npxor 48(%0), %%xmm1\npslld $7, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $7, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $7, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $7, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $7, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $7, %%xmm1\npxor 48(%0), %%xmm1\npsrad $7, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $7, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $7, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllw $15, %%xmm1\npxor 48(%0), %%xmm1\npslld $15, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $15, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $15, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $15, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $15, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $15, %%xmm1\npxor 48(%0), %%xmm1\npsrad $15, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $15, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $15, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllw $17, %%xmm1\npxor 48(%0), %%xmm1\npslld $17, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $17, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $17, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $17, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $17, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $17, %%xmm1\npxor 48(%0), %%xmm1\npsrad $17, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $17, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $17, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllw $255, %%xmm1\npxor 48(%0), %%xmm1\npslld $255, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psllq $255, %%xmm1\npxor 48(%0), %%xmm1\npsrlw $255, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psrld $255, %%xmm1\npxor 48(%0), %%xmm1\npsrlq $255, %%xmm1\npxor 48(%0), %%xmm1\n"
        "psraw $255, %%xmm1\npxor 48(%0), %%xmm1\npsrad $255, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pslldq $255, %%xmm1\npxor 48(%0), %%xmm1\npsrldq $255, %%xmm1\npxor 48(%0), %%xmm1\n"
        "pshufd $27, %%xmm1, %%xmm2\npshuflw $27, 16(%0), %%xmm3\npshufhw $27, %%xmm2, %%xmm4\n"
        "shufps $27, %%xmm3, %%xmm1\nshufpd $3, %%xmm4, %%xmm2\npshufd $228, %%xmm1, %%xmm2\n"
        "pshuflw $228, 16(%0), %%xmm3\npshufhw $228, %%xmm2, %%xmm4\n"
        "shufps $228, %%xmm3, %%xmm1\nshufpd $0, %%xmm4, %%xmm2\npshufd $147, %%xmm1, %%xmm2\n"
        "pshuflw $147, 16(%0), %%xmm3\npshufhw $147, %%xmm2, %%xmm4\n"
        "shufps $147, %%xmm3, %%xmm1\nshufpd $3, %%xmm4, %%xmm2\npshufd $255, %%xmm1, %%xmm2\n"
        "pshuflw $255, 16(%0), %%xmm3\npshufhw $255, %%xmm2, %%xmm4\n"
        "shufps $255, %%xmm3, %%xmm1\nshufpd $3, %%xmm4, %%xmm2\ncvtdq2ps %%xmm1, %%xmm5\n"
        "cvtdq2ps 16(%0), %%xmm5\ncvtdq2pd %%xmm1, %%xmm6\ncvtdq2pd 8(%0), %%xmm6\n"
        "movhlps %%xmm1, %%xmm2\nmovlhps %%xmm1, %%xmm2\nmovlps 8(%0), %%xmm3\n"
        "movhps 8(%0), %%xmm3\nmovhps %%xmm3, 8(%1)\nmovlps %%xmm3, 16(%1)\n"
        "movhpd 24(%0), %%xmm3\nmovd %%xmm1, %%eax\nmovq %%xmm1, %%rax\nmovq %%rax, %%xmm5\n"
        "movd %%eax, %%xmm6\nmovq %%xmm1, %%xmm7\nmovq %%xmm7, 8(%1)\nmovq 8(%0), %%xmm6\n"
        "movd 4(%0), %%xmm6\npmovmskb %%xmm1, %%eax\nmovmskps %%xmm1, %%eax\n"
        "movmskpd %%xmm1, %%eax\npinsrw $3, %%eax, %%xmm1\npinsrw $6, 2(%0), %%xmm1\n"
        "pextrw $5, %%xmm1, %%eax\nmovss %%xmm1, %%xmm2\nmovsd %%xmm1, %%xmm2\n"
        "movss 4(%0), %%xmm3\nmovsd 8(%0), %%xmm3\nmovntdq %%xmm1, (%1)\nmovups %%xmm2, 5(%1)\n"
        "movdqu 3(%0), %%xmm4\nmovaps %%xmm4, %%xmm5\ncmpeqps %%xmm1, %%xmm2\n"
        "cmpltpd 16(%0), %%xmm2\ncmpunordps %%xmm3, %%xmm4\ncmpneqpd %%xmm3, %%xmm4\n"
        "cmpnltps %%xmm1, %%xmm5\ncmpnleps %%xmm1, %%xmm5\ncmpordpd %%xmm1, %%xmm5\n"
        "pcmpeqd %%xmm6, %%xmm6\npxor %%xmm7, %%xmm7\nsqrtpd %%xmm6, %%xmm7\n"
        "cvttps2dq %%xmm1, %%xmm7\n"
        ::"r"(from), "r"(to) : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void sse4(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        "movdqu (%0), %%xmm0\nmovdqu 16(%0), %%xmm1\n"
        REVISIT_PACKED_SSE4(REVISIT_OLD, "") REVISIT_WIDENING(REVISIT_OLD, "") REVISIT_UNARY(REVISIT_OLD, "")
        "palignr $0, %%xmm1, %%xmm2\npblendw $0, %%xmm1, %%xmm3\nblendps $0, 16(%0), %%xmm2\n"
        "blendpd $0, %%xmm1, %%xmm4\npalignr $1, %%xmm1, %%xmm2\npblendw $1, %%xmm1, %%xmm3\n"
        "blendps $1, 16(%0), %%xmm2\nblendpd $1, %%xmm1, %%xmm4\npalignr $5, %%xmm1, %%xmm2\n"
        "pblendw $5, %%xmm1, %%xmm3\nblendps $5, 16(%0), %%xmm2\nblendpd $1, %%xmm1, %%xmm4\n"
        "palignr $15, %%xmm1, %%xmm2\npblendw $15, %%xmm1, %%xmm3\nblendps $15, 16(%0), %%xmm2\n"
        "blendpd $3, %%xmm1, %%xmm4\npalignr $26, %%xmm1, %%xmm2\npblendw $90, %%xmm1, %%xmm3\n"
        "blendps $10, 16(%0), %%xmm2\nblendpd $2, %%xmm1, %%xmm4\npalignr $31, %%xmm1, %%xmm2\n"
        "pblendw $255, %%xmm1, %%xmm3\nblendps $15, 16(%0), %%xmm2\nblendpd $3, %%xmm1, %%xmm4\n"
        "pblendvb %%xmm0, %%xmm1, %%xmm2\nblendvps %%xmm0, %%xmm1, %%xmm3\n"
        "blendvpd %%xmm0, 16(%0), %%xmm4\nptest %%xmm1, %%xmm2\nsetz 3(%1)\nsetc 4(%1)\n"
        "ptest %%xmm1, %%xmm1\npinsrb $7, %%eax, %%xmm1\npinsrd $2, 4(%0), %%xmm1\n"
        "pinsrq $1, %%rax, %%xmm1\npextrb $9, %%xmm1, %%eax\npextrb $3, %%xmm1, (%1)\n"
        "pextrd $1, %%xmm1, %%ecx\npextrq $1, %%xmm1, 8(%1)\npextrw $3, %%xmm1, 2(%1)\n"
        "extractps $2, %%xmm1, %%eax\nlddqu 1(%0), %%xmm5\nmovntdqa (%0), %%xmm6\n"
        "pcmpistri $0x0c, 16(%0), %%xmm1\nroundsd $1, 8(%0), %%xmm2\ncrc32b (%0), %%eax\n"
        "crc32l %%ecx, %%eax\ncrc32q 8(%0), %%rax\npopcnt 8(%0), %%rcx\nmovbe 4(%0), %%eax\n"
        "movbe %%rax, 16(%1)\nmovbe 4(%0), %%cx\n"
        ::"r"(from), "r"(to) : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void bmi(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        "mov 8(%0), %%eax\nmov 24(%0), %%ecx\nandn 16(%0), %%eax, %%edx\nblsr %%eax, %%ecx\n"
        "blsmsk 4(%0), %%ecx\nbzhi %%ecx, %%eax, %%edx\nbextr %%ecx, 8(%0), %%edx\n"
        "shlx %%ecx, %%eax, %%edx\nshrx %%ecx, 3(%0), %%edx\nsarx %%ecx, %%eax, %%edx\n"
        "rorx $7, %%eax, %%edx\nmov 40(%0), %%ecx\npdep %%ecx, %%eax, %%edx\n"
        "pext %%ecx, %%eax, %%edx\nmulx %%ecx, %%edx, %%eax\ntzcnt %%ecx, %%eax\n"
        "lzcnt %%ecx, %%eax\nxor %%esi, %%esi\ntzcnt %%esi, %%eax\nlzcnt %%esi, %%eax\n"
        "adcx %%ecx, %%edx\nadox %%ecx, %%edx\nadcx 8(%0), %%edx\nmov 8(%0), %%rax\n"
        "mov 24(%0), %%rcx\nandn 16(%0), %%rax, %%rdx\nblsr %%rax, %%rcx\nblsmsk 4(%0), %%rcx\n"
        "bzhi %%rcx, %%rax, %%rdx\nbextr %%rcx, 8(%0), %%rdx\nshlx %%rcx, %%rax, %%rdx\n"
        "shrx %%rcx, 3(%0), %%rdx\nsarx %%rcx, %%rax, %%rdx\nrorx $7, %%rax, %%rdx\n"
        "mov 40(%0), %%rcx\npdep %%rcx, %%rax, %%rdx\npext %%rcx, %%rax, %%rdx\n"
        "mulx %%rcx, %%rdx, %%rax\ntzcnt %%rcx, %%rax\nlzcnt %%rcx, %%rax\nxor %%rsi, %%rsi\n"
        "tzcnt %%rsi, %%rax\nlzcnt %%rsi, %%rax\nadcx %%rcx, %%rdx\nadox %%rcx, %%rdx\n"
        "adcx 8(%0), %%rdx\n"
        ::"r"(from), "r"(to) : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void lowest(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        "mov 8(%0), %%rax\nblsi %%rax, %%rcx\nblsi 4(%0), %%edx\nxor %%eax, %%eax\n"
        "blsi %%eax, %%ecx\n"
        ::"r"(from), "r"(to) : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void avx2(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        REVISIT_AVX2("xmm") REVISIT_AVX2("ymm")
        "vinserti128 $1, 16(%0), %%ymm1, %%ymm2\nvinsertf128 $0, %%xmm3, %%ymm1, %%ymm2\n"
        "vextracti128 $1, %%ymm2, %%xmm3\nvextractf128 $1, %%ymm2, 16(%1)\n"
        "vperm2i128 $0x21, %%ymm1, %%ymm2, %%ymm3\nvperm2i128 $0x83, (%0), %%ymm2, %%ymm3\n"
        "vpermq $0x1b, %%ymm2, %%ymm4\nvpermd %%ymm2, %%ymm1, %%ymm5\n"
        "vbroadcasti128 16(%0), %%ymm6\nvpaddb %%xmm1, %%xmm2, %%xmm7\npaddb %%xmm1, %%xmm2\n"
        "vmovq 8(%0), %%xmm3\nvmovd %%eax, %%xmm4\nvmovss 4(%0), %%xmm3\n"
        "vmovsd %%xmm1, %%xmm2, %%xmm3\nvaddsd 8(%0), %%xmm1, %%xmm3\n"
        "vcvtsi2sd %%eax, %%xmm1, %%xmm4\nvcvttsd2si %%xmm4, %%eax\nvucomisd %%xmm1, %%xmm4\n"
        "vfmadd213sd 8(%0), %%xmm1, %%xmm5\nvfmadd231pd (%0), %%ymm1, %%ymm5\n"
        "vmovhps 8(%0), %%xmm1, %%xmm6\nvmovlps 8(%0), %%xmm1, %%xmm6\n"
        "vpinsrb $3, %%eax, %%xmm1, %%xmm7\nvpextrd $2, %%xmm1, %%eax\nvzeroupper\nvzeroall\n"
        ::"r"(from), "r"(to) : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

[[gnu::noinline]] inline void avx512(const std::uint8_t* from, std::uint8_t* to) {
    __asm__ volatile(
        REVISIT_AVX512("ymm", "32", "8", "4") REVISIT_AVX512("zmm", "64", "16", "8")
        "vextracti64x4 $1, %%zmm16, %%ymm20\nvinserti64x4 $0, 16(%0), %%zmm17, %%zmm20\n"
        "vzeroupper\nvpaddb 16(%0), %%xmm16, %%xmm19\nvpcmpeqb 16(%0), %%xmm16, %%k5\n"
        "vmovdqu8 16(%0), %%xmm28%{%%k1%}%{z%}\nvzeroupper\n"
        ::"r"(from), "r"(to) : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
}

// clang-format on

struct Kind {
    void (*run)(const std::uint8_t*, std::uint8_t*);
    bool is_here;
};
constexpr unsigned kKinds = 11;
inline void all(Kind (&kinds)[kKinds], bool is_emulated) {
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("fma");
    kinds[0] = {plain, true};
    kinds[1] = {strings, true};
    kinds[2] = {sse2, true};
    kinds[3] = {sse4, v3};
    kinds[4] = {bmi, v3};
    kinds[5] = {avx2, v3};
    const bool v4 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq");
    kinds[6] = {avx512, v4};
    kinds[7] = {lowest, v3 && !is_emulated};  // qemu 7 has its carry the wrong way round
    kinds[8] = {floats, v3};
    kinds[9] = {gathers, v3};
    kinds[10] = {wide, v4};
}

}  // namespace revisit::machine::instructions
