#include "engines/phases.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/try.h"

namespace revisit {
namespace {

// Joined windows differ in length by one part in eight at most.
constexpr std::size_t kWindowsAPhase = 16;
constexpr std::size_t kWindowsWithSites = 8;  // … by one part in four, where each costs more
constexpr std::uint64_t kFirstLength = 16;
constexpr std::size_t kMostSites = 1024;  // of a phase

class PhasedEngine : public Engine {
 public:
    PhasedEngine(std::unique_ptr<Engine> engine, const EngineOptions& options)
        : engine_(std::move(engine)),
          phases_(options.phases),
          sites_(options.sites || options.pairs ? dynamic_cast<SiteSnapshots*>(engine_.get())
                                                : nullptr),
          recorder_((sites_ ? kWindowsWithSites : kWindowsAPhase) * options.phases, kFirstLength) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t at = 0; at < batch.count();) {
            const std::size_t count =
                std::min<std::uint64_t>(batch.count() - at, recorder_.window_end() - accesses_);
            TRY(engine_->add(batch.part(at, count)));
            at += count;
            accesses_ += count;
            if (accesses_ < recorder_.window_end()) continue;
            TRY(end_window());
        }
        return {};
    }

    Result<Profile> finish() override {
        TRY(end_window());
        Profile profile = TRY(engine_->finish());
        const auto windows = recorder_.windows();
        const std::size_t phases = std::min<std::size_t>(phases_, windows.size());
        for (std::size_t i = 0; i < phases; i++) {
            const std::size_t first = i * windows.size() / phases;
            const std::size_t last = (i + 1) * windows.size() / phases;
            Phase phase;
            phase.begin = static_cast<double>(windows[first].begin);
            phase.end = static_cast<double>(windows[last - 1].end);
            std::vector<SiteGain> gains;
            for (const Window& window : windows.subspan(first, last - first)) {
                phase.reuse.merge(window.gained);
                gains = join_gains(gains, window.sites, kMostSites);
            }
            phase.distinct = phase.reuse.cold;
            for (const SiteGain& gain : gains)
                phase.sites.push_back(
                    {gain.site, static_cast<double>(gain.counts.total()), gain.counts.histogram()});
            std::ranges::stable_sort(phase.sites, std::greater(), &PhaseSite::accesses);
            profile.phases.push_back(std::move(phase));
        }
        return profile;
    }

 private:
    Result<void> end_window() {
        const Histogram so_far = TRY(engine_->reuse_so_far());
        if (sites_) {
            SiteOctaves by_site;
            TRY(sites_->sites_so_far(by_site));
            recorder_.look_at_sites(std::move(by_site));
        }
        // A bin a distance in every window would not be bounded memory.
        recorder_.end_window(accesses_, so_far.rebin(Binning::log2(8)));
        return {};
    }

    std::unique_ptr<Engine> engine_;
    unsigned phases_;
    SiteSnapshots* sites_;  // null: they are not counted
    WindowRecorder recorder_;
    std::uint64_t accesses_ = 0;
};

}  // namespace

void WindowRecorder::end_window(std::uint64_t accesses, const Histogram& so_far) {
    if (accesses == begin_) return;
    Window window{begin_, accesses, {}, std::move(gained_)};
    gained_.clear();
    window.gained.cold = so_far.cold - before_.cold;
    window.gained.invalidated = so_far.invalidated - before_.invalidated;
    auto old = before_.bins.begin();
    for (const Bin& bin : so_far.bins) {  // holds every bin of `before_`
        double count = bin.count;
        if (old != before_.bins.end() && old->low == bin.low) count -= old++->count;
        if (count > 0) window.gained.bins.push_back({bin.low, bin.high, count, 0});
    }
    before_ = so_far;
    begin_ = accesses;
    windows_.push_back(std::move(window));
    if (windows_.size() == most_) join_pairs();
}

void WindowRecorder::look_at_sites(SiteOctaves so_far) {
    gained_.clear();
    for (const auto& [site, counts] : so_far) {
        SiteGain gain{site, counts};
        if (auto before = sites_before_.find(site); before != sites_before_.end())
            gain.counts.subtract(before->second);
        if (gain.counts.total() > 0) gained_.push_back(gain);
    }
    std::ranges::sort(gained_, {}, &SiteGain::site);
    gained_ = join_gains(gained_, {}, most_sites_);
    sites_before_ = std::move(so_far);
}

std::vector<SiteGain> join_gains(const std::vector<SiteGain>& a, const std::vector<SiteGain>& b,
                                 std::size_t most) {
    std::vector<SiteGain> out;
    for (auto x = a.begin(), y = b.begin(); x != a.end() || y != b.end();) {
        if (y == b.end() || (x != a.end() && x->site < y->site)) {
            out.push_back(*x++);
        } else if (x == a.end() || y->site < x->site) {
            out.push_back(*y++);
        } else {
            out.push_back(*x++);
            out.back().counts.merge(y++->counts);
        }
    }
    if (out.size() <= most) return out;
    std::ranges::nth_element(out, out.begin() + static_cast<std::ptrdiff_t>(most), std::greater(),
                             [](const SiteGain& gain) { return gain.counts.total(); });
    out.resize(most);
    std::ranges::sort(out, {}, &SiteGain::site);
    return out;
}

void WindowRecorder::join_pairs() {
    for (std::size_t i = 0; i < most_; i += 2) {
        Window joined = std::move(windows_[i]);
        joined.end = windows_[i + 1].end;
        joined.gained.merge(windows_[i + 1].gained);
        joined.sites = join_gains(joined.sites, windows_[i + 1].sites, most_sites_);
        windows_[i / 2] = std::move(joined);
    }
    windows_.resize(most_ / 2);
    length_ *= 2;
}

Result<std::unique_ptr<Engine>> make_phased(std::unique_ptr<Engine> engine,
                                            const EngineOptions& options) {
    TRY(engine->reuse_so_far());
    return std::make_unique<PhasedEngine>(std::move(engine), options);
}

}  // namespace revisit
