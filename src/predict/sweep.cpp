// One fit, many sizes.
#include "predict/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/try.h"

namespace revisit::predict {
namespace {

// A size of the model that has `name` at `value` and everything else as at the target; nothing when the
// formulas are for other residues.
std::vector<std::int64_t> size_at(const Model& model, const std::string& name, std::int64_t value) {
    if (model.parted) return {};  // other numbers of tiles, or another rest
    auto size = model.design.target;
    for (std::size_t a = 0; a < model.design.axes.size(); ++a)
        for (const auto& [n, offset] : model.design.axes[a].names)
            if (n == name) {
                const auto m = model.design.axes[a].modulus;
                if ((value - offset - model.design.axes[a].target) % m != 0) return {};
                size[a] = value - offset;
            }
    return size;
}

// The formulas were certified for sizes in the target's order and no smaller than the samples'.
bool like_the_samples(const Model& model, const std::vector<std::int64_t>& size) {
    for (std::size_t a = 0; a < size.size(); ++a) {
        std::int64_t least = INT64_MAX;
        for (const auto& s : model.design.samples) least = std::min(least, s[a]);
        if (size[a] < least || (a > 0 && size[a] <= size[a - 1] + 4)) return false;
    }
    return true;
}

// Whether a size that was not given is one: an argument or global, or else a macro that changes
// something.
Result<bool> is_macro(const Request& request, const std::string& name, std::int64_t low,
                      std::int64_t high) {
    auto macros = request.macros;
    const auto plain = compile(request.source, {macros});
    if (plain) {
        const auto& arguments = plain->front().functions.front().arguments;
        const auto& globals = plain->front().globals;
        if (std::any_of(arguments.begin(), arguments.end(),
                        [&](const auto& a) { return a.name == name; }) ||
            std::any_of(globals.begin(), globals.end(), [&](const auto& g) { return g.name == name; }))
            return false;
    }
    std::vector<Parameters> both(2, macros);
    both[0][name] = low;
    both[1][name] = high;
    const auto programs = TRY(compile(request.source, both));
    if (to_text(programs.front()) == to_text(programs.back()))
        return fail(ErrorCode::option, request.source.path, "sweep", "nothing depends on " + name);
    return true;
}

}  // namespace

Result<std::vector<SweepPoint>> sweep(Request request, const std::string& name, std::int64_t low,
                                      std::int64_t high, int count) {
    bool macro = request.macros.contains(name);
    if (!macro && !request.parameters.contains(name) && !request.compiler) {
        macro = TRY(is_macro(request, name, low, high));
    }
    auto& sizes = macro ? request.macros : request.parameters;
    const std::uint64_t interpreted = std::min<std::uint64_t>(request.simulate_up_to, 2'000'000);
    sizes[name] = high;
    request.untied.insert(name);
    auto top = TRY(predict(request));
    const Model* model = top.certainty() == Certainty::exact ? top.model.get() : nullptr;
    std::int64_t modulus = 1;
    if (model)
        for (const Axis& a : model->design.axes)
            for (const auto& [n, offset] : a.names)
                if (n == name) modulus = a.modulus;
    std::set<std::int64_t> values{high};
    for (int k = 0; k + 1 < count; ++k) {
        const double share = static_cast<double>(k) / std::max(1, count - 1);
        const auto value = static_cast<std::int64_t>(
            std::llround(static_cast<double>(low) *
                         std::pow(static_cast<double>(high) / static_cast<double>(low), share)));
        values.insert(std::max(low, high - (high - value) / modulus * modulus));
    }
    std::vector<SweepPoint> points;
    for (const auto value : values) {
        SweepPoint point;
        point.value = value;
        if (value == high) {
            point.profile = std::move(top.profile);
            point.exact = point.profile.exact().value_or(false);
            points.push_back(std::move(point));
            continue;
        }
        sizes[name] = value;
        const auto at = model ? size_at(*model, name, value) : std::vector<std::int64_t>{};
        std::vector<Doubt> failures;
        if (model && !at.empty() && like_the_samples(*model, at)) {
            point.profile =
                evaluate_model(*model, at, request.bins, failures, Deadline(request.budget));
            point.exact = failures.empty();
        }
        if (!point.exact) {
            Request one = request;
            one.method = Method::automatic;
            // Without formulas at the top there will hardly be any below: measure or estimate at once.
            one.simulate_up_to = model ? interpreted : 20'000'000;
            if (!model) one.budget = 0.2;
            one.simulate_at_most = 60'000'000;
            point.profile = std::move(TRY(predict(one)).profile);
            point.exact = point.profile.exact().value_or(false);
        }
        points.push_back(std::move(point));
    }
    return points;
}

}  // namespace revisit::predict
