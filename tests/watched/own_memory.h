// Memory as the look-ahead sees it: the real one, never faulting, under what it has itself stored.
//
// A read that faults is known by its instruction, and the handler of the fault lets it return nothing
// (x64_context.h); asking the kernel about every page before took ten times as long as all else.
#pragma once

#include <string.h>

#include "machine/side_buffer.h"
#include "x64_context.h"

namespace revisit::machine {

class LookMemory {
 public:
    void start() {
        side_.forget();
        code_page_ = ~std::uint64_t{0};
        loses_stores_ = false;
        ranges_ = 0;
    }
    // What was stored when there was no more room is read as the program has left it.
    void lose_stores() { loses_stores_ = true; }
    // What is in a range is not known from now on. Ranges that are near become one, and so does the
    // nearest where there is no room for another: what is not lost in between counts as lost, too.
    void lose(std::uint64_t low, std::uint64_t high) {
        constexpr std::uint64_t kNear = 4096;
        unsigned nearest = 0;
        std::uint64_t least = ~std::uint64_t{0};
        for (unsigned i = 0; i < ranges_; i++) {
            std::uint64_t apart = high < lost_[i].low   ? lost_[i].low - high
                                  : lost_[i].high < low ? low - lost_[i].high
                                                        : 0;
            if (apart >= least) continue;
            least = apart;
            nearest = i;
        }
        if (ranges_ < kMostRanges && least > kNear) {
            lost_[ranges_++] = {low, high};
            return;
        }
        Range& range = lost_[nearest];
        range = {low < range.low ? low : range.low, high > range.high ? high : range.high};
    }

    [[gnu::always_inline]] bool fetch(std::uint64_t pc, std::uint32_t& instruction) {
        if (pc >> 12 != code_page_) {
            if (pc & 3 || !revisit_watch_load(pc & ~std::uint64_t{7}).is_readable) return false;
            code_page_ = pc >> 12;
        }
        instruction = *reinterpret_cast<const std::uint32_t*>(pc);
        return true;
    }

    // Instructions without a fixed length: as many bytes as are there.
    [[gnu::always_inline]] unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]) {
        if (pc >> 12 != code_page_) {
            if (!revisit_watch_load(pc & ~std::uint64_t{7}).is_readable) return 0;
            code_page_ = pc >> 12;
        }
        unsigned left = 4096 - (pc & 4095);
        if (left < sizeof code && revisit_watch_load(pc + left).is_readable) left = sizeof code;
        unsigned bytes = left < sizeof code ? left : sizeof code;
        memcpy(code, reinterpret_cast<const void*>(pc), bytes);
        return bytes;
    }

    [[gnu::always_inline]] Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        unsigned offset = address & 7;
        std::uint64_t aligned = address & ~std::uint64_t{7}, low = 0, high = 0;
        if (!word(aligned, low)) return Loaded::fault;
        unsigned unknown = side_.overlay(aligned, low);
        if (offset + bytes > 8) {
            if (!word(aligned + 8, high)) return Loaded::fault;
            unknown |= static_cast<unsigned>(side_.overlay(aligned + 8, high)) << 8;
        }
        value = low >> 8 * offset;
        if (offset) value |= high << (64 - 8 * offset);
        if (bytes < 8) value &= (std::uint64_t{1} << 8 * bytes) - 1;
        if (ranges_ != 0 && is_lost(address, bytes)) return Loaded::unknown;
        return unknown >> offset & ((1u << bytes) - 1) ? Loaded::unknown : Loaded::value;
    }

    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        return side_.store(address, bytes, value, known) || loses_stores_;
    }

 private:
    static constexpr unsigned kMostRanges = 8;

    bool is_lost(std::uint64_t address, unsigned bytes) const {
        for (unsigned i = 0; i < ranges_; i++)
            if (address < lost_[i].high && lost_[i].low < address + bytes) return true;
        return false;
    }

    bool word(std::uint64_t aligned, std::uint64_t& value) {
        SafeWord read = revisit_watch_load(aligned);
        value = read.value;
        return read.is_readable;
    }

    struct Range {
        std::uint64_t low, high;
    } lost_[kMostRanges];
    unsigned ranges_ = 0;
    bool loses_stores_ = false;
    std::uint64_t code_page_ = 0;
    SideBuffer side_;
};

}  // namespace revisit::machine
