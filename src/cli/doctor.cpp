// revisit doctor: what this machine, kernel and build can do, and what `auto` would choose.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cluster/cluster.h"
#include "core/try.h"
#include "formats/format.h"
#include "gpu/gpu.h"
#include "record/launch.h"
#include "record/probe.h"
#include "report/page.h"
#include "revisit/version.h"
#include "watch/watch.h"

namespace revisit {
namespace {

struct Finding {
    std::string subject;
    bool works;
    std::string detail;
};

std::string machine_line() {
    utsname name{};
    uname(&name);
    return fmt::format("{} {} on {}", name.sysname, name.release, name.machine);
}

std::string sampling_line(const record::Probe& watchpoints, const record::Probe& clock) {
    if (!clock.works)
        return fmt::format("--method watch: by a 4 ms timer only: perf events cannot be opened ({})",
                           clock.detail);
    if (!watchpoints.works)
        return fmt::format("--method watch: by look-ahead only, long reuses stay unknown ({})",
                           watchpoints.detail);
    return "--method watch: CPU-time samples, look-ahead for short reuses, watchpoints for long ones";
}

bool is_program(const std::filesystem::path& path) {
    return access(path.c_str(), X_OK) == 0;
}

// Programs that are built only where LLVM is, and run clang.
void add_llvm_parts(std::vector<Finding>& out) {
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    std::string clang;
    for (const char* name : {"clang-21", "clang-20", "clang-19", "clang"})
        if (clang.empty() && is_program(std::filesystem::path("/usr/bin") / name)) clang = name;
    const std::string missing = "not in this build: clang or LLVM's headers, 19 or later, were missing";
    const bool slicer =
        is_program(folder / "revisit-slice") || is_program(folder / "../libexec/revisit/revisit-slice");
    out.push_back({"predict", slicer,
                   !slicer         ? missing
                   : clang.empty() ? "LLVM IR (.ll, .bc); C needs clang, which is not installed"
                                   : "C and C++ with " + clang + ", LLVM IR"});
    const bool plugin = is_program(folder / "revisit-clang");
    out.push_back({"plug-in", plugin && !clang.empty(),
                   !plugin         ? missing
                   : clang.empty() ? "revisit-clang needs clang, which is not installed"
                                   : "CC=revisit-clang CXX=revisit-clang++ build programs with it"});
}

std::vector<Finding> findings() {
    std::vector<Finding> out;
    std::string engine_names, format_names;
    for (const EngineEntry& entry : engines())
        engine_names += fmt::format("{}{}", engine_names.empty() ? "" : ", ", entry.name);
    for (const FormatEntry& entry : formats())
        format_names += fmt::format("{}{}", format_names.empty() ? "" : ", ", entry.name);
    out.push_back({"engines", true, engine_names});
    out.push_back({"trace formats", true, format_names});
    std::string caches;
    for (const CacheSpec& cache : host_caches())
        caches += fmt::format("{}{} {} {}-way {} B lines", caches.empty() ? "" : "; ", cache.name,
                              format_bytes(static_cast<double>(cache.bytes)), cache.associativity(),
                              cache.line);
    out.push_back({"caches", !caches.empty(),
                   caches.empty() ? "the kernel does not describe them; give --cache" : caches});
    auto valgrind = record::find_valgrind();
    out.push_back(
        {"any binary", valgrind.has_value(),
         valgrind ? "recorded under valgrind, " + valgrind->directory : valgrind.error().sentence()});
    add_llvm_parts(out);
    record::Probe watchpoints = record::probe_watchpoints();
    out.push_back({"watchpoints", watchpoints.works, watchpoints.detail});
    record::Probe clock = record::probe_clock();
    out.push_back({"sampling", true, sampling_line(watchpoints, clock)});
    record::Probe counters = record::probe_counters();
    out.push_back({"counters", counters.works, counters.detail});
    std::string by_valgrind = valgrind ? "exact under valgrind" : "nothing else";
    out.push_back({"auto", true,
                   "profile: exact for programs built with revisit-clang, " +
                       (watch::works_here() ? "watch for all others, or " + by_valgrind +
                                                  " where options or the program require it"
                                            : by_valgrind + " for all others")});
    bool has_page = !page_template().empty();
    out.push_back(
        {"report page", has_page,
         has_page ? "report -o FILE.html" : "not in this build: esbuild and npm were missing"});
    out.push_back({"cores", true, fmt::format("{}", std::thread::hardware_concurrency())});
    const GpuReport gpu = describe_gpu();
    out.push_back({"gpu", gpu.works, gpu.detail});
    const ClusterReport cluster = describe_cluster();
    out.push_back({"cluster", cluster.works, cluster.detail});
    return out;
}

class DoctorCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_flag("--json", json_, "print the findings as JSON")->group("Output");
        app.footer("Examples:\n  revisit doctor\n  revisit doctor --json");
    }

    Result<int> run() override {
        std::vector<Finding> all = findings();
        std::string text;
        if (json_) {
            nlohmann::ordered_json out = {{"version", REVISIT_VERSION_STRING},
                                          {"machine", machine_line()}};
            out["findings"] = nlohmann::ordered_json::array();
            for (const Finding& finding : all)
                out["findings"].push_back({{"subject", finding.subject},
                                           {"works", finding.works},
                                           {"detail", finding.detail}});
            text = out.dump(1) + "\n";
        } else {
            text = fmt::format("revisit {}, {}\n", REVISIT_VERSION_STRING, machine_line());
            for (const Finding& finding : all)
                text += fmt::format("  {} {:<14} {}\n", finding.works ? "✓" : "✗", finding.subject,
                                    finding.detail);
        }
        TRY(print(text));
        return 0;
    }

 private:
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
    return std::make_unique<DoctorCommand>();
}

}  // namespace revisit
