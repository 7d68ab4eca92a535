#include "cli/command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "core/files.h"
#include "core/try.h"

namespace revisit {

std::unique_ptr<Command> make_analyze_command();
std::unique_ptr<Command> make_cache_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_diff_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_generate_command();
std::unique_ptr<Command> make_predict_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_profile_command();
std::unique_ptr<Command> make_record_command();
std::unique_ptr<Command> make_merge_command();
std::unique_ptr<Command> make_top_command();

namespace {

constexpr CommandEntry kCommands[] = {
    {"profile", "run a program and profile it", make_profile_command},
    {"top", "show a running process, refreshed every second", make_top_command},
    {"record", "run a program and store its accesses as a trace", make_record_command},
    {"merge", "add profiles up", make_merge_command},
    {"analyze", "profile a stored trace", make_analyze_command},
    {"cache", "hit rates and the miss-ratio curve of a profile", make_cache_command},
    {"predict", "profile C or LLVM IR at any size without running it", make_predict_command},
    {"report", "show a profile in the terminal or as an HTML page", make_report_command},
    {"diff", "compare two profiles; fail a build on a regression", make_diff_command},
    {"export", "write a profile for pprof, KCachegrind, flame graphs, Prometheus", make_export_command},
    {"generate", "generate a trace with a given reuse-distance histogram", make_generate_command},
    {"convert", "convert a trace to another format", make_convert_command},
    {"doctor", "show what this machine and this build support", make_doctor_command},
};

// The parts of a list such as 64,4K,2M; empty ones too.
std::vector<std::string_view> parts_of(std::string_view list, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(separator, at), list.size());
        parts.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

// METHOD=NAME; time is the one method with models to choose from.
Result<TimeModel> parse_model_of(std::string_view text) {
    constexpr std::string_view kMethod = "time=";
    if (!text.starts_with(kMethod)) return fail(fmt::format("expected time=NAME, found \"{}\"", text));
    return parse_time_model(text.substr(kMethod.size()));
}

}  // namespace

std::span<const CommandEntry> commands() {
    return kCommands;
}

std::string shell_word(const std::string& word) {
    constexpr std::string_view kPlain = "%+,-./:=@_";
    auto is_plain = [&](unsigned char c) {
        return c >= 128 || std::isalnum(c) || kPlain.find(static_cast<char>(c)) != kPlain.npos;
    };
    if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
    std::string quoted = "'";
    for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + shell_word(word);
    return all;
}

Result<void> check_inputs(const std::vector<std::string>& inputs) {
    if (std::ranges::count(inputs, "-") <= 1) return {};
    return fail("standard input (-) can be read once, and is named twice");
}

std::string whole_number(const std::string& text) {
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') return {};
    return fmt::format("expected a number, found \"{}\"", text);
}

void AnalysisOptions::declare(CLI::App& app) {
    app.add_option("--granularity", granularity_text,
                   "bytes per block; 1 counts every address (default: 64)\n"
                   "a list such as 64,4K,2M counts all in one run; the first is the main one")
        ->type_name("BYTES,…")
        ->check(whole_number)
        ->group("Analysis");
    app.add_option("--bins", bins_text, "log2, log2:K (K per power of two), linear:W or exact")
        ->type_name("SPEC")
        ->capture_default_str()
        ->group("Analysis");
    std::string models;
    for (const TimeModelEntry& entry : time_models())
        models += "\ntime=" + std::string(entry.name) + ": " + std::string(entry.summary);
    app.add_option("--model-of", model_of,
                   "--method time: the model from time distance to reuse distance" + models)
        ->type_name("METHOD=NAME")
        ->capture_default_str()
        ->group("Analysis");
    app.add_option("--phases", phases, "split the run into N windows, one histogram each")
        ->type_name("N")
        ->group("Analysis");
    app.add_option("--threads", threads, "threads to count with (default: all cores)")
        ->type_name("N")
        ->check(whole_number)
        ->group("Analysis");
    app.add_option("--seed", seed, "random seed")
        ->type_name("N")
        ->check(whole_number)
        ->capture_default_str()
        ->group("Analysis");
}

Result<EngineOptions> AnalysisOptions::engine_options() const {
    EngineOptions options;
    if (auto sizes = TRY(granularities()); !sizes.empty()) options.granularity = sizes[0];
    auto bins = Binning::parse(bins_text);
    if (!bins) return fail("--bins: " + bins.error().message);
    options.bins = *bins;
    auto time_model = parse_model_of(model_of);
    if (!time_model) return fail("--model-of: " + time_model.error().message);
    options.time_model = *time_model;
    options.threads = threads;
    if (phases > 4096) return fail("--phases: expected at most 4096");
    options.phases = phases;
    options.seed = seed;
    return options;
}

Result<std::vector<std::uint64_t>> AnalysisOptions::granularities() const {
    constexpr std::size_t kMost = 8;
    std::vector<std::uint64_t> sizes;
    if (!granularity_given()) return sizes;
    for (std::string_view text : parts_of(granularity_text, ',')) {
        auto size = parse_bytes(text);
        if (!size) return fail("--granularity: " + size.error().message);
        if (*size == 0) return fail("--granularity: expected at least 1");
        if (std::ranges::find(sizes, *size) != sizes.end())
            return fail(fmt::format("--granularity: {} is given twice", text));
        sizes.push_back(*size);
    }
    if (sizes.size() > kMost)
        return fail(fmt::format("--granularity: expected at most {} sizes", kMost));
    return sizes;
}

void BesideOptions::declare(CLI::App& app) {
    app.add_option("--line-use", line_use,
                   "count the bytes of each line that are used before it leaves this cache; auto: "
                   "this machine's second level (default of exact profiles with sites); off: do not")
        ->type_name("SIZE:WAYS:LINE")
        ->group("Analysis");
    app.add_option(
           "--cores", cores,
           "private model: thread i runs on the i-th of these cores (0,1,0,1), and threads of a "
           "core share its private stack")
        ->type_name("CORE,…")
        ->group("Analysis");
}

Result<void> BesideOptions::apply(const AnalysisOptions& analysis, AnalyzeOptions& options) const {
    for (std::string_view text : parts_of(cores, ',')) {
        if (cores.empty()) break;
        auto core = parse_count(text);
        if (!core || *core > 65535 || options.cores.size() == 65536)
            return fail(
                fmt::format("--cores: expected numbers of cores such as 0,1,0,1, found \"{}\"", cores));
        options.cores.push_back(static_cast<std::uint16_t>(*core));
    }
    auto sizes = TRY(analysis.granularities());
    if (sizes.size() > 1) options.more_granularities.assign(sizes.begin() + 1, sizes.end());
    if (line_use.empty() || line_use == "off") return {};
    std::string text = line_use;
    if (text == "auto") {
        const std::vector<CacheSpec> caches = host_caches();
        text = "1M:8:64";
        if (!caches.empty()) {
            const CacheSpec& cache = caches[caches.size() > 1 ? 1 : 0];
            constexpr std::uint64_t kMega = 1 << 20;
            text = cache.bytes % kMega == 0 ? fmt::format("{}M", cache.bytes / kMega)
                                            : fmt::format("{}K", cache.bytes / 1024);
            text += fmt::format(":{}:{}", cache.associativity(), cache.line);
        }
    }
    auto spec = CacheSpec::parse(text);
    if (!spec) return fail("--line-use: " + spec.error().message);
    options.line_use = *spec;
    return {};
}

void ModelOption::declare(CLI::App& app) {
    app.add_option("--model", model,
                   "LRU stacks: single, shared, private (one per thread) or both\n"
                   "private: a write invalidates the block in other threads' stacks\n"
                   "both: private and shared in one pass")
        ->capture_default_str()
        ->type_name("MODEL")
        ->check(CLI::IsMember({"single", "shared", "private", "both"}))
        ->group("Analysis");
}

void ModelOption::apply(EngineOptions& options) const {
    options.model = model == "private" || model == "both" ? StackModel::private_ : StackModel::single;
    options.shared = model == "both";
    options.sharing = options.model == StackModel::private_;
}

void SamplingOptions::declare(CLI::App& app) {
    rate_option = app.add_option("--rate", rate, "share of accesses (shards: blocks) to sample")
                      ->type_name("SHARE")
                      ->capture_default_str()
                      ->group("Sampling");
    app.add_option("--target-error", target_error,
                   "adapt the rate: every share and hit rate within this, at 95 %")
        ->type_name("SHARE")
        ->group("Sampling");
    app.add_option("--prune", prune,
                   "give up an open sample beyond this percentile of distances; off: never")
        ->type_name("SHARE")
        ->capture_default_str()
        ->group("Sampling");
    app.add_option("--prune-after", prune_after, "completed samples before pruning starts")
        ->type_name("N")
        ->capture_default_str()
        ->group("Sampling");
}

Result<void> SamplingOptions::apply(EngineOptions& options) const {
    auto take = [](std::string_view option, const std::string& text, double& into) -> Result<void> {
        auto share = parse_share(text);
        if (!share) return fail(fmt::format("{}: {}", option, share.error().message));
        if (*share <= 0) return fail(fmt::format("{}: expected a share above 0", option));
        into = *share;
        return {};
    };
    TRY(take("--rate", rate, options.sample.rate));
    options.shards.rate = options.sample.rate;
    if (!target_error.empty()) TRY(take("--target-error", target_error, options.sample.target_error));
    TRY(take("--prune", prune == "off" ? "1" : prune, options.sample.prune_share));
    options.sample.prune_after = prune_after;
    return {};
}

void OutputOptions::declare(CLI::App& app, const std::string& output_help) {
    app.add_option("-o,--output", output, output_help)->type_name("FILE")->group("Output");
    app.add_flag("--json", json, "print the result as JSON")->group("Output");
    app.add_flag("--quiet", quiet, "no progress bar, no hints")->group("Output");
}

void CacheOptions::declare(CLI::App& app, const std::string& help) {
    app.add_option("--cache", specs, help)->type_name("SIZE:WAYS:LINE")->group("Caches");
}

Result<void> CacheOptions::give_back(std::string& positional, std::string_view name) {
    if (positional.empty() && !specs.empty() && specs.back().find(':') == std::string::npos) {
        positional = specs.back();
        specs.pop_back();
    }
    if (positional.empty()) return fail(fmt::format("{} is required", name));
    return {};
}

Result<std::vector<CacheSpec>> CacheOptions::caches() const {
    if (specs.empty()) return host_caches();
    std::vector<CacheSpec> out;
    for (const std::string& text : specs) {
        auto spec = CacheSpec::parse(text);
        if (!spec) return fail("--cache: " + spec.error().message);
        out.push_back(*spec);
    }
    return out;
}

Result<LowLocalityOptions> low_locality_options(const std::vector<std::string>& coverages,
                                                const CacheOptions& given,
                                                const std::vector<CacheSpec>& caches,
                                                bool reuses_only) {
    LowLocalityOptions out;
    if (!given.specs.empty()) out.cache = caches.front();
    out.cold_counts = !reuses_only;
    if (!coverages.empty()) out.coverages.clear();
    for (const std::string& text : coverages) {
        auto share = parse_share(text);
        if (!share) return fail("--miss-coverage: " + share.error().message);
        out.coverages.push_back(*share);
    }
    std::sort(out.coverages.begin(), out.coverages.end());
    return out;
}

Result<void> check_options(const CLI::App& app, std::string_view method, bool automatic) {
    struct Belonging {
        const char* option;
        std::string_view methods;  // in order, separated by spaces
    };
    constexpr Belonging kBelongings[] = {
        {"--rate", "sample shards"},  {"--target-error", "sample"},  {"--prune", "sample"},
        {"--prune-after", "sample"},  {"--sample-blocks", "shards"}, {"--thread-trace", "hprda"},
        {"--block-threads", "hprda"}, {"--no-adjust", "hprda"},      {"--model-of", "time"},
        {"--sequential", "sample"},   {"--every", "watch"},          {"--repeat", "watch"},
        {"--overhead", "watch"},      {"--look-ahead", "watch"},     {"--watchpoints", "watch"},
        {"--weights", "watch"},       {"--clock", "watch"},          {"--check-predictions", "watch"},
        {"--cache", "exact"},
    };
    for (const Belonging& belonging : kBelongings) {
        const CLI::Option* option = app.get_option_no_throw(belonging.option);
        if (option == nullptr || option->count() == 0) continue;
        std::string names;
        bool used = automatic && belonging.methods == "watch";
        for (std::string_view name : parts_of(belonging.methods, ' ')) {
            used = used || name == method;
            names += fmt::format("{}--method {}", names.empty() ? "" : " or ", name);
        }
        if (!used)
            return fail(fmt::format("{} is an option of {}; the {} method does not use it",
                                    belonging.option, names, method));
    }
    return {};
}

void LostColumns::see(const AccessBatch& batch) {
    auto holds_something = [](auto column) {
        return std::any_of(column.begin(), column.end(), [](auto value) { return value != 0; });
    };
    auto look = [&](bool held, bool& lost, auto column) {
        if (!held && !lost) lost = holds_something(column);
    };
    look(holds_.threads, lost_.threads, batch.threads);
    look(holds_.flags, lost_.flags, batch.flags);
    look(holds_.sites, lost_.sites, batch.sites);
    look(holds_.sizes, lost_.sizes, batch.sizes);
}

void LostColumns::report(std::string_view command, const std::string& output, bool quiet) const {
    std::vector<std::string_view> names;
    if (lost_.threads) names.push_back("threads");
    if (lost_.flags) names.push_back("writes");
    if (lost_.sites) names.push_back("sites");
    if (lost_.sizes) names.push_back("sizes");
    if (names.empty() || quiet) return;
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i)
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
    say(fmt::format("revisit {}: {}: the format cannot hold {}: omitted\n", command,
                    output == "-" ? "standard output" : output, list));
}

namespace {

// What the library calls an option, where an error's place is one, and what the command calls it.
struct OptionName {
    std::string_view name, flag;
};
constexpr OptionName kOptionNames[] = {
    {"advice", "--advise"}, {"argv", "--argv"},       {"condition", "--fail-if"},
    {"data", "--data"},     {"parameter", "--param"}, {"recorded data", "--record-data"},
    {"sweep", "--sweep"},   {"value", "--value"},     {"verification", "--verify"},
};

// "parameter n=3" is "--param n=3" on the command line.
std::string as_flag(const std::string& place) {
    for (const OptionName& option : kOptionNames)
        if (place.starts_with(option.name) &&
            (place.size() == option.name.size() || place[option.name.size()] == ' '))
            return std::string(option.flag) + place.substr(option.name.size());
    return place;
}

}  // namespace

std::string with_hint(const Error& error) {
    const std::string sentence =
        Error{error.file, as_flag(error.place), error.message, error.code}.sentence();
    switch (error.code) {
        case ErrorCode::unknown_format:
            return sentence + "; give --format";
        case ErrorCode::no_threads:
            return sentence + "; use --threads 1";
        case ErrorCode::device:
        case ErrorCode::device_memory:
            return sentence + "; use --device cpu";
        case ErrorCode::no_cache:
            return sentence + "; give --cache NAME=SIZE:WAYS:LINE";
        case ErrorCode::no_sites:
            return sentence + "; analyze with --sites, or record with symbols";
        case ErrorCode::no_phases:
            return sentence + "; profile with --phases N";
        case ErrorCode::no_sharing:
            return sentence + "; profile the program with --model both";
        case ErrorCode::no_function:
            return sentence + "; give --function";
        case ErrorCode::no_size:
            return sentence + "; give --param NAME=VALUE";
        case ErrorCode::no_data:
            return sentence + "; give --data NAME=FILE or --param NAME=VALUE";
        case ErrorCode::no_formulas:
            return sentence + ": give sizes by -D or --param, or use --method simulate";
        case ErrorCode::not_recordable:
            return sentence + "; --method watch samples it";
        case ErrorCode::not_sampling:
            return sentence + "; use --via valgrind, or record it and analyze the trace";
        case ErrorCode::not_instrumented:
            return sentence + ", or use --via valgrind";
        default:
            return sentence;
    }
}

TerminalStyle stdout_style() {
    TerminalStyle style;
    bool terminal = isatty(STDOUT_FILENO) != 0;
    const char* no_color = std::getenv("NO_COLOR");
    style.color = terminal && (no_color == nullptr || *no_color == '\0');
    const char* kind = std::getenv("TERM");
    style.links = style.color && kind != nullptr && std::string_view(kind) != "dumb";
    winsize size{};
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        style.width = std::min<int>(size.ws_col, 120);
    return style;
}

Result<void> print(std::string_view text) {
    return write_file("-", text);
}

void say(std::string_view text) {
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace revisit
