// What the look-ahead has stored: words over the real memory, forgotten in one step.
//
// A hash of 8-byte words, each with a mask of bytes written and one of bytes whose value is not known.
// A word belongs to the present look-ahead if it carries its number, so that starting anew costs
// nothing.
#pragma once

#include <cstdint>

namespace revisit::watch {

class SideBuffer {
 public:
    static constexpr unsigned kWords = 8192;

    void forget() {
        generation_++;
        used_ = 0;
    }

    // `value` is `bytes` bytes at `address`, low ones first. False when there is no more room.
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        while (bytes > 0) {
            unsigned offset = address & 7, here = bytes < 8 - offset ? bytes : 8 - offset;
            Word* word = find_or_add(address & ~std::uint64_t{7});
            if (word == nullptr) return false;
            std::uint64_t bits = here == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * here) - 1;
            auto mask = static_cast<std::uint8_t>(((1u << here) - 1) << offset);
            word->value = (word->value & ~(bits << 8 * offset)) | (value & bits) << 8 * offset;
            word->written |= mask;
            word->unknown =
                static_cast<std::uint8_t>(known ? word->unknown & ~mask : word->unknown | mask);
            address += here;
            bytes -= here;
            value = here == 8 ? 0 : value >> 8 * here;
        }
        return true;
    }

    // Puts what was stored over `word`, the real memory at aligned `address`; the bytes now unknown.
    std::uint8_t overlay(std::uint64_t address, std::uint64_t& word) const {
        if (used_ == 0) return 0;
        for (unsigned at = slot(address);; at = (at + 1) % kWords) {
            const Word& entry = words_[at];
            if (entry.generation != generation_) return 0;
            if (entry.address != address) continue;
            std::uint64_t bits = 0;
            for (unsigned k = 0; k < 8; k++)
                if (entry.written >> k & 1) bits |= std::uint64_t{0xff} << 8 * k;
            word = (word & ~bits) | (entry.value & bits);
            return entry.unknown & entry.written;
        }
    }

    bool empty() const { return used_ == 0; }

 private:
    struct Word {
        std::uint64_t address, value;
        std::uint32_t generation;
        std::uint8_t written, unknown;
    };

    static unsigned slot(std::uint64_t address) {
        return static_cast<unsigned>((address >> 3) * 0x9e3779b97f4a7c15 >> 51);
    }
    static_assert(kWords == 1u << 13);

    Word* find_or_add(std::uint64_t address) {
        for (unsigned at = slot(address);; at = (at + 1) % kWords) {
            Word& entry = words_[at];
            if (entry.generation == generation_ && entry.address == address) return &entry;
            if (entry.generation == generation_) continue;
            if (used_ == kWords / 2) return nullptr;
            used_++;
            entry = {address, 0, generation_, 0, 0};
            return &entry;
        }
    }

    std::uint32_t generation_ = 1;
    std::uint32_t used_ = 0;
    Word words_[kWords];
};

}  // namespace revisit::watch
