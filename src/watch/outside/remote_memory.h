// Another process's memory as the interpreter sees it: read page by page, under what it has itself
// stored.
//
// Problem. process_vm_readv takes about a microsecond, an interpreted instruction 5 ns. Idea. A stopped
// thread's memory stands still (other threads may write, as they may between its own instructions), so
// it is read once per stop, into a direct-mapped cache of pages; code of mapped files is kept from stop
// to stop, 4 MiB of it: with a sixteenth of that, SQLite's was read again for each sample, 1.5 MB. What
// is read passes through caches that the program has its data in, so an eighth of a page is read where
// memory is touched at random, and all of it where something is gone through from end to end. Reading
// from outside springs no watchpoint of the program and cannot fault. Cost. 1.2 to 1.7 us per read
// (aarch64 virtual machine); a sample of a loop over arrays makes 5 to 20 of them, one that goes
// through memory at random one per access. Most such code only computes with what it finds there, so
// reads may be limited (allow_pages): values elsewhere are unknown, and where one is needed, the caller
// allows more and starts again.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "machine/ahead.h"
#include "machine/side_buffer.h"

namespace revisit::watch::outside {

class RemoteMemory {
 public:
    // What pages hold is left as it comes: most are never read.
    RemoteMemory()
        : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>((kPages + kCodePages) * kBytes)),
          pages_(kPages),
          code_(kCodePages) {
        std::uint8_t* next = bytes_.get();
        for (std::vector<Page>* all : {&pages_, &code_})
            for (Page& one : *all) one.bytes = std::exchange(next, next + kBytes);
    }

    // Goes on with this process, seen through one of its threads; what was read before is read again,
    // but for code of files.
    void start(pid_t process, pid_t thread) {
        thread_ = thread;
        if (process != process_) {
            process_ = process;
            forget_code();
        }
        round_++;
        allow_pages(kNoLimit);
        forget_stores();
    }
    // Of data, so many more are read at this stop.
    void allow_pages(unsigned count) {
        pages_left_ = count;
        next_left_ = kNext;
        left_out_ = false;
    }
    static constexpr unsigned kNoLimit = ~0u, kNext = 16;
    // Whether a value was taken for unknown that reading one more page would have given.
    bool left_out() const { return left_out_; }
    // Interprets from the beginning again, at the same stop.
    void forget_stores() {
        side_.forget();
        loses_stores_ = false;
        ranges_ = 0;
        last_code_ = nullptr;
    }
    void forget_code() {
        for (Page& one : code_) one.number = kNone;
        last_code_ = nullptr;
    }
    // Whether code there may be kept until modules change: asked once per page.
    template <class IsFixed>
    void ask_about_code(IsFixed is_fixed) {
        is_fixed_ = is_fixed;
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
        const Page* page = last_code_;
        if (page == nullptr || pc >> kShift != page->number) [[unlikely]] {
            page = pc & 3 ? nullptr : code_page(pc >> kShift);
            if (page == nullptr) return false;
        }
        std::memcpy(&instruction, page->bytes + (pc & kMask), 4);
        return true;
    }

    // Instructions without a fixed length: as many bytes as are there.
    [[gnu::always_inline]] unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]) {
        const Page* page = last_code_;
        if (page == nullptr || pc >> kShift != page->number) [[unlikely]] {
            page = code_page(pc >> kShift);
            if (page == nullptr) return 0;
        }
        auto here = static_cast<unsigned>(kBytes - (pc & kMask));
        if (here >= sizeof code) [[likely]] {
            std::memcpy(code, page->bytes + (pc & kMask), sizeof code);
            return sizeof code;
        }
        std::memcpy(code, page->bytes + (pc & kMask), here);
        const Page* next = code_page((pc >> kShift) + 1);
        if (next == nullptr) return here;
        std::memcpy(code + here, next->bytes, sizeof code - here);
        return sizeof code;
    }

    [[gnu::always_inline]] machine::Loaded load(std::uint64_t address, unsigned bytes,
                                                std::uint64_t& value) {
        using machine::Loaded;
        unsigned offset = address & 7;
        std::uint64_t aligned = address & ~std::uint64_t{7}, low = 0, high = 0;
        if (Loaded found = word(aligned, low); found != Loaded::value) return found;
        unsigned unknown = side_.overlay(aligned, low);
        if (offset + bytes > 8) {
            if (Loaded found = word(aligned + 8, high); found != Loaded::value) return found;
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

    // Straight from the process, past all caches.
    static bool read(pid_t process, std::uint64_t address, void* to, std::size_t bytes) {
        iovec here{to, bytes}, there{reinterpret_cast<void*>(address), bytes};
        return process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
    }

    std::uint64_t bytes_read() const { return bytes_read_; }

 private:
    static constexpr unsigned kShift = 12, kPages = 2048, kCodePages = 1024, kMostRanges = 8;
    static constexpr std::uint64_t kBytes = 1 << kShift, kMask = kBytes - 1, kNone = ~std::uint64_t{0};
    static constexpr unsigned kPartShift = 9, kParts = 1u << (kShift - kPartShift);

    struct Page {
        std::uint64_t number = kNone, round = 0;
        std::uint8_t* bytes = nullptr;
        std::uint8_t parts = 0;  // bits: those that were read
        bool is_readable = false, is_fixed = false;
    };
    static_assert(kParts <= 8);

    bool is_lost(std::uint64_t address, unsigned bytes) const {
        for (unsigned i = 0; i < ranges_; i++)
            if (address < lost_[i].high && lost_[i].low < address + bytes) return true;
        return false;
    }

    [[gnu::always_inline]] machine::Loaded word(std::uint64_t aligned, std::uint64_t& value) {
        using machine::Loaded;
        std::uint64_t number = aligned >> kShift;
        Page& page = slot(number);
        auto part = static_cast<unsigned>((aligned & kMask) >> kPartShift);
        if (page.number != number || page.round != round_ || !(page.parts >> part & 1)) [[unlikely]] {
            if (!read_part(page, number, part, aligned)) return Loaded::unknown;
        }
        std::memcpy(&value, page.bytes + (aligned & kMask), 8);
        return page.is_readable ? Loaded::value : Loaded::fault;
    }

    Page& slot(std::uint64_t number) { return pages_[(number ^ number >> 11) % kPages]; }
    bool is_there(std::uint64_t number) {
        const Page& page = slot(number);
        return page.number == number && page.round == round_;
    }

    // The part that was asked for, or more where something is gone through from end to end: the part
    // before or after it was read, or the page before. False = too many were read.
    [[gnu::noinline]] bool read_part(Page& page, std::uint64_t number, unsigned part,
                                     std::uint64_t aligned) {
        bool is_new = page.number != number || page.round != round_;
        unsigned known = is_new ? 0u : page.parts;
        bool from_below = part > 0 && known >> (part - 1) & 1, from_above = known >> (part + 1) & 1;
        bool from_before = is_new && is_there(number - 1);
        if (pages_left_ == 0 && !from_below && !from_above && !side_.may_have(aligned)) {
            if (next_left_ == 0 || !from_before) {
                left_out_ = true;
                return false;
            }
            next_left_--;
        }
        if (pages_left_ != 0 && pages_left_ != kNoLimit && !from_below && !from_above) pages_left_--;
        unsigned first = from_above || from_before ? 0 : part;
        unsigned end = from_below || from_before ? kParts : part + 1;
        fill(page, number, first, end);
        return true;
    }

    void fill(Page& page, std::uint64_t number, unsigned first, unsigned end) {
        if (page.number != number || page.round != round_) page.parts = 0;
        page.number = number;
        page.round = round_;
        std::uint64_t offset = std::uint64_t{first} << kPartShift,
                      bytes = std::uint64_t{end - first} << kPartShift;
        bytes_read_ += bytes;
        page.is_readable = read(thread_, (number << kShift) + offset, page.bytes + offset, bytes);
        if (!page.is_readable) {
            std::memset(page.bytes, 0, kBytes);
            page.parts = static_cast<std::uint8_t>((1u << kParts) - 1);
        }
        page.parts |= static_cast<std::uint8_t>((1u << end) - (1u << first));
    }

    [[gnu::noinline]] const Page* code_page(std::uint64_t number) {
        Page& page = code_[number % kCodePages];
        if (page.number != number || (!page.is_fixed && page.round != round_)) {
            fill(page, number, 0, kParts);
            page.is_fixed = page.is_readable && is_fixed_ && is_fixed_(number << kShift);
        }
        return page.is_readable ? last_code_ = &page : nullptr;
    }

    pid_t process_ = 0, thread_ = 0;
    std::uint64_t round_ = 1, bytes_read_ = 0;
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::vector<Page> pages_, code_;
    const Page* last_code_ = nullptr;
    std::function<bool(std::uint64_t)> is_fixed_;
    struct Range {
        std::uint64_t low, high;
    } lost_[kMostRanges];
    unsigned ranges_ = 0, pages_left_ = kNoLimit, next_left_ = 0;
    bool loses_stores_ = false, left_out_ = false;
    machine::SideBuffer side_;
};

// A trapped thread's memory: the top of its stack as it was at the trap, else as it is now. It has gone
// on since, but what is further up the stack changes rarely.
class TrapMemory {
 public:
    TrapMemory(RemoteMemory& now, std::uint64_t stack_pointer, const std::uint8_t* copy,
               std::uint64_t bytes)
        : now_(now), low_(stack_pointer), bytes_(bytes), copy_(copy) {}

    machine::Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        std::uint64_t offset = address - low_;
        if (offset >= bytes_ || bytes > bytes_ - offset) return now_.load(address, bytes, value);
        value = 0;
        std::memcpy(&value, copy_ + offset, bytes);
        return machine::Loaded::value;
    }
    template <class Code>
    auto fetch(std::uint64_t pc, Code& code) {
        return now_.fetch(pc, code);
    }
    bool store(std::uint64_t, unsigned, std::uint64_t, bool) { return false; }

 private:
    RemoteMemory& now_;
    std::uint64_t low_, bytes_;
    const std::uint8_t* copy_;
};

}  // namespace revisit::watch::outside
