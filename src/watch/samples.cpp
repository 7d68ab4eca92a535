#include "watch/samples.h"

#include <bit>

#include "record/stream.h"

namespace revisit::watch {

void Samples::add(const record::WatchEvent& event) {
    using Kind = record::WatchEvent::Kind;
    ThreadSamples& thread = threads[event.thread];
    const auto& words = event.words;
    switch (event.kind) {
        case Kind::sample: {
            Sample sample;
            sample.time = words[1];
            sample.period = words[9];
            sample.place = event.place;
            sample.label = event.label;
            sample.has_address = !(event.n & REVISIT_USE_NO_ADDRESS);
            sample.write = event.n & REVISIT_USE_WRITE;
            sample.watched = event.n & REVISIT_USE_WATCHED;
            sample.accesses_to_use = static_cast<std::uint32_t>(words[6]);
            sample.chance_watched = std::bit_cast<double>(words[8]);
            if (sample.has_address && !(event.n & REVISIT_USE_UNSEARCHED))
                sample.outcome = Sample::Outcome::passed_over;
            if (words[0] == thread.samples.size() + 1) thread.samples.push_back(sample);
            break;
        }
        case Kind::reuse: {
            if (event.n == 0 || event.n > thread.samples.size()) break;
            Sample& sample = thread.samples[event.n - 1];
            sample.reuse_label = event.label;
            sample.trap_time = words[1];
            if (words[0] == REVISIT_REUSE_AHEAD) {
                sample.outcome = Sample::Outcome::ahead;
                sample.distance = words[4] & 0xffffffff;
                sample.distinct = words[4] >> 32;
            } else if (words[0] == REVISIT_REUSE_TRAPPED || words[0] == REVISIT_REUSE_NEVER) {
                sample.outcome = words[0] == REVISIT_REUSE_TRAPPED ? Sample::Outcome::trapped
                                                                   : Sample::Outcome::never;
                sample.chance_kept = std::bit_cast<double>(words[4]);
            }
            break;
        }
        case Kind::rate:
            rates.push_back(
                {event.place, static_cast<double>(words[0]), static_cast<double>(words[1])});
            break;
        case Kind::clock:
            thread.end = event.n;
            thread.recording = words[0];
            thread.checked = words[3];
            thread.missed = words[4];
            thread.stray = words[5];
    }
}

}  // namespace revisit::watch
