#include "engines/phases.h"

#include <algorithm>
#include <utility>

#include "core/try.h"

namespace revisit {
namespace {

// Joined windows differ in length by one part in eight at most.
constexpr std::size_t kWindowsAPhase = 16;
constexpr std::uint64_t kFirstLength = 16;

class PhasedEngine : public Engine {
 public:
    PhasedEngine(std::unique_ptr<Engine> engine, const EngineOptions& options)
        : engine_(std::move(engine)),
          phases_(options.phases),
          recorder_(kWindowsAPhase * options.phases, kFirstLength) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t at = 0; at < batch.count();) {
            const std::size_t count =
                std::min<std::uint64_t>(batch.count() - at, recorder_.window_end() - accesses_);
            if (auto added = engine_->add(batch.part(at, count)); !added) return added;
            at += count;
            accesses_ += count;
            if (accesses_ < recorder_.window_end()) continue;
            if (auto ended = end_window(); !ended) return ended;
        }
        return {};
    }

    Result<Profile> finish() override {
        TRY(end_window());
        auto profile = engine_->finish();
        if (!profile) return profile;
        const auto windows = recorder_.windows();
        const std::size_t phases = std::min<std::size_t>(phases_, windows.size());
        for (std::size_t i = 0; i < phases; i++) {
            const std::size_t first = i * windows.size() / phases;
            const std::size_t last = (i + 1) * windows.size() / phases;
            Phase phase;
            phase.begin = static_cast<double>(windows[first].begin);
            phase.end = static_cast<double>(windows[last - 1].end);
            for (const Window& window : windows.subspan(first, last - first))
                phase.reuse.merge(window.gained);
            phase.distinct = phase.reuse.cold;
            profile->phases.push_back(std::move(phase));
        }
        return profile;
    }

 private:
    Result<void> end_window() {
        auto so_far = TRY(engine_->reuse_so_far());
        // A bin a distance in every window would not be bounded memory.
        recorder_.end_window(accesses_, so_far.rebin(Binning::log2(8)));
        return {};
    }

    std::unique_ptr<Engine> engine_;
    unsigned phases_;
    WindowRecorder recorder_;
    std::uint64_t accesses_ = 0;
};

}  // namespace

void WindowRecorder::end_window(std::uint64_t accesses, const Histogram& so_far) {
    if (accesses == begin_) return;
    Window window{begin_, accesses, {}};
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

void WindowRecorder::join_pairs() {
    for (std::size_t i = 0; i < most_; i += 2) {
        Window joined = std::move(windows_[i]);
        joined.end = windows_[i + 1].end;
        joined.gained.merge(windows_[i + 1].gained);
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
