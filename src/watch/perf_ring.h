// Samples out of the ring that the kernel writes for an event: what precise counters tell.
//
// Problem. A record may wrap around the end of the ring, be of a kind that is not wanted, tell of a
// kernel address or of none, or be broken; a signal handler must not believe any of it. Idea. Copy a
// record out word by word, read only what its own size covers, and give the newest sample whose address
// is one of the program's. Layout: perf_event_open(2), PERF_RECORD_SAMPLE, fields in the order of
// the manual for the sample_type asked for (kSampleType, with kRaw where AMD's registers come along).
// AMD's IBS: registers as in its manual (IbsOpData3: bit 0 load, 1 store, 17 linear address valid), in
// the raw part after a word of capabilities. Checked with records built byte by byte
// (tests/watch_pmu_test.cpp); not verified on hardware.
#pragma once

#include <linux/perf_event.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

namespace revisit::watch {

struct PmuSample {
    std::uint64_t pc = 0, address = 0;
    bool writes = false;
};

class PerfRing {
 public:
    static constexpr std::uint64_t kSampleType =
        PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
    static constexpr std::uint64_t kRaw = PERF_SAMPLE_RAW;

    struct Counts {
        std::uint64_t samples = 0, without_address = 0, lost = 0, throttled = 0, broken = 0;
    };

    PerfRing() = default;
    // `page` is followed by `bytes` of data, a power of two.
    PerfRing(perf_event_mmap_page* page, const std::byte* data, std::uint64_t bytes, bool has_raw)
        : page_(page), data_(data), bytes_(bytes), has_raw_(has_raw) {}

    // Reads all that is there; true and the newest sample that has an address of the program, if any.
    bool newest(PmuSample& sample) {
        if (page_ == nullptr) return false;
        std::uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
        std::uint64_t tail = page_->data_tail;
        bool found = false;
        if (head - tail > bytes_) {
            counts_.broken++;
            tail = head;
        }
        while (head - tail >= sizeof(perf_event_header)) {
            perf_event_header header;
            copy(&header, tail, sizeof header);
            if (header.size < sizeof header || header.size > head - tail || header.size % 8 != 0) {
                counts_.broken++;  // where the next one begins cannot be known
                tail = head;
                break;
            }
            if (header.type == PERF_RECORD_SAMPLE)
                found |= read_sample(tail + sizeof header, header.size - sizeof header, sample);
            else if (header.type == PERF_RECORD_LOST && header.size >= sizeof header + 16)
                counts_.lost += word(tail + sizeof header + 8);
            else if (header.type == PERF_RECORD_THROTTLE)
                counts_.throttled++;
            tail += header.size;
        }
        __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
        return found;
    }

    const Counts& counts() const { return counts_; }

 private:
    static constexpr std::uint64_t kLoads = PERF_MEM_OP_LOAD, kStores = PERF_MEM_OP_STORE;

    void copy(void* to, std::uint64_t at, std::uint64_t bytes) const {
        std::uint64_t from = at & (bytes_ - 1), first = bytes_ - from;
        if (first > bytes) first = bytes;
        memcpy(to, data_ + from, first);
        memcpy(static_cast<std::byte*>(to) + first, data_, bytes - first);
    }
    std::uint64_t word(std::uint64_t at) const {
        std::uint64_t value;
        copy(&value, at, sizeof value);
        return value;
    }

    // Lower half: the kernel's addresses have the top bit set; 0 is no address.
    static bool is_of_program(std::uint64_t address) { return address != 0 && !(address >> 63); }

    bool read_sample(std::uint64_t at, std::uint64_t bytes, PmuSample& sample) {
        counts_.samples++;
        const std::uint64_t end = at + bytes;
        if (bytes < 24) {
            counts_.broken++;
            return false;
        }
        PmuSample one{word(at), word(at + 8), false};
        at += 16;
        if (has_raw_ && !read_raw(at, end, one)) {
            counts_.broken++;
            return false;
        }
        if (end - at < 8) {
            counts_.broken++;
            return false;
        }
        std::uint64_t operation = word(at) & 31;  // mem_op of perf_mem_data_src
        if (operation & (kLoads | kStores)) one.writes = operation & kStores;
        if (!is_of_program(one.address) || !is_of_program(one.pc)) {
            counts_.without_address++;
            return false;
        }
        sample = one;
        return true;
    }

    // Of kernels that give no address for IBS, it is among the registers: control, rip, data, data 2,
    // data 3, linear address.
    bool read_raw(std::uint64_t& at, std::uint64_t end, PmuSample& one) const {
        std::uint32_t size;
        if (end - at < 8) return false;
        copy(&size, at, sizeof size);
        std::uint64_t length = (std::uint64_t{size} + 4 + 7) & ~std::uint64_t{7};
        if (length > end - at) return false;
        constexpr std::uint64_t kRegisters = 8, kData3 = 4, kLinear = 5;  // after size and capabilities
        if (size >= 4 + (kLinear + 1) * 8) {
            std::uint64_t data3 = word(at + kRegisters + kData3 * 8);
            bool has_address = data3 >> 17 & 1;
            one.writes = data3 >> 1 & 1;
            if (has_address && one.address == 0) one.address = word(at + kRegisters + kLinear * 8);
            if (!has_address || !(data3 & 3)) one.address = 0;
        }
        at += length;
        return true;
    }

    perf_event_mmap_page* page_ = nullptr;
    const std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
    bool has_raw_ = false;
    Counts counts_;
};

}  // namespace revisit::watch
