// revisit generate: a trace that has a given reuse-distance histogram.
#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "cli/progress.h"
#include "core/try.h"

namespace revisit {
namespace {

class GenerateCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        auto* from =
            app.add_option("--from", from_, "a profile whose histogram to use; - is standard input")
                ->type_name("PROFILE")
                ->group("What");
        app.add_option("--distribution", distribution_,
                       "normal:MEAN,SD, exponential:RATE, zipf:S, uniform or mix:…\n"
                       "mix:SHARE*DISTRIBUTION+SHARE*DISTRIBUTION…; uniform is up to --distinct")
            ->type_name("SPEC")
            ->excludes(from)
            ->group("What");
        app.add_option("--length", length_, "number of accesses, e.g. 10M (default: the profile's)")
            ->type_name("T")
            ->group("What");
        app.add_option("--distinct", distinct_, "number of blocks, e.g. 1M (default: the profile's)")
            ->type_name("N")
            ->group("What");
        app.add_option("--granularity", granularity_,
                       "bytes per block (default: the profile's, else 64)")
            ->type_name("BYTES")
            ->group("What");
        app.add_option("--threads", options_.threads, "number of threads in the trace")
            ->type_name("K")
            ->check(whole_number)
            ->capture_default_str()
            ->group("Threads");
        app.add_option("--sharing", options_.sharing, "share of the blocks that all threads use")
            ->type_name("SHARE")
            ->capture_default_str()
            ->group("Threads");
        app.add_option("--writes", options_.writes, "share of the accesses that are writes")
            ->type_name("SHARE")
            ->capture_default_str()
            ->group("Threads");
        app.add_option("--seed", options_.seed, "random seed")
            ->type_name("N")
            ->check(whole_number)
            ->capture_default_str()
            ->group("What");
        app.add_option("-o,--output", output_,
                       "the trace; - is standard output; .zst, .gz and .xz compress it")
            ->type_name("TRACE")
            ->required()
            ->group("Output");
        app.add_option("--to", to_, "trace format (default: by file name, else revisit)")
            ->type_name("NAME")
            ->group("Output");
        app.add_flag("--quiet", quiet_, "no progress bar, no warning about lost columns")
            ->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit generate --distribution zipf:0.9 --length 10M --distinct 100K -o zipf.rvt\n"
            "  revisit generate --from profile.json -o twin.u64 && revisit analyze twin.u64\n"
            "  revisit generate --distribution 'mix:0.8*exponential:0.1+0.2*normal:5000,50' \\\n"
            "      --length 1M --distinct 8K --threads 4 --sharing 0.2 --writes 0.3 -o threads.csv");
    }

    Result<int> run() override {
        auto generator = TRY(TraceGenerator::create(TRY(wanted()), options_));
        const auto writer = TRY(create_trace(output_, to_));
        Progress progress("generating", quiet_);
        LostColumns lost(*writer);
        for (std::uint64_t accesses = 0;;) {
            AccessBatch batch = generator.next();
            if (batch.count() == 0) break;
            TRY(writer->write(batch));
            lost.see(batch);
            accesses += batch.count();
            progress.update(accesses, options_.length, accesses);
        }
        TraceInfo info;
        info.natural_granularity = options_.granularity;
        TRY(writer->finish(info));
        progress.clear();
        lost.report("generate", output_, quiet_);
        return 0;
    }

 private:
    static Result<void> take_count(const char* option, const std::string& text, std::uint64_t& to) {
        if (text.empty()) return {};
        auto count = parse_count(text);
        if (!count) return fail(std::string(option) + ": " + count.error().message);
        to = *count;
        return {};
    }

    // The histogram; fills in options_ on the way.
    Result<Histogram> wanted() {
        std::optional<Profile> profile;
        if (!from_.empty()) {
            profile = TRY(load_profile(from_));
            options_.length = static_cast<std::uint64_t>(profile->accesses);
            options_.distinct = static_cast<std::uint64_t>(profile->distinct);
            options_.granularity = profile->granularity;
        } else if (distribution_.empty()) {
            return fail("give --from PROFILE or --distribution SPEC");
        } else if (length_.empty() || distinct_.empty()) {
            return fail("--distribution needs --length and --distinct");
        }
        TRY(take_count("--length", length_, options_.length));
        TRY(take_count("--distinct", distinct_, options_.distinct));
        if (!granularity_.empty()) {
            auto bytes = parse_bytes(granularity_);
            if (!bytes) return fail("--granularity: " + bytes.error().message);
            options_.granularity = *bytes;
        }
        if (options_.length < options_.distinct)
            return fail(fmt::format("--length: {} accesses cannot touch {} blocks", options_.length,
                                    options_.distinct));
        if (!profile) {
            auto parsed = parse_distribution(distribution_, options_.distinct);
            if (!parsed) return fail("--distribution: " + parsed.error().message);
            return parsed;
        }
        if (profile->reuse.invalidated > 0)
            return fail(from_, {},
                        "has invalidated reuses, which one stack cannot have; take a profile of "
                        "--model single");
        return profile->reuse;
    }

    std::string from_;
    std::string distribution_;
    std::string length_;
    std::string distinct_;
    std::string granularity_;
    std::string output_;
    std::string to_;
    bool quiet_ = false;
    GenerateOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_generate_command() {
    return std::make_unique<GenerateCommand>();
}

}  // namespace revisit
