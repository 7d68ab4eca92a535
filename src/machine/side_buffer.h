// What the look-ahead has stored: words over the real memory.
//
// 8-byte words, each with a mask of bytes written and one of bytes whose value is not known, one after
// the other as they were first stored to; a hash of small numbers finds them. So a look-ahead touches
// as much as it stores, and only the hash is cleared for the next: what is touched here drives the
// program's own data out of the caches. (One table of words was 64 KiB to clear, three times a sample.)
#pragma once

#include <string.h>

#include <cstdint>

namespace revisit::machine {

class SideBuffer {
 public:
    static constexpr unsigned kSlots = 4096, kWords = kSlots * 3 / 4;

    void forget() {
        if (used_ == 0) return;
        memset(filter_, 0, sizeof filter_);
        memset(index_, 0, sizeof index_);
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
        if (!may_have(address)) return 0;
        for (unsigned at = slot(address);; at = (at + 1) % kSlots) {
            if (index_[at] == 0) return 0;
            const Word& entry = words_[index_[at] - 1];
            if (entry.number != address >> 3) continue;
            std::uint64_t bits = 0;
            for (unsigned k = 0; k < 8; k++)
                if (entry.written >> k & 1) bits |= std::uint64_t{0xff} << 8 * k;
            word = (word & ~bits) | (entry.value & bits);
            return static_cast<std::uint8_t>(entry.unknown & entry.written);
        }
    }

    // Whether anything may have been stored in the aligned word: most loads stop here, on 512 bytes.
    bool may_have(std::uint64_t address) const {
        unsigned at = slot(address);
        return filter_[at >> 6 & 63] >> (at & 63) & 1;
    }

 private:
    struct Word {
        std::uint64_t value;
        std::uint64_t number : 48;
        std::uint64_t written : 8;  // bytes; none = nothing here
        std::uint64_t unknown : 8;
    };

    static unsigned slot(std::uint64_t address) {
        return static_cast<unsigned>((address >> 3) * 0x9e3779b97f4a7c15 >> 52);
    }
    static_assert(kSlots == 1u << 12);

    Word* find_or_add(std::uint64_t address) {
        for (unsigned at = slot(address);; at = (at + 1) % kSlots) {
            if (index_[at] != 0) {
                Word& entry = words_[index_[at] - 1];
                if (entry.number == address >> 3) return &entry;
                continue;
            }
            if (used_ == kWords) return nullptr;
            unsigned bit = slot(address);
            filter_[bit >> 6 & 63] |= std::uint64_t{1} << (bit & 63);
            Word& entry = words_[used_++];
            index_[at] = static_cast<std::uint16_t>(used_);
            entry = {0, address >> 3 & ((std::uint64_t{1} << 48) - 1), 0, 0};
            return &entry;
        }
    }

    std::uint32_t used_ = 0;
    std::uint64_t filter_[64] = {};
    std::uint16_t index_[kSlots] = {};
    Word words_[kWords] = {};
};

}  // namespace revisit::machine
