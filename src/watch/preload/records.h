// What the sampler writes into the stream, record by record: src/record/stream.h has their form.
#pragma once

#include "watch/preload/look.h"

namespace revisit::watch {

// Nanoseconds without those that went into sampling; accesses, where they are counted.
inline std::uint64_t program_time(const Thread& t, std::uint64_t now) {
    if (t.sampler.counts()) return t.counted;
    return now > t.recording ? now - t.recording : 0;
}

inline void write_path(Thread& t, const Path& path) {
    if (!t.writer.room(Path::kMost + 4) || !t.writer.is_new_path(path.hash())) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_PATH, path.count + 1));
    t.writer.put(path.pc);
    for (unsigned i = path.count; i > 0; i--) t.writer.put(path.back[i - 1]);
    t.writer.put(path.link);
}

// The block of the heap that an address lies in, for the records that follow.
inline void write_block(Thread& t, std::uint64_t address) {
    if (!(process.stream->want & REVISIT_WANT_OBJECTS)) return;
    HeapBlock block = find_block(address);
    if (!t.writer.room(3) || !t.writer.is_new_block(address, block.low, block.high)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_BLOCK, block.where));
    t.writer.put(block.low);
    t.writer.put(block.high - block.low);
}

inline void write_reuse(Thread& t, std::uint64_t sample, std::uint64_t how, std::uint64_t time,
                        std::uint64_t pc, std::uint64_t address, std::uint64_t word) {
    if (!t.writer.room(6)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_REUSE, sample));
    t.writer.put(how);
    t.writer.put(time);
    t.writer.put(pc);
    t.writer.put(address);
    t.writer.put(word);
}

inline void write_set(Thread& t, const Noted& use, double chance) {
    write_block(t, use.address);
    write_path(t, use.path);
    if (!t.writer.room(5)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_SET, t.counts.samples));
    t.writer.put(use.pc);
    t.writer.put(use.address);
    t.writer.put(use.accesses);
    t.writer.put(chance);
}

inline void write_window(Thread& t) {
    const Window& window = t.window;
    constexpr unsigned kMostWords = 2 + Window::kMost;
    if (!t.writer.room(kMostWords)) return;
    std::uint64_t* record = t.writer.reserve();
    std::uint64_t entries = 0, counts[2] = {};
    unsigned which = 0;
    auto put = [&](unsigned value, unsigned times) {
        std::uint64_t entry = value | std::uint64_t{times} << 16, &word = record[2 + entries / 2];
        word = entries % 2 ? word | entry << 32 : entry;
        entries++;
        counts[which]++;
    };
    window.time().for_each(put);
    which = 1;
    window.reuse().for_each(put);
    std::uint64_t words = 1 + (entries + 1) / 2;
    record[0] = REVISIT_RECORD(REVISIT_WATCH_WINDOW, words);
    record[1] = std::uint64_t{window.uses()} | std::uint64_t{window.open()} << 16 | counts[0] << 32 |
                counts[1] << 48;
    t.writer.advance(1 + words);
}

}  // namespace revisit::watch
