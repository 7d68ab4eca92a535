// What the library's edge costs: the same addresses through the command's own path (a trace file,
// joined with the engine by analyze()), through analyze() of an array, through a BlockCutter and an
// engine, and through the C functions. CPU time, interleaved rounds, the median; the target is 2 % over
// the command's.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "revisit.h"
#include "revisit/revisit.h"

using namespace revisit;

namespace {

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double by_file(const std::string& path) {
    auto trace = open_trace(path);
    return analyze(**trace)->reuse.total();
}

double by_array(const std::vector<std::uint64_t>& addresses) {
    return analyze(addresses)->reuse.total();
}

constexpr std::size_t kBatch = 1 << 14;

double by_batches(const std::vector<std::uint64_t>& addresses) {
    auto engine = *make_engine("exact", {});
    BlockCutter cutter(64);
    const std::span<const std::uint64_t> all(addresses);
    for (std::size_t at = 0; at < all.size(); at += kBatch) {
        AccessBatch batch;
        batch.addresses = all.subspan(at, std::min(kBatch, all.size() - at));
        if (!cutter.cut(batch, [&](const BlockBatch& blocks) { return engine->add(blocks); })) return 0;
    }
    return engine->finish()->reuse.total();
}

double by_c(const std::vector<std::uint64_t>& addresses) {
    revisit_analysis* analysis = nullptr;
    revisit_profile* profile = nullptr;
    if (revisit_analysis_new(nullptr, &analysis) != REVISIT_OK) return 0;
    for (std::size_t at = 0; at < addresses.size(); at += kBatch)
        revisit_analysis_add_addresses(analysis, addresses.data() + at,
                                       std::min(kBatch, addresses.size() - at));
    if (revisit_analysis_finish(analysis, &profile) != REVISIT_OK) return 0;
    const double total = revisit_profile_accesses(profile);
    revisit_profile_free(profile);
    revisit_analysis_free(analysis);
    return total;
}

}  // namespace

int main() {
    std::vector<std::uint64_t> addresses(8'000'000);
    std::mt19937_64 random(1);
    for (auto& address : addresses)  // most near, some far
        address = (random() % 10 < 8 ? random() % 4096 : random() % 1'000'000) * 64;
    char path[] = "/tmp/revisit-bench-XXXXXX.u64";
    const int file = mkstemps(path, 4);
    const std::size_t bytes = addresses.size() * sizeof addresses[0];
    if (file < 0 || write(file, addresses.data(), bytes) != static_cast<ssize_t>(bytes)) return 2;
    close(file);

    const std::pair<const char*, std::function<double()>> ways[] = {
        {"command: trace file", [&] { return by_file(path); }},
        {"analyze(array)", [&] { return by_array(addresses); }},
        {"BlockCutter and engine", [&] { return by_batches(addresses); }},
        {"C functions", [&] { return by_c(addresses); }},
    };
    std::vector<double> seconds[4];
    for (int round = 0; round < 7; ++round)
        for (std::size_t i = 0; i < 4; ++i) {
            const double begin = cpu_seconds();
            if (ways[i].second() != static_cast<double>(addresses.size())) return 2;
            seconds[i].push_back(cpu_seconds() - begin);
        }
    std::remove(path);
    bool good = true;
    for (std::size_t i = 0; i < 4; ++i) {
        std::sort(seconds[i].begin(), seconds[i].end());
        const double ratio = seconds[i][3] / seconds[0][3];
        std::printf("%-24s %6.2f ns per access   %.3f of the command's path\n", ways[i].first,
                    seconds[i][3] / static_cast<double>(addresses.size()) * 1e9, ratio);
        good = good && ratio <= 1.02;
    }
    return good ? 0 : 1;
}
