#include "watch/watch.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "record/probe.h"

namespace revisit::watch {
namespace {

class WatchSink : public record::ProcessSink {
 public:
    WatchSink(const EstimateOptions& options, const FunctionCounts* counts, record::TakeProfile take)
        : options_(options), counts_(counts), take_(std::move(take)) {}

    Result<void> add(const AccessBatch&) override { return {}; }
    void watched(const record::WatchEvent& event) override { samples_.add(event); }

    Result<void> finish(const record::Decoder& process) override {
        Profile profile = estimate(samples_, process.origins(), options_, counts_);
        explain(profile, process.origins());
        return take_(process.pid(), std::move(profile));
    }

 private:
    EstimateOptions options_;
    const FunctionCounts* counts_;
    record::TakeProfile take_;
    Samples samples_;
};

constexpr std::string_view kInstead = "use --method exact, which runs any program under valgrind";

}  // namespace

Result<std::string> find_sampler() {
    std::string directory = record::support_directory("watch");
    if (directory.empty())
        return fail(
            fmt::format("this revisit was built without its sampler, which knows aarch64 only "
                        "so far; {}",
                        kInstead));
    record::Probe watchpoints = record::probe_watchpoints();
    if (!watchpoints.works)
        return fail(fmt::format("watchpoints do not work here ({}); {}", watchpoints.detail, kInstead));
    return directory + "/librevisit-watch.so";
}

// A program without an interpreter named in it is linked statically: nothing can be loaded into it.
Result<void> check_program(const record::Program& program) {
    std::ifstream file(program.path, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};  // a script
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part{};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize));
        file.read(reinterpret_cast<char*>(&part), sizeof part);
        if (file && part.p_type == PT_INTERP) return {};
    }
    return fail(
        program.path, "",
        fmt::format("is linked statically, so the sampler cannot be loaded into it; {}", kInstead));
}

std::string settings_text(const Settings& settings) {
    return fmt::format("{},{},{},{},{},{},{},{},{}", settings.period, settings.window,
                       settings.watchpoints, settings.shift, settings.budget, settings.spread,
                       settings.rates, settings.seed, settings.check);
}

std::unique_ptr<record::ProcessSink> make_watch_sink(const EstimateOptions& options,
                                                     const FunctionCounts* counts,
                                                     record::TakeProfile take) {
    return std::make_unique<WatchSink>(options, counts, std::move(take));
}

}  // namespace revisit::watch
