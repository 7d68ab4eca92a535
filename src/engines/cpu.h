// Choosing code by the machine it runs on.
//
// aarch64 has what the engines want (NEON, bit counts) on every machine. x86_64 programs are built for
// the first of their kind, which cannot even count bits: hot functions exist twice there, once as they
// are and once for machines with AVX2, BMI and POPCNT (2013 and later), chosen when the program runs.
// Whatever such a function calls must be REVISIT_INLINE to be compiled for that machine too.
#pragma once

namespace revisit {

#if defined(__x86_64__)
inline constexpr bool kMayHaveAvx2 = true;
#define REVISIT_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
inline bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
#else
inline constexpr bool kMayHaveAvx2 = false;
#define REVISIT_AVX2
inline bool has_avx2() {
    return false;
}
#endif

}  // namespace revisit
