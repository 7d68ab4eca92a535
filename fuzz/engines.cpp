// Every exact engine against the naive one, on whatever trace the fuzzer thinks of. The first bytes
// pick how many distinct blocks there are, how they are spread over 64 bits and how the trace is cut
// into batches.
#include <cstdlib>
#include <memory>
#include <vector>

#include "engines/exact_threads.h"
#include "revisit/revisit.h"

using namespace revisit;

namespace {

Profile run(std::unique_ptr<Engine> engine, const std::vector<std::uint64_t>& blocks,
            const std::vector<std::uint32_t>& sites, const std::vector<std::uint16_t>& threads,
            const std::vector<std::uint8_t>& flags, std::size_t cut) {
    for (std::size_t at = 0; at < blocks.size(); at += cut) {
        std::size_t count = std::min(cut, blocks.size() - at);
        if (!engine->add({{blocks.data() + at, count},
                          {sites.data() + at, count},
                          {threads.data() + at, count},
                          {flags.data() + at, count}}))
            std::abort();
    }
    auto profile = engine->finish();
    if (!profile) std::abort();
    profile->method = "same";
    return *profile;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 4 || size > 4096) return 0;
    std::uint64_t spread = data[0] % 3 == 0   ? 1
                           : data[0] % 3 == 1 ? 0x9e3779b97f4a7c15u
                                              : std::uint64_t{1} << (data[0] % 56);
    std::size_t cut = 1 + data[1] * std::size_t{3};
    bool wide = data[2] % 2 != 0;
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::exact();
    options.time = data[2] & 2;
    options.sites = data[2] & 4;
    options.pairs = data[2] & 8;
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
    const unsigned thread_count = 1 + data[2] / 32;
    for (std::size_t i = 3; i < size; ++i) {
        std::uint64_t block = wide && i + 1 < size ? data[i] << 8 | data[i + 1] : data[i];
        blocks.push_back(block * spread);
        sites.push_back(data[i] % 5);
        // Another byte's bits, so that blocks do not belong to threads.
        const std::uint8_t other = data[3 + (i * 7) % (size - 3)];
        threads.push_back(static_cast<std::uint16_t>(other / 2 % thread_count));
        flags.push_back(other % 2 != 0 ? kWrite : 0);
    }
    if (data[2] & 16) options.model = StackModel::private_;
    const std::string naive = to_json(
        run(make_engine("naive", options).value(), blocks, sites, threads, flags, blocks.size()));
    for (std::string_view method : {"olken", "exact", "partition"}) {
        auto engine = make_engine(method, options);
        if (!engine) continue;
        if (to_json(run(std::move(*engine), blocks, sites, threads, flags, cut)) != naive) std::abort();
    }
    if (options.model == StackModel::private_) return 0;
    options.threads = 2 + data[0] % 2;
    const std::size_t chunk = 1 + data[1] % 90;
    auto engine = make_exact_threads(options, {1, chunk, chunk * 4, chunk * 3, size % 2 == 0, 3, 16});
    if (to_json(run(std::move(engine), blocks, sites, threads, flags, cut)) != naive) std::abort();
    return 0;
}
