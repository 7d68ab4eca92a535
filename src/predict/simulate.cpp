// Interprets the whole run and measures it: for targets that are small, and for --verify.
#include <map>

#include "predict/assemble.h"
#include "predict/predict.h"

namespace revisit::predict {

Result<Profile> simulate(const Program& program, const Parameters& parameters, const Request& request,
                         std::uint64_t max_accesses, std::vector<std::string>& doubts, bool& complete) {
    struct Seen {
        std::uint64_t block;
        std::uint32_t reference;
    };
    std::vector<Seen> accesses;
    RunOptions options;
    options.keep = false;
    options.max_accesses = max_accesses;
    options.max_steps = max_accesses * 200 + 100'000'000;
    options.seed = request.seed;
    options.branch_probability = request.branch_probability;
    const auto granularity = request.granularity;
    options.sink = [&](std::uint32_t reference, std::uint64_t address, std::uint32_t size) {
        const auto blocks = granularity <= 1 || size <= 1
                                ? 0
                                : (address + size - 1) / granularity - address / granularity;
        for (std::uint64_t k = 0; k <= blocks; ++k)
            accesses.push_back({granularity <= 1 ? address : address / granularity + k, reference});
        return true;
    };
    const auto trace = interpret(program, parameters, options);
    if (!trace) return fail(request.source.path, trace.error().place, trace.error().message);
    doubts = trace->doubts;
    complete = trace->complete;
    Assembly assembly(program, request.granularity, request.bins);
    for (const auto& place : trace->references) assembly.add_reference(place.function, place.reference);
    if (!complete) return assembly.finish();
    DistanceStack stack(accesses.size());
    std::map<std::pair<std::int32_t, std::int32_t>, DistanceCounter> streams;
    std::vector<std::int32_t> history;
    history.reserve(accesses.size());
    DistanceCounter* counter = nullptr;
    std::pair<std::int32_t, std::int32_t> current{-2, -2};
    for (const auto& a : accesses) {
        const auto answer = stack.access(a.block);
        const auto reference = static_cast<std::int32_t>(a.reference);
        const std::pair key{reference, answer.previous < 0 ? kCold : history[answer.previous]};
        if (key != current) {
            counter = &streams.try_emplace(key, request.bins).first->second;
            current = key;
        }
        if (answer.distance < 0)
            counter->add_cold();
        else
            counter->add(static_cast<std::uint64_t>(answer.distance));
        history.push_back(reference);
    }
    for (const auto& [key, count] : streams) assembly.add_stream(key.first, key.second, count);
    return assembly.finish();
}

}  // namespace revisit::predict
