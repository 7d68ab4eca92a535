// The evaluation of Shen and Shaw's paper, on this machine: how well and how fast reuse distances come
// out of time distances. `make eval-time` runs it and prints the tables; docs/models.md keeps them.
//
//   eval_time generated          their table 3: generated traces, bins of width 1
//   eval_time trace NAME FILE    their table 2, one recorded program, bars of width 1000
//   eval_time speed              the generator's rate and the conversion's time
//
// Results are one JSON object a line, for scripts/eval-time.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "revisit/blocks.h"
#include "revisit/revisit.h"

namespace {

using namespace revisit;
using Json = nlohmann::ordered_json;

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Best of a few runs, each on a fresh engine; the machine is shared.
double seconds_of(const std::function<void()>& work, int runs) {
    double best = 1e300;
    for (int i = 0; i < runs; ++i) {
        double before = cpu_seconds();
        work();
        best = std::min(best, cpu_seconds() - before);
    }
    return best;
}

Profile run(std::span<const std::uint64_t> blocks, std::string_view method, const Binning& bins,
            TimeModel model = {}) {
    EngineOptions options;
    options.granularity = 1;
    options.bins = bins;
    options.threads = 1;
    options.time_model = model;
    auto profile = analyze(blocks, method, options);
    if (!profile) {
        fmt::print(stderr, "eval_time: {}\n", profile.error().sentence());
        std::exit(2);
    }
    return std::move(*profile);
}

Json bins_of(const Histogram& histogram) {
    Json out = Json::array();
    double total = histogram.total();
    for (const Bin& bin : histogram.bins) out.push_back({bin.low, bin.high, bin.count / total});
    return out;
}

int generated() {
    struct Row {
        const char* name;
        const char* distribution;
    };
    // The paper does not tell the Normals' mean; the middle of 500 variables is taken.
    for (Row row : {Row{"Normal (var=20)", "normal:250,4.472135955"},
                    {"Normal (var=100)", "normal:250,10"},
                    {"Normal (var=200)", "normal:250,14.142135624"},
                    {"Exponential", "exponential:0.02"}}) {
        GenerateOptions options;
        options.length = 50000;
        options.distinct = 500;
        options.granularity = 1;
        Histogram wanted = parse_distribution(row.distribution, options.distinct).value();
        // The trace's first touches belong to what was asked for.
        const double reuses = static_cast<double>(options.length - options.distinct);
        for (Bin& bin : wanted.bins) bin.count *= reuses;
        wanted.cold = static_cast<double>(options.distinct);
        auto generator = TraceGenerator::create(wanted, options).value();
        std::vector<std::uint64_t> blocks;
        for (;;) {
            AccessBatch batch = generator.next();
            if (batch.count() == 0) break;
            blocks.insert(blocks.end(), batch.addresses.begin(), batch.addresses.end());
        }
        Histogram truth = run(blocks, "exact", Binning::exact()).reuse;
        Json out = {{"table", "generated"}, {"name", row.name}};
        out["generation"] = accuracy(wanted, truth);
        for (const TimeModelEntry& model : time_models()) {
            Histogram estimate = run(blocks, "time", Binning::exact(), model.model).reuse;
            out["accuracy"][model.name] = accuracy(truth, estimate);
            out["estimate"][model.name] = bins_of(estimate);
        }
        out["truth"] = bins_of(truth);
        fmt::print("{}\n", out.dump());
    }
    return 0;
}

int trace(const std::string& name, const std::string& path) {
    for (std::uint64_t granularity : {1, 64}) {
        std::vector<std::uint64_t> blocks;
        auto reader = open_trace(path);
        if (!reader) {
            fmt::print(stderr, "eval_time: {}\n", reader.error().sentence());
            return 2;
        }
        BlockCutter cutter(granularity);
        for (;;) {
            auto batch = (*reader)->next();
            if (!batch) {
                fmt::print(stderr, "eval_time: {}\n", batch.error().sentence());
                return 2;
            }
            if (batch->count() == 0) break;
            auto cut = cutter.cut(*batch, [&](const BlockBatch& piece) -> Result<void> {
                blocks.insert(blocks.end(), piece.blocks.begin(), piece.blocks.end());
                return {};
            });
            if (!cut) return 2;
        }
        const Binning bars = Binning::linear(1000);
        Profile truth = run(blocks, "exact", bars);
        Json out = {{"table", "programs"},
                    {"name", name},
                    {"granularity", granularity},
                    {"accesses", truth.accesses},
                    {"distinct", truth.distinct}};
        for (const TimeModelEntry& model : time_models()) {
            if (model.model == TimeModel::shen_basic) continue;
            Profile estimate = run(blocks, "time", bars, model.model);
            out["accuracy"][model.name] = accuracy(truth.reuse, estimate.reuse);
            Profile fine = run(blocks, "time", Binning::log2(8), model.model);
            out["estimate"][model.name] = bins_of(fine.reuse);
        }
        Profile fine = run(blocks, "exact", Binning::log2(8));
        out["truth"] = bins_of(fine.reuse);
        for (const TimeModelEntry& model : time_models())
            if (model.model != TimeModel::shen_basic)
                out["log2:8"][model.name] =
                    accuracy(fine.reuse, run(blocks, "time", Binning::log2(8), model.model).reuse);
        for (const char* method : {"exact", "time"})
            out["seconds"][method] = seconds_of([&] { run(blocks, method, Binning::log2(8)); }, 3);
        // The tree is the kind of measurement the paper compares with; some millions tell its rate.
        auto head = std::span(blocks).first(std::min<std::size_t>(blocks.size(), 3'000'000));
        double tree = seconds_of([&] { run(head, "olken", Binning::log2(8)); }, 1);
        out["seconds"]["olken"] =
            tree * static_cast<double>(blocks.size()) / static_cast<double>(head.size());
        fmt::print("{}\n", out.dump());
    }
    return 0;
}

int speed() {
    GenerateOptions options;
    options.length = 10'000'000;
    options.distinct = 1'000'000;
    for (const char* distribution :
         {"uniform", "zipf:0.9", "exponential:0.001", "normal:500000,1000"}) {
        Histogram wanted = parse_distribution(distribution, options.distinct).value();
        double seconds = seconds_of(
            [&] {
                auto generator = TraceGenerator::create(wanted, options).value();
                while (generator.next().count() > 0) {
                }
            },
            3);
        fmt::print("{}\n", Json{{"table", "generator"},
                                {"name", distribution},
                                {"rate", static_cast<double>(options.length) / seconds}}
                               .dump());
    }
    Histogram time;
    time.cold = 1e6;
    Binning fine = Binning::log2(512);
    for (std::uint64_t low = 1; time.bins.size() < 10000; low = fine.high_edge(low))
        time.bins.push_back({low, fine.high_edge(low), 1e9 / static_cast<double>(low), 0});
    for (TimeModel model : {TimeModel::expected, TimeModel::shen})
        for (const char* bins : {"log2", "linear:1000"}) {
            double seconds = seconds_of(
                [&] { (void)reuse_from_time(time, 1e6, model, Binning::parse(bins).value()); }, 5);
            for (const TimeModelEntry& entry : time_models())
                if (entry.model == model)
                    fmt::print("{}\n", Json{{"table", "conversion"},
                                            {"name", entry.name},
                                            {"bins", bins},
                                            {"bars", time.bins.size()},
                                            {"seconds", seconds}}
                                           .dump());
        }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    std::string what = count > 1 ? words[1] : "";
    if (what == "generated" && count == 2) return generated();
    if (what == "trace" && count == 4) return trace(words[2], words[3]);
    if (what == "speed" && count == 2) return speed();
    fmt::print(stderr, "usage: eval_time generated | trace NAME FILE | speed\n");
    return 2;
}
