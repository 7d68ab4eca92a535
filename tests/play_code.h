// Runs functions of a test by interpreting them, on a copy of memory that the test keeps: a run can be
// looked at, or begun again, at any moment.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "machine/a64/a64.h"
#include "machine/replay_count.h"

#if defined(__aarch64__)

#define UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))
#if defined(__clang__)
#define PLAIN [[gnu::noinline]] UNCHECKED
#else
#define PLAIN [[gnu::noinline, gnu::noipa]] UNCHECKED
#endif

namespace revisit::machine {

inline constexpr std::uint64_t kReturned = 0x10;  // nothing is there: the end

// This process's memory, under what was stored by those who run here; a replay adds its own on top.
struct PlayMemory {
    std::map<std::uint64_t, std::uint8_t> stored;

    UNCHECKED bool fetch(std::uint64_t pc, std::uint32_t& instruction) {
        if (pc == kReturned) return false;
        instruction = *reinterpret_cast<const std::uint32_t*>(pc);
        return true;
    }
    UNCHECKED Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        value = 0;
        for (unsigned k = 0; k < bytes; k++) {
            auto found = stored.find(address + k);
            std::uint8_t byte = found != stored.end()
                                    ? found->second
                                    : *reinterpret_cast<const std::uint8_t*>(address + k);
            value |= std::uint64_t{byte} << 8 * k;
        }
        return Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        for (unsigned k = 0; k < bytes && known; k++)
            stored[address + k] = static_cast<std::uint8_t>(value >> 8 * k);
        return true;
    }
};

inline std::uint64_t stack[1024];

struct Moment {
    A64State state;
    PlayMemory memory;
    std::uint64_t accesses;  // made until then
};

// All moments at which `picked` accesses had been made, in order.
inline std::vector<Moment> play(void (*function)(long), long n,
                                const std::vector<std::uint64_t>& picked, std::uint64_t& all) {
    Moment now{};
    now.state.pc = reinterpret_cast<std::uint64_t>(function);
    now.state.known = ~0u;
    now.state.v_known = 0;
    now.state.x[0] = static_cast<std::uint64_t>(n);
    now.state.x[30] = kReturned;
    now.state.x[31] = reinterpret_cast<std::uint64_t>(stack + 768) & ~std::uint64_t{15};
    A64Ahead<PlayMemory> ahead(now.state, now.memory, nullptr);
    std::vector<Moment> out;
    std::size_t next = 0;
    while (now.state.pc != kReturned) {
        while (next < picked.size() && picked[next] <= now.accesses) {
            out.push_back(now);
            next++;
        }
        Step step = ahead.step();
        if (step == Step::stop) {
            ADD_FAILURE() << "stopped";
            break;
        }
        if (step == Step::access) now.accesses += blocks_of(ahead.touched(), 3);
    }
    all = now.accesses;
    return out;
}

}  // namespace revisit::machine

#endif
