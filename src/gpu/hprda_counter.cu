// HP-RDA as published, on a GPU: engines/hprda.cpp explains the method.
//
// As in the paper, a CUDA thread walks its own trace with a hash table and a local array, in blocks of
// NB threads. The local array is kept as bits (an entry is still a block's latest access or not), which
// counts 32 entries an instruction. The paper links what threads know of a block in lists under a
// lock-free hash table; here the notes of all threads are sorted by block, which brings the same lists
// together and makes the result the same in every run. Notes of earlier fragments are carried along in
// front.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/device_bins.cuh"
#include "gpu/hprda_counter.h"

namespace revisit::gpu {
namespace {

constexpr u32 kRawPerOctave = 256;

// What a thread knows of a block, and what earlier fragments do.
struct Note {
    u32 thread;
    u32 first;
    u32 latest;
};
struct Carried {
    u64 latest;
    u64 sum_after;
};

__global__ void flag_repeats(const u64* blocks, u32 count, u64 before, bool has_before, u32* keep) {
    for (u64 i = blockIdx.x * u64{blockDim.x} + threadIdx.x; i < count;
         i += u64{gridDim.x} * blockDim.x)
        keep[i] = i == 0 ? !(has_before && blocks[0] == before) : blocks[i] != blocks[i - 1];
}

// `place` is the exclusive sum of the flags.
__global__ void drop_repeats(const u64* blocks, u32 count, const u32* keep, const u32* place,
                             u64* kept) {
    for (u64 i = blockIdx.x * u64{blockDim.x} + threadIdx.x; i < count;
         i += u64{gridDim.x} * blockDim.x)
        if (keep[i] != 0) kept[place[i]] = blocks[i];
}

__device__ __forceinline__ u32 ones_between(const u32* bits, u32 low, u32 high) {  // [low, high)
    if (low >= high) return 0;
    const u32 first = low >> 5, last = (high - 1) >> 5;
    const u32 head = ~0u << (low & 31), tail = ~0u >> (31 - ((high - 1) & 31));
    if (first == last) return __popc(bits[first] & head & tail);
    u32 sum = __popc(bits[first] & head) + __popc(bits[last] & tail);
    for (u32 w = first + 1; w < last; ++w) sum += __popc(bits[w]);
    return sum;
}

// Each thread: its own trace of `size` accesses. hash and ranks are its own parts of global memory.
__global__ void analyze_threads(const u64* kept, u32 count, u32 size, u32 slots, u16* hash, u16* ranks,
                                u32* bits, u64* note_blocks, Note* notes, u32* counts,
                                unsigned long long* distances) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u64 begin = u64{thread} * size;
    if (begin >= count) return;
    const u32 length = static_cast<u32>(min(u64{size}, count - begin));
    const u64* trace = kept + begin;
    hash += u64{thread} * slots;
    ranks += begin;
    bits += u64{thread} * ((size + 31) / 32);
    u32 distinct = 0;
    for (u32 i = 0; i < length; ++i) {
        const u64 block = trace[i];
        u32 slot = static_cast<u32>((block ^ block >> 32) * 0x9e3779b97f4a7c15u >> 40) & (slots - 1);
        u32 found = 0;  // index of the last access + 1
        while ((found = hash[slot]) != 0 && trace[found - 1] != block) slot = (slot + 1) & (slots - 1);
        if (found == 0) {
            ranks[i] = static_cast<u16>(distinct++);
        } else {
            const u32 before = found - 1;
            atomicAdd(&distances[ones_between(bits, before + 1, i)], 1ull);
            bits[before >> 5] &= ~(1u << (before & 31));
            ranks[i] = ranks[before];
        }
        hash[slot] = static_cast<u16>(i + 1);
        bits[i >> 5] |= 1u << (i & 31);
    }
    u32 written = 0;
    for (u32 i = 0; i < length; ++i) {
        if ((bits[i >> 5] >> (i & 31) & 1) == 0) continue;
        note_blocks[begin + written] = trace[i];
        notes[begin + written] = {thread, ranks[i], distinct - 1 - written};
        ++written;
    }
    counts[thread] = distinct;
}

// Brings the threads' notes together after the carried ones, as (block, index) pairs to sort.
__global__ void gather_notes(const u64* note_blocks, const Note* notes, u32 count, u32 size,
                             const u32* sums, const u32* counts, u32 carried, u64 low, u64* keys,
                             u32* order, Note* dense) {
    for (u64 i = blockIdx.x * u64{blockDim.x} + threadIdx.x; i < count;
         i += u64{gridDim.x} * blockDim.x) {
        const u32 thread = static_cast<u32>(i / size), within = static_cast<u32>(i % size);
        if (within >= counts[thread]) continue;
        const u32 to = sums[thread] + within;
        dense[to] = notes[i];
        keys[carried + to] = note_blocks[i] - low;
        order[carried + to] = carried + to;
    }
}
__global__ void gather_carried(const u64* blocks, u32 carried, u64 low, u64* keys, u32* order) {
    for (u64 i = blockIdx.x * u64{blockDim.x} + threadIdx.x; i < carried;
         i += u64{gridDim.x} * blockDim.x) {
        keys[i] = blocks[i] - low;
        order[i] = static_cast<u32>(i);
    }
}
__global__ void find_block_range(const u64* blocks, u32 count, unsigned long long* range) {
    u64 low = ~u64{0}, high = ~u64{0};
    for (u64 i = blockIdx.x * u64{blockDim.x} + threadIdx.x; i < count;
         i += u64{gridDim.x} * blockDim.x) {
        low = min(low, blocks[i]);
        high = min(high, ~blocks[i]);
    }
    atomicMin(&range[0], static_cast<unsigned long long>(low));
    atomicMin(&range[1], static_cast<unsigned long long>(high));
}

// Everything the merging reads. `sums` are counts of threads, `block_sums` those of thread blocks, both
// exclusive.
struct Merge {
    const u64* keys;
    const u32* order;
    u32 count;    // notes, the carried ones among them
    u32 carried;  // which are those with order < carried
    u32 threads;
    u32 block_threads;
    const Note* notes;
    const Carried* past;
    const u32* sums;
    u32* block_counts;
    const u32* block_sums;
    u64 sum_before;  // of thread blocks in earlier fragments
    bool adjust;

    __device__ bool is_past(u32 r) const { return order[r] < carried; }
    __device__ Note note(u32 r) const { return notes[order[r] - carried]; }
    __device__ u32 thread_block(u32 r) const { return note(r).thread / block_threads; }
    // Is r the first note of its block in its thread block?
    __device__ bool heads(u32 r) const {
        return r == 0 || keys[r - 1] != keys[r] || is_past(r - 1) ||
               thread_block(r - 1) != thread_block(r);
    }
    __device__ u32 block_begin(u32 b) const { return sums[b * block_threads]; }
    __device__ u32 block_end(u32 b) const { return sums[min(threads, (b + 1) * block_threads)]; }
    __device__ u64 adjusted(u64 distance, u32 b) const {
        const u64 distinct = block_sums[b + 1] - block_sums[b], sum = block_end(b) - block_begin(b);
        if (!adjust || distance <= distinct) return distance;
        return static_cast<u64>(static_cast<double>(distance) * static_cast<double>(distinct) /
                                static_cast<double>(sum));
    }
    // Of the thread block whose last note of the block r is.
    __device__ Carried latest(u32 r) const {
        if (is_past(r)) return past[order[r]];
        const Note last = note(r);
        const u32 b = last.thread / block_threads;
        return {adjusted(last.latest + (block_end(b) - sums[last.thread + 1]), b),
                sum_before + block_sums[b + 1]};
    }
};

__global__ void count_heads(Merge m) {
    for (u64 r = blockIdx.x * u64{blockDim.x} + threadIdx.x; r < m.count;
         r += u64{gridDim.x} * blockDim.x)
        if (!m.is_past(r) && m.heads(r)) atomicAdd(&m.block_counts[m.thread_block(r)], 1u);
}

__global__ void merge_notes(Merge m, DeviceBins bins, unsigned long long* distances,
                            unsigned long long* raw, u32* ends) {
    for (u64 at = blockIdx.x * u64{blockDim.x} + threadIdx.x; at < m.count;
         at += u64{gridDim.x} * blockDim.x) {
        const u32 r = static_cast<u32>(at);
        ends[r] = r + 1 == m.count || m.keys[r + 1] != m.keys[r];
        if (m.is_past(r)) continue;
        const Note mine = m.note(r);
        const u32 b = mine.thread / m.block_threads;
        if (!m.heads(r)) {
            const Note before = m.note(r - 1);
            const u64 distance =
                u64{before.latest} + (m.sums[mine.thread] - m.sums[before.thread + 1]) + mine.first;
            atomicAdd(&distances[m.adjusted(distance, b)], 1ull);
        } else if (r > 0 && m.keys[r - 1] == m.keys[r]) {
            const Carried before = m.latest(r - 1);
            const u64 first = m.adjusted(m.sums[mine.thread] - m.block_begin(b) + mine.first, b);
            const u64 distance =
                before.latest + (m.sum_before + m.block_sums[b] - before.sum_after) + first;
            atomicAdd(&raw[bins.index(distance)], 1ull);
        }
    }
}

// The last note of every block becomes what the next fragment knows; `place` is the sum of `ends`.
__global__ void carry_notes(Merge m, u64 low, const u32* place, u64* blocks, Carried* carried) {
    for (u64 at = blockIdx.x * u64{blockDim.x} + threadIdx.x; at < m.count;
         at += u64{gridDim.x} * blockDim.x) {
        const u32 r = static_cast<u32>(at);
        if (r + 1 != m.count && m.keys[r + 1] == m.keys[r]) continue;
        blocks[place[r]] = m.keys[r] + low;
        carried[place[r]] = m.latest(r);
    }
}

class Counter final : public HprdaCounter {
 public:
    explicit Counter(const HprdaSettings& settings)
        : settings_(settings),
          distance_count_(std::size_t{settings.thread_trace} * settings.block_threads + 1) {
        slots_ = 64;
        while (slots_ < settings.thread_trace * 2) slots_ *= 2;
        const std::size_t span = std::size_t{settings.thread_trace} * settings.block_threads;
        settings_.fragment = std::max(span, settings.fragment / span * span);
        distances_.require(distance_count_);
        raw_.require(bins().count());
        range_.require(2);
        zero(distances_.data(), distance_count_);
        zero(raw_.data(), bins().count());
    }

    void add(const u64* blocks, std::size_t count, Memory where) override {
        while (count > 0) {
            const std::size_t take = std::min(count, settings_.fragment);
            const u64* input = blocks;
            if (where != Memory::device) {
                input_.require(settings_.fragment);
                copy(input_.data(), blocks, take, cudaMemcpyHostToDevice);
                input = input_.data();
            }
            add_fragment(input, static_cast<u32>(take));
            blocks += take;
            count -= take;
        }
    }

    HprdaOutcome finish() override {
        count_kept(kept_count_);
        HprdaOutcome out;
        out.accesses = accesses_;
        out.distinct = carried_;
        out.sum = sum_;
        out.counted.resize(distance_count_);
        out.raw.resize(bins().count());
        copy(out.counted.data(), reinterpret_cast<const u64*>(distances_.data()), distance_count_,
             cudaMemcpyDeviceToHost);
        copy(out.raw.data(), reinterpret_cast<const u64*>(raw_.data()), out.raw.size(),
             cudaMemcpyDeviceToHost);
        out.counted[0] += accesses_ - kept_total_;
        return out;
    }

 private:
    static DeviceBins bins() { return {kRawPerOctave, 0}; }
    template <class T>
    static void zero(T* memory, std::size_t count) {
        check(cudaMemset(memory, 0, count * sizeof(T)), "clear memory");
    }
    template <class T>
    static void copy(T* to, const T* from, std::size_t count, cudaMemcpyKind kind) {
        check(cudaMemcpy(to, from, count * sizeof(T), kind), "copy");
    }
    static unsigned grid(u64 count) {
        return static_cast<unsigned>(std::clamp<u64>((count + 255) / 256, 1, 4096));
    }
    // Exclusive sum of from[0, count) into to[0, count]; returns the whole.
    u32 sum(const u32* from, u32* to, u32 count) {
        // Reads one beyond the counts: arrays are one longer and end in anything.
        temporary_.run("sum", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(memory, bytes, from, to, count + 1);
        });
        u32 whole = 0;
        copy(&whole, to + count, 1, cudaMemcpyDeviceToHost);
        return whole;
    }

    void add_fragment(const u64* blocks, u32 count) {
        kept_.require(settings_.fragment * 2);
        flags_.require(settings_.fragment + 1);
        places_.require(settings_.fragment + 1);
        flag_repeats<<<grid(count), 256>>>(blocks, count, last_block_, accesses_ != 0, flags_.data());
        const u32 kept = sum(flags_.data(), places_.data(), count);
        drop_repeats<<<grid(count), 256>>>(blocks, count, flags_.data(), places_.data(),
                                           kept_.data() + kept_count_);
        copy(&last_block_, blocks + count - 1, 1, cudaMemcpyDeviceToHost);
        accesses_ += count;
        kept_total_ += kept;
        kept_count_ += kept;
        // Whole thread blocks only, so that it does not matter how the trace came.
        const u32 span = settings_.thread_trace * settings_.block_threads,
                  whole = kept_count_ / span * span;
        count_kept(whole);
        const u32 rest = kept_count_ - whole;
        if (rest != 0 && whole != 0) {
            spare_.require(span);
            copy(spare_.data(), kept_.data() + whole, rest, cudaMemcpyDeviceToDevice);
            copy(kept_.data(), spare_.data(), rest, cudaMemcpyDeviceToDevice);
        }
        kept_count_ = rest;
    }

    void count_kept(u32 count) {
        if (count == 0) return;
        const u32 size = settings_.thread_trace, threads = (count + size - 1) / size;
        const u32 blocks = (threads + settings_.block_threads - 1) / settings_.block_threads;
        hash_.require(u64{threads} * slots_);
        ranks_.require(count);
        bits_.require(u64{threads} * ((size + 31) / 32));
        note_blocks_.require(count);
        notes_.require(count);
        counts_.require(threads + 1);
        sums_.require(threads + 1);
        zero(hash_.data(), u64{threads} * slots_);
        zero(bits_.data(), u64{threads} * ((size + 31) / 32));
        analyze_threads<<<blocks, settings_.block_threads>>>(
            kept_.data(), count, size, slots_, hash_.data(), ranks_.data(), bits_.data(),
            note_blocks_.data(), notes_.data(), counts_.data(), distances_.data());
        check(cudaGetLastError(), "analyze threads");
        const u32 fresh = sum(counts_.data(), sums_.data(), threads);
        const u32 all = carried_ + fresh;

        check(cudaMemset(range_.data(), 0xff, 2 * sizeof(u64)), "clear memory");
        find_block_range<<<grid(count), 256>>>(kept_.data(), count, range_.data());
        if (carried_ != 0)
            find_block_range<<<grid(carried_), 256>>>(past_blocks_.data(), carried_, range_.data());
        unsigned long long range[2];
        copy(range, range_.data(), 2, cudaMemcpyDeviceToHost);
        int bits = 1;
        while (bits < 64 && (~range[1] - range[0]) >> bits != 0) ++bits;

        for (auto& keys : keys_) keys.require(all);
        for (auto& order : order_) order.require(all);
        dense_.require(fresh);
        if (carried_ != 0)
            gather_carried<<<grid(carried_), 256>>>(past_blocks_.data(), carried_, range[0],
                                                    keys_[0].data(), order_[0].data());
        gather_notes<<<grid(count), 256>>>(note_blocks_.data(), notes_.data(), count, size,
                                           sums_.data(), counts_.data(), carried_, range[0],
                                           keys_[0].data(), order_[0].data(), dense_.data());
        cub::DoubleBuffer<u64> keys(keys_[0].data(), keys_[1].data());
        cub::DoubleBuffer<u32> order(order_[0].data(), order_[1].data());
        temporary_.run("sort notes", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, order, all, 0, bits);
        });

        block_counts_.require(blocks + 1);
        block_sums_.require(blocks + 1);
        ends_.require(all + 1);
        zero(block_counts_.data(), blocks + 1);
        Merge merge{keys.Current(),
                    order.Current(),
                    all,
                    carried_,
                    threads,
                    settings_.block_threads,
                    dense_.data(),
                    past_.data(),
                    sums_.data(),
                    block_counts_.data(),
                    block_sums_.data(),
                    sum_,
                    settings_.adjust};
        count_heads<<<grid(all), 256>>>(merge);
        const u32 block_sum = sum(block_counts_.data(), block_sums_.data(), blocks);
        merge_notes<<<grid(all), 256>>>(merge, bins(), distances_.data(), raw_.data(), ends_.data());
        check(cudaGetLastError(), "merge threads");
        places_.require(all + 1);
        const u32 distinct = sum(ends_.data(), places_.data(), all);
        next_blocks_.require(distinct);
        next_past_.require(distinct);
        carry_notes<<<grid(all), 256>>>(merge, range[0], places_.data(), next_blocks_.data(),
                                        next_past_.data());
        check(cudaDeviceSynchronize(), "merge threads");
        past_blocks_.swap(next_blocks_);
        past_.swap(next_past_);
        carried_ = distinct;
        sum_ += block_sum;
    }

    HprdaSettings settings_;
    std::size_t distance_count_;
    u32 slots_ = 0;
    DeviceArray<unsigned long long> distances_, raw_, range_;
    DeviceArray<u64> input_, kept_, spare_, note_blocks_, keys_[2], past_blocks_, next_blocks_;
    DeviceArray<u32> flags_, places_, bits_, counts_, sums_, order_[2], block_counts_, block_sums_,
        ends_;
    DeviceArray<u16> hash_, ranks_;
    DeviceArray<Note> notes_, dense_;
    DeviceArray<Carried> past_, next_past_;
    TemporaryMemory temporary_;
    u64 accesses_ = 0, kept_total_ = 0, sum_ = 0, last_block_ = 0;
    u32 kept_count_ = 0, carried_ = 0;
};

}  // namespace

std::unique_ptr<HprdaCounter> make_hprda_counter(const HprdaSettings& settings) {
    if (const Devices devices = find_devices(); devices.list.empty())
        throw std::runtime_error(devices.why);
    return std::make_unique<Counter>(settings);
}

}  // namespace revisit::gpu
