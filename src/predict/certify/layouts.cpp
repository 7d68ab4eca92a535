// Whether what a program does depends on where its objects lie.
//
// Pointers that are compared (which of two arrays lies first?) or taken apart as numbers (is it at a
// page's start?) make the linker's and the allocator's choices part of the program. Where a program has
// such operations, the beginning of its run is measured in several layouts, arrays in another order and
// moved by other numbers of lines: loops that end at a pointer do the same in all of them. By elements,
// since what shares a line is a matter of layout anyway. Cost. Four times kAccesses accesses.
#include "predict/certify/layouts.h"

#include <algorithm>
#include <array>

#include "core/parallel.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kAccesses = 500'000;
constexpr int kLayouts = 3;
constexpr double kMostAccesses = 10'000'000;

}  // namespace

std::optional<double> accuracy_by_place(const Program& program, const Parameters& parameters,
                                        const Request& request, const Profile& profile) {
    if (profile.accesses > kMostAccesses) return std::nullopt;
    constexpr std::array kStarts{16, 32, 48};
    std::array<double, kStarts.size()> alike;
    alike.fill(-1);
    const auto threads = std::min<unsigned>(thread_count(0), kStarts.size());
    parallel_for(threads, kStarts.size(), [&](std::size_t k) {
        Request other = request;
        other.layout = -kStarts[k];
        // The deadline counts processor time, which threads spend together.
        const auto run = simulate(program, parameters, other, request.bins, Deadline(2.0 * threads),
                                  UINT64_MAX / 512, nullptr, Attributed::no);
        if (run && run->complete) alike[k] = accuracy(profile.reuse, run->profile.reuse);
    });
    const double least = *std::min_element(alike.begin(), alike.end());
    if (least < 0) return std::nullopt;
    // The compiler may also put them in another order.
    return std::max(0.0, 1 - 2 * (1 - least) - 1e-3);
}

std::optional<std::string> depends_on_layout(const Program& program, const Parameters& parameters,
                                             const Request& request) {
    if (!program.addresses_compared) return std::nullopt;
    Request other = request;
    other.granularity = 1;
    std::optional<Simulation> first;
    for (int layout = 0; layout <= kLayouts; ++layout) {
        other.layout = layout;
        auto run = simulate(program, parameters, other, Binning::log2(), Deadline(1), kAccesses);
        // What cannot be run, or not this far in time, is decided elsewhere.
        if (!run || (!run->complete && run->profile.accesses < kAccesses)) return std::nullopt;
        if (!first)
            first = std::move(*run);
        else if (first->profile.accesses != run->profile.accesses ||
                 !(first->profile.reuse == run->profile.reuse))
            return "what it does depends on where its arrays lie";
    }
    return std::nullopt;
}

}  // namespace revisit::predict
