#include "engines/sample_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "revisit/accuracy.h"

namespace revisit {
namespace {

// The 95 % half-width, in the whole run, of what has a share of the samples; `1 - n/N` because the run
// is finite.
double half_width(double share, const SampleCounts& counts) {
    const double n = static_cast<double>(counts.samples), all = static_cast<double>(counts.accesses);
    return share_error(share, n) * all * std::sqrt(std::max(0.0, 1 - n / all));
}

// From samples to the whole run.
Histogram scaled(Histogram samples, const SampleCounts& counts) {
    const double n = static_cast<double>(counts.samples), all = static_cast<double>(counts.accesses);
    auto scale = [&](double& count, double& error) {
        error = half_width(count / n, counts);
        count *= all / n;
    };
    scale(samples.cold, samples.cold_error);
    scale(samples.invalidated, samples.invalidated_error);
    for (Bin& bin : samples.bins) scale(bin.count, bin.error);
    return samples;
}

}  // namespace

void SampleTally::add(const FinishedSample& one) {
    auto into = [&](auto& counter, auto add) {
        if (one.outcome == SampleOutcome::reused)
            add(counter);
        else
            ++(one.outcome == SampleOutcome::cold ? counter.cold : counter.invalidated);
    };
    auto by_distance = [&](auto& counter) { counter.add(one.distance); };
    auto small = [&](SmallCounter& counter) { counter.add(options_.bins, one.distance); };
    into(reuse_, by_distance);
    if (options_.time) into(time_, [&](auto& c) { c.add(options_.bins, one.time); });
    if (is_private()) into(threads_.try_emplace(one.thread, options_.bins).first->second, by_distance);
    if (options_.sites) {
        SiteTally& tally = attribution_.sites[one.site];
        ++tally.accesses;
        tally.writes += one.write;
        into(tally.reuse, small);
    }
    if (options_.sharing && one.writer_is_known) {
        sharing_.add(one.block, one.writer, {one.site, one.thread, one.parts}, one.write);
        has_sharing_ = true;
    }
    if (options_.pairs && one.outcome == SampleOutcome::reused)
        small(attribution_.pairs[Attribution::pair_key(one.use_site, one.site)]);
}

Profile SampleTally::profile(const SampleCounts& counts) const {
    Profile out;
    out.method = "sample";
    if (is_private()) out.model = "private";
    out.granularity = options_.granularity;
    out.accesses = static_cast<double>(counts.accesses);
    const auto n = static_cast<double>(counts.samples);
    const double period = counts.samples == 0 ? 0 : out.accesses / n;
    out.sampled = Sampling{period, n, counts.samples == 0 ? 0 : static_cast<double>(counts.pruned) / n};
    if (counts.samples == 0) {
        if (counts.accesses != 0) out.notes.push_back("no access was chosen; the rate is too low");
        return out;
    }
    out.reuse = scaled(reuse_.histogram(), counts);
    out.distinct = out.reuse.cold;
    if (options_.time) out.time = scaled(time_.histogram(options_.bins), counts);
    for (const auto& [id, counter] : threads_) {
        Histogram reuse = scaled(counter.histogram(), counts);
        const double accesses = reuse.total();
        out.threads.push_back({id, accesses, std::move(reuse)});
    }
    attribution_.fill(out, options_.bins, options_.sites, options_.pairs);
    if (has_sharing_) {
        sharing_.fill(out, period);
        auto error_of = [&](double count) { return half_width(count / out.accesses, counts); };
        for (Sharing& one : out.sharing) one.error = error_of(one.count);
        out.sharing_totals->error = error_of(out.sharing_totals->invalidated);
    }
    for (Site& site : out.sites) {
        site.accesses *= period;
        site.writes *= period;
        site.reuse = scaled(site.reuse, counts);
    }
    for (Pair& pair : out.pairs) {
        pair.count *= period;
        pair.distances = scaled(pair.distances, counts);
    }
    out.notes.push_back(fmt::format(
        "{:.1f} % of the accesses were analyzed, {:.2f} % of the "
        "samples pruned; distinct blocks are an estimate",
        100 * static_cast<double>(counts.analyzed) / out.accesses, 100 * out.sampled->pruned));
    return out;
}

}  // namespace revisit
