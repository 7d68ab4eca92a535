// What changed between two profiles.
//
// Problem. Two runs never give the same numbers; builds move every address and many lines. A comparison
// that a build can fail on must distinguish a change from noise, and name the place.
// Idea. Figures carry 95 % errors: from sampling, and from the spread of the runs where a side has
// several. Histograms are compared by S (shares, so runs of different length compare), and S gets an
// error too: independent noise of deviation s in a bin costs S about s·sqrt(2/π)/2 even when nothing
// changed. Places are matched by source (file, function, line) rather than by address, summed by line
// and by function, so that a function keeps its row when its lines move.
#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/common_bins.h"
#include "core/errors.h"
#include "core/try.h"
#include "models/hierarchy_model.h"
#include "models/hit_table.h"
#include "report/words.h"
#include "revisit/accuracy.h"

namespace revisit {
namespace {

struct Side {
    std::vector<Profile> runs;
    Profile sum;       // of all runs; divide by their number
    double count = 0;  // of runs
};

// The mean run of a group of them.
Profile mean_run(const Profile& merged, const RunGroup& group) {
    const double share = 1 / std::max(1.0, group.runs);
    Profile mean;
    mean.method = merged.method;
    mean.model = merged.model;
    mean.granularity = merged.granularity;
    mean.accesses = group.accesses * share;
    mean.distinct = group.distinct * share;
    mean.reuse = group.reuse;
    Histogram& reuse = mean.reuse;
    for (double* value : {&reuse.cold, &reuse.cold_error, &reuse.invalidated, &reuse.invalidated_error})
        *value *= share;
    for (Bin& bin : reuse.bins)
        for (double* value : {&bin.count, &bin.error, &bin.beyond_error}) *value *= share;
    return mean;
}

// A merge of runs is as many runs as it kept apart: they differ by noise.
Result<Side> side_of(const std::vector<Profile>& profiles) {
    ProfileMerger sum(profiles.front());
    for (std::size_t i = 1; i < profiles.size(); ++i) TRY(sum.add(profiles[i]));
    Side side{{}, sum.take(), 0};
    for (const Profile& profile : profiles) {
        if (profile.runs.size() < 2) {
            side.runs.push_back(profile);
            side.count += profile.runs.empty() ? 1 : profile.runs[0].runs;
            continue;
        }
        for (const RunGroup& group : profile.runs) {
            side.runs.push_back(mean_run(profile, group));
            side.count += group.runs;
        }
    }
    return side;
}

// Both sides over the bins they share, where they differ: a figure that depends on how wide a bin is
// would otherwise move though nothing else did. What was done, for the reader; empty = nothing.
std::string put_on_common_bins(std::vector<Profile>& before, std::vector<Profile>& after) {
    CommonBins common;
    for (const auto* side : {&before, &after})
        for (const Profile& run : *side) common.add(run.reuse);
    bool differ = false;
    for (auto* side : {&before, &after})
        for (const Profile& run : *side) differ = differ || common.changes(run.reuse);
    if (!differ) return {};
    for (auto* side : {&before, &after})
        for (Profile& run : *side) {
            run.reuse = common.fold(run.reuse);
            for (RunGroup& group : run.runs) group.reuse = common.fold(group.reuse);
            for (Site& site : run.sites) site.reuse = common.fold(site.reuse);
            for (Object& object : run.objects) object.reuse = common.fold(object.reuse);
        }
    std::string text = fmt::format(
        "the profiles have different bins: compared over the {} {} that "
        "they have in common",
        common.size(), common.size() == 1 ? "bin" : "bins");
    if (!common.nested())
        text += fmt::format("; {} do not line up, so much is hidden: profile both with the same bins",
                            common.clash());
    return text;
}

// What the two sides were made by, where that is not the same.
void note_differences(Diff& diff, const Profile& before, const Profile& after) {
    if (before.method != after.method)
        diff.notes.push_back(fmt::format("methods differ: {} against {}", before.method, after.method));
    if (before.model != after.model)
        diff.notes.push_back(fmt::format("models differ: {} against {}", before.model, after.model));
}

// How much S of two histograms falls short of 1 through their bins' errors alone.
double noise_cost(const Histogram& a, const Histogram& b) {
    constexpr double kDeviations = 1.96;
    double a_total = std::max(a.total(), 1e-300), b_total = std::max(b.total(), 1e-300);
    // Bins of both sides share edges mostly; where they do not, taking them apart overstates the noise
    // a little, which only makes the gate more careful.
    std::map<std::uint64_t, double> variance;
    auto take = [&](const Histogram& histogram, double total) {
        for (const Bin& bin : histogram.bins)
            variance[bin.low] += std::pow(bin.error / kDeviations / total, 2);
    };
    take(a, a_total);
    take(b, b_total);
    double cost =
        std::hypot(a.cold_error / a_total, b.cold_error / b_total) / kDeviations +
        std::hypot(a.invalidated_error / a_total, b.invalidated_error / b_total) / kDeviations;
    for (auto [low, square] : variance) cost += std::sqrt(square);
    return cost * std::sqrt(2 / std::numbers::pi) / 2;
}

// How far single runs of a side fall from the side's sum: noise that no bin error covers.
double spread_cost(const Side& side) {
    double worst = 0;
    if (side.runs.size() > 1)
        for (const Profile& run : side.runs)
            worst = std::max(worst, 1 - accuracy(side.sum.reuse, run.reuse));
    return worst;
}

// Reuses alone, on the 20 bins of Wang, Liu and Chabbi (2019): all below 4 KiB, then doubling.
Histogram on_coarse_bins(const Histogram& fine, std::uint64_t granularity) {
    constexpr std::size_t kBins = 20;
    const std::uint64_t first = std::max<std::uint64_t>(1, 4096 / granularity);
    Histogram out;
    for (std::size_t i = 0; i < kBins; i++)
        out.bins.push_back({i == 0 ? 0 : first << (i - 1), first << i, 0, 0});
    for (const Bin& bin : fine.bins) {
        double middle = static_cast<double>(bin.low + bin.high - 1) / 2;
        std::size_t at = 0;
        while (at + 1 < kBins && middle >= static_cast<double>(out.bins[at].high)) at++;
        out.bins[at].count += bin.count;
    }
    return out;
}

Result<FigureChange> change_of(const Side& before, const Side& after, std::string_view name,
                               const std::vector<CacheSpec>& caches) {
    FigureChange out;
    for (auto [side, figure] :
         {std::pair(&before, &out.old_value), std::pair(&after, &out.new_value)}) {
        std::vector<Figure> figures;
        for (const Profile& run : side->runs) figures.push_back(TRY(figure_of(run, name, caches)));
        *figure = mean_of(figures);
    }
    return out;
}

std::vector<Moved> largest_moves(std::map<std::string, std::pair<double, double>> rows,
                                 std::size_t most) {
    std::vector<Moved> out;
    for (auto& [what, values] : rows)
        if (values.first != values.second) out.push_back({what, values.first, values.second});
    std::stable_sort(out.begin(), out.end(), [](const Moved& a, const Moved& b) {
        return std::fabs(a.after - a.before) > std::fabs(b.after - b.before);
    });
    if (out.size() > most) out.resize(most);
    return out;
}

std::vector<Moved> moved_bins(const Side& before, const Side& after, std::uint64_t granularity,
                              std::size_t most) {
    // Keyed by rank so that labels keep the order of distances until sorted by size of the move.
    std::map<std::string, std::pair<double, double>> rows;
    auto take = [&](const Histogram& histogram, double std::pair<double, double>::*slot) {
        double total = std::max(histogram.total(), 1e-300);
        for (const Bin& bin : histogram.rebin(Binning::log2()).bins)
            rows[bin_label(bin, granularity)].*slot += bin.count / total;
        rows["cold"].*slot += histogram.cold / total;
        rows["invalidated"].*slot += histogram.invalidated / total;
    };
    take(before.sum.reuse, &std::pair<double, double>::first);
    take(after.sum.reuse, &std::pair<double, double>::second);
    auto moved = largest_moves(std::move(rows), most);
    std::erase_if(moved, [](const Moved& row) { return std::fabs(row.after - row.before) < 5e-5; });
    return moved;
}

// Misses a run, by what `name` calls a thing; an empty name leaves the thing out.
template <class List, class Name>
std::vector<Moved> moved_misses(const Side& before, const Side& after, HitTable& table, List list,
                                Name name, std::size_t most) {
    std::map<std::string, std::pair<double, double>> rows;
    for (const auto& item : before.sum.*list)
        if (std::string what = name(item); !what.empty())
            rows[what].first += table.misses(item.reuse) / before.count;
    for (const auto& item : after.sum.*list)
        if (std::string what = name(item); !what.empty())
            rows[what].second += table.misses(item.reuse) / after.count;
    return largest_moves(std::move(rows), most);
}

void find_moves(Diff& diff, const Side& before, const Side& after, const DiffOptions& options) {
    diff.bins = moved_bins(before, after, diff.granularity, options.most_moved);
    if (options.caches.empty()) return;
    // Beyond the first level is where it hurts.
    HitTable table(options.caches.size() > 1 ? options.caches[1] : options.caches[0]);
    diff.moved_cache = table.cache().name;
    diff.functions = moved_misses(
        before, after, table, &Profile::sites, [](const Site& site) { return site.frame.function; },
        options.most_moved);
    diff.lines = moved_misses(before, after, table, &Profile::sites, place_of, options.most_moved);
    diff.objects = moved_misses(
        before, after, table, &Profile::objects,
        [](const Object& object) { return fmt::format("{} {}", object.kind, object.name); },
        options.most_moved);
}

Result<GateOutcome> run_gate(const Condition& condition, const Diff& diff, const Side& before,
                             const Side& after, const std::vector<CacheSpec>& caches) {
    GateOutcome out{condition.text, Verdict::no, {}};
    for (const std::vector<Comparison>& all : condition.any) {
        Verdict together = Verdict::holds;
        for (const Comparison& comparison : all) {
            FigureChange figures;
            if (comparison.metric == "S" || comparison.metric == "S_hat") {
                figures.new_value = comparison.metric == "S" ? diff.accuracy : diff.smoothed_accuracy;
            } else {
                auto found = change_of(before, after, comparison.metric, caches);
                if (!found) return about_option("condition", found.error());
                figures = *found;
            }
            auto verdict = judge(comparison, figures);
            if (!verdict) return about_option("condition", verdict.error());
            together = std::min(together, *verdict);
            out.figures.push_back({comparison.metric, figures});
        }
        out.verdict = std::max(out.verdict, together);
    }
    return out;
}

}  // namespace

bool Diff::failed() const {
    return std::any_of(gates.begin(), gates.end(),
                       [](const GateOutcome& gate) { return gate.verdict == Verdict::holds; });
}

double similarity(const Histogram& before, const Histogram& after) {
    CommonBins common;
    common.add(before);
    common.add(after);
    return accuracy(common.fold(before), common.fold(after));
}

Result<Diff> compare(const std::vector<Profile>& old_runs, const std::vector<Profile>& new_runs,
                     const DiffOptions& options) {
    if (old_runs.empty() || new_runs.empty()) return fail("expected at least one profile per side");
    if (old_runs[0].granularity != new_runs[0].granularity)
        return fail(fmt::format(
            "cannot compare profiles of granularity {} and {}: their distances count different things",
            old_runs[0].granularity, new_runs[0].granularity));
    if (old_runs[0].model != new_runs[0].model && !options.across_models)
        return fail(
            fmt::format("cannot compare a profile of model {} with one of model {}: private "
                        "stacks lose blocks that one stack keeps",
                        old_runs[0].model, new_runs[0].model));
    Diff diff;
    note_differences(diff, old_runs[0], new_runs[0]);
    std::vector<Profile> old_copies = old_runs, new_copies = new_runs;
    if (std::string text = put_on_common_bins(old_copies, new_copies); !text.empty())
        diff.notes.push_back(std::move(text));
    const Side before = TRY(side_of(old_copies));
    const Side after = TRY(side_of(new_copies));

    diff.granularity = old_runs[0].granularity;
    diff.old_runs = static_cast<std::size_t>(before.count);
    diff.new_runs = static_cast<std::size_t>(after.count);
    double noise = std::max(
        {noise_cost(before.sum.reuse, after.sum.reuse), spread_cost(before), spread_cost(after)});
    Histogram was = before.sum.reuse, is = after.sum.reuse;
    if (options.coarse) {
        was = on_coarse_bins(was, diff.granularity);
        is = on_coarse_bins(is, diff.granularity);
    }
    diff.accuracy = {Unit::score, similarity(was, is), noise};
    diff.smoothed_accuracy = {Unit::score, smoothed_accuracy(was, is), noise};
    std::vector<std::string> names = {"accesses", "distinct", "cold_share"};
    for (const char* name : {"invalidated_share", "false_sharing_share"})
        if (auto change = change_of(before, after, name, options.caches);
            change && (change->old_value.value > 0 || change->new_value.value > 0))
            names.emplace_back(name);
    for (const char* percentile : {"p50", "p90", "p99"}) names.emplace_back(percentile);
    for (const std::string& name : names) {
        diff.figures.push_back({name, TRY(change_of(before, after, name, options.caches))});
    }
    diff.caches = options.caches;
    for (const CacheSpec& cache : options.caches) {
        FigureChange change;
        for (auto [side, figure] :
             {std::pair(&before, &change.old_value), std::pair(&after, &change.new_value)}) {
            std::vector<Figure> figures;
            for (const Profile& run : side->runs) {
                CachePrediction prediction = predict_level(run, cache, options.caches);
                figures.push_back({Unit::share, prediction.hit_rate, prediction.error});
            }
            *figure = mean_of(figures);
        }
        diff.hit_rates.push_back(change);
    }
    find_moves(diff, before, after, options);
    for (const Condition& condition : options.fail_if) {
        diff.gates.push_back(TRY(run_gate(condition, diff, before, after, options.caches)));
    }
    return diff;
}

}  // namespace revisit
