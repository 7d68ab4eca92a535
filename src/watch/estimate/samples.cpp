#include "watch/estimate/samples.h"

#include <algorithm>
#include <bit>

#include "record/stream.h"

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

void Samples::add_window(ThreadSamples& thread, std::span<const std::uint64_t> words) {
    if (words.empty() || thread.samples.empty()) return;
    Sample& sample = thread.samples.back();
    sample.uses = words[0] & 0xffff;
    sample.open = std::min<std::uint16_t>(words[0] >> 16 & 0xffff, sample.uses);
    std::uint32_t time = words[0] >> 32 & 0xffff, reuse = words[0] >> 48;
    if ((thread.samples.size() - 1) % thread.keeps != 0 || time + reuse > 2 * (words.size() - 1))
        return;
    sample.first_entry = thread.entries.size();
    sample.time_entries = time;
    sample.reuse_entries = reuse;
    for (std::size_t i = 0; i < time + reuse; i++) {
        auto entry = static_cast<std::uint32_t>(words[1 + i / 2] >> (i % 2 * 32));
        thread.entries.push_back(
            {static_cast<std::uint16_t>(entry), static_cast<std::uint16_t>(entry >> 16)});
    }
    if (thread.entries.size() > ThreadSamples::kMostEntries) thin(thread);
}

void Samples::add(const record::WatchEvent& event) {
    using Kind = record::WatchEvent::Kind;
    using Watched = Sample::Watched;
    ThreadSamples& thread = threads[event.thread];
    const auto& words = event.words;
    std::uint64_t now = thread.samples.empty() ? 0 : thread.samples.back().time;
    switch (event.kind) {
        case Kind::sample: {
            Sample sample;
            sample.time = words[1];
            sample.period = words[8];
            sample.place = event.place;
            sample.label = event.label;
            sample.has_address = !(event.n & REVISIT_USE_NO_ADDRESS);
            sample.write = event.n & REVISIT_USE_WRITE;
            if (words[0] == thread.samples.size() + 1) thread.samples.push_back(sample);
            break;
        }
        case Kind::window:
            add_window(thread, words);
            break;
        case Kind::set: {
            if (event.n == 0 || event.n > thread.samples.size()) break;
            Sample& sample = thread.samples[event.n - 1];
            sample.watched = Watched::replaced;
            sample.far_label = event.label;
            sample.far_accesses = words[2];
            sample.chance_watched = std::bit_cast<double>(words[3]);
            break;
        }
        case Kind::reuse: {
            if (event.n == 0 || event.n > thread.samples.size()) break;
            Sample& sample = thread.samples[event.n - 1];
            if (words[0] == REVISIT_REUSE_AHEAD) {
                sample.ahead = true;
                sample.reuse_label = event.label;
                sample.distance = words[4] & 0xffffffff;
                sample.distinct = words[4] >> 32;
            } else if (words[0] == REVISIT_REUSE_FAR) {
                sample.watched = Watched::foreseen;
                sample.far_reuse_label = event.label;
                sample.trap_time = sample.time;
                sample.far_distance = words[4];
            } else if (words[0] == REVISIT_REUSE_TRAPPED || words[0] == REVISIT_REUSE_NEVER) {
                sample.watched = words[0] == REVISIT_REUSE_TRAPPED ? Watched::trapped : Watched::never;
                sample.far_reuse_label = event.label;
                sample.trap_time = words[1];
                sample.chance_kept = std::bit_cast<double>(words[4]);
            }
            break;
        }
        case Kind::rate:
            if (words.size() == 6) {
                auto stretch = [&](std::size_t at) {
                    return Rate::Stretch{static_cast<double>(words[at]),
                                         static_cast<double>(words[at + 1])};
                };
                if (words[4] == 0)
                    timed.push_back({event.place, stretch(0).accesses, stretch(0).nanoseconds, now});
                else
                    rates.push_back({event.place, stretch(0), stretch(2), stretch(4), now});
            }
            break;
        case Kind::note: {
            Note& note = notes[event.n];
            note.threads++;
            note.error = static_cast<int>(words[0]);
            break;
        }
        case Kind::replay:
            replays.push_back(
                {event.place, static_cast<double>(words[0]), static_cast<double>(words[1]), now});
            break;
        case Kind::end: {
            Ended& end = ended[{event.place, words[0]}];
            (words[1] == 0 ? end.before : end.after)++;
            break;
        }
        case Kind::clock:
            thread.end = event.n;
            thread.recording = words[0];
            thread.checked = words[3];
            thread.missed = words[4];
            thread.stray = words[5];
    }
}

}  // namespace revisit::watch
