// How a precise event is asked for: the same in the trial and in the sampler.
#pragma once

#include <string.h>

#include "watch/perf_ring.h"
#include "watch/preload/settings.h"

namespace revisit::watch {

// Without a period it only counts.
inline void fill_attributes(perf_event_attr& attributes, const PmuEvent& event,
                            const PmuSettings& settings, std::uint64_t period) {
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = static_cast<std::uint32_t>(event.type);
    attributes.config = event.config;
    attributes.config1 = event.config1;
    attributes.config2 = event.config2;
    attributes.disabled = 1;
    attributes.exclude_kernel = event.config2 == 0;  // else the event itself leaves the kernel out
    attributes.exclude_hv = 1;
    if (period == 0) return;
    attributes.sample_period = period;
    attributes.precise_ip = settings.precise & 3;
    if (!settings.tells_address) return;
    attributes.sample_type = PerfRing::kSampleType | (settings.raw ? PerfRing::kRaw : 0);
    attributes.wakeup_events = 1;
}

}  // namespace revisit::watch
