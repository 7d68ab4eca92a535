#include "watch/samples/samples.h"

namespace revisit::watch {

namespace {

// Halves what is kept. What remains is plenty: tens of thousands of windows.
void thin(ThreadSamples& thread) {
    thread.keeps *= 2;
    std::vector<ThreadSamples::Entry> kept;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        Sample& sample = thread.samples[i];
        if (i % thread.keeps != 0) sample.time_entries = sample.reuse_entries = 0;
        auto from = thread.entries.begin() + static_cast<std::ptrdiff_t>(sample.first_entry);
        sample.first_entry = kept.size();
        kept.insert(kept.end(), from, from + sample.time_entries + sample.reuse_entries);
    }
    thread.entries = std::move(kept);
}

}  // namespace

void ThreadSamples::add_window(const Window& window) {
    Sample& sample = samples.back();
    sample.uses = static_cast<std::uint16_t>(window.uses());
    sample.open = static_cast<std::uint16_t>(window.open());
    if ((samples.size() - 1) % keeps != 0) return;
    sample.first_entry = entries.size();
    auto put = [&](unsigned value, unsigned times) {
        entries.push_back({static_cast<std::uint16_t>(value), static_cast<std::uint16_t>(times)});
    };
    window.time().for_each(put);
    sample.time_entries = static_cast<std::uint32_t>(entries.size() - sample.first_entry);
    window.reuse().for_each(put);
    sample.reuse_entries =
        static_cast<std::uint32_t>(entries.size() - sample.first_entry) - sample.time_entries;
    if (entries.size() > kMostEntries) thin(*this);
}

}  // namespace revisit::watch
