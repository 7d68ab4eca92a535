// A model at a size.
#include "predict/fit/model.h"

#include <set>

#include "predict/fit/evaluate.h"
#include "predict/run/assemble.h"

namespace revisit::predict {

Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<Doubt>& failures, const Deadline& deadline) {
    Assembly assembly(model.target, model.table.granularity(), bins);
    for (const auto& r : model.table.references()) assembly.add_reference(r.function, r.reference);
    const BinOf bin = bins.kind() == Binning::Kind::exact ? BinOf{} : [&bins](std::uint64_t d) {
        return bins.low_edge(d);
    };
    std::set<Doubt> reasons;
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        DistanceCounter counter(bins);
        bool fine = model.streams[i].lost == 0;
        for (const Cell& c : model.streams[i].cells) {
            if (!fine) break;
            const auto e = evaluate(
                c, size, bin,
                [&](std::uint64_t d, std::uint64_t n) {
                    s.source == kCold ? counter.add_cold(n) : counter.add(d, n);
                },
                400'000'000, deadline);
            if (!e.valid || !e.determined || !e.complete) {
                if (e.complete)
                    reasons.emplace(e.too_large ? Doubt::Kind::too_large : Doubt::Kind::general, 0,
                                    e.why);
                else
                    reasons.emplace(
                        "too many distances to list in the time allowed: bins of powers of two are "
                        "fewer, "
                        "a larger budget allows more");
                fine = false;
            }
        }
        if (!fine) continue;
        assembly.add_stream(s.reference, s.source, counter);
    }
    failures.insert(failures.end(), reasons.begin(), reasons.end());
    return assembly.finish();
}

}  // namespace revisit::predict
