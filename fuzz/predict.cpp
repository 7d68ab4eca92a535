// The predictor against brute force, on random loop nests: what it calls exact must be exact, pair by
// pair. The bytes pick the nest and its kind, the two sizes and the granularity.
#include "predict/predict.h"

#include <cstdlib>
#include <cstring>

#include "../tests/random_nests.h"

using namespace revisit;
using namespace revisit::predict;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 6) return 0;
    std::uint32_t seed = 0;
    std::memcpy(&seed, data, 4);
    const auto program = RandomNest(seed, static_cast<Oddity>(size > 7 ? data[7] % 3 : 0)).program();
    Request request;
    request.compiler = [&](const std::vector<Parameters>&) -> Result<std::vector<Program>> {
        return std::vector<Program>{program};
    };
    request.source.path = "nest";
    request.parameters = {{"n", 13 + data[4] % 60}, {"m", 13 + data[5] % 60}};
    request.granularity = size > 6 && data[6] % 4 == 0 ? 64 : 1;
    request.bins = Binning::exact();
    request.budget = 0.6;
    request.estimate = false;
    RunOptions count;
    count.keep = false;
    count.max_accesses = 100'000;
    count.max_steps = 2'000'000;
    count.stride = false;
    const auto counted = interpret(program, request.parameters, count);
    if (!counted || !counted->complete) return 0;  // too long to compare with
    request.method = Method::fit;
    const auto fitted = predict::predict(request);
    if (!fitted || !fitted->profile.exact().value_or(false)) return 0;
    request.method = Method::simulate;
    const auto truth = predict::predict(request);
    if (!truth || !(fitted->profile.reuse == truth->profile.reuse) ||
        fitted->profile.pairs.size() != truth->profile.pairs.size())
        std::abort();
    return 0;
}
