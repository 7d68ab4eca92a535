#include "watch/watch.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <ranges>

#include "core/blocks.h"
#include "record/probe.h"
#include "record/stream.h"
#include "watch/preload/stand_in.h"

namespace revisit::watch {
namespace {

constexpr std::string_view kInstead = "use --method exact, which runs any program under valgrind";

void tell(const std::map<std::uint64_t, Note>& notes, std::vector<std::string>& to) {
    for (auto [what, note] : notes) {
        std::string reason = std::strerror(note.error);
        if (what == REVISIT_NOTE_RESTRICTED)
            to.push_back(
                "watch: the program restricted its system calls (seccomp): sampling ended there");
        else if (what == REVISIT_NOTE_NO_SAMPLES)
            to.push_back(fmt::format("watch: {} threads could not be sampled ({}); {}", note.threads,
                                     reason, kInstead));
        else if (what == REVISIT_NOTE_LOOKS_ONLY)
            to.push_back(fmt::format(
                "watch: no watchpoint could be set ({}): reuses were looked for up to 12 000 "
                "accesses ahead, all that come later count as cold; {}",
                reason, kInstead));
        else if (what == REVISIT_NOTE_BY_TIMER)
            to.push_back(
                fmt::format("watch: perf events cannot be opened ({}): a timer that ticks every 4 ms "
                            "took the samples; --clock count counts accesses in a second run",
                            reason));
        else if (what == REVISIT_NOTE_NO_PMU)
            to.push_back(
                fmt::format("watch: the processor's precise events could not be opened ({}): the "
                            "timer took the samples",
                            reason));
        else if (what == REVISIT_NOTE_NO_WATCHPOINT)
            to.push_back(
                fmt::format("watch: {} threads lacked a watchpoint ({}): a debugger may hold them; "
                            "long reuses are estimated from fewer",
                            note.threads, reason));
    }
}

// What look-aheads ended at, by function and first bytes (there is no disassembler here): those that
// gave no address, and the others where they are many.
void tell_ends(const Samples& samples, const Origins& origins, std::vector<std::string>& to) {
    constexpr std::size_t kMost = 6;
    FunctionNames names(origins);
    double all = 0, early = 0;
    for (const auto& [number, thread] : samples.threads)
        all += static_cast<double>(thread.samples.size());
    for (const auto& [where, end] : samples.ended) early += end.after;
    auto list = [&](unsigned Ended::* count) {
        std::map<std::string, unsigned> places;
        for (const auto& [where, end] : samples.ended) {
            if (end.*count == 0) continue;
            auto bytes = std::bit_cast<std::array<std::uint8_t, 8>>(where.second);
            bool is_call =
                (bytes[0] == 0x0f && bytes[1] == 0x05) || (where.second & 0xffffffff) == 0xd4000001;
            places[fmt::format(
                "{} in {}",
                is_call ? "system call"
                        : fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + 4, " ")),
                names.of(where.first))] += end.*count;
        }
        std::vector<std::pair<unsigned, std::string>> sorted;
        for (const auto& [name, times] : places) sorted.emplace_back(times, name);
        std::ranges::sort(sorted, std::greater{});
        std::vector<std::string> texts;
        for (const auto& [times, name] : sorted | std::views::take(kMost))
            texts.push_back(fmt::format("{} {}", name, times));
        if (sorted.size() > kMost) texts.push_back("…");
        return fmt::format("{}", fmt::join(texts, ", "));
    };
    if (std::string before = list(&Ended::before); !before.empty())
        to.push_back("watch: look-aheads ended before any access at: " + before);
    if (early > 0.1 * all)
        to.push_back(fmt::format("watch: {:.0f} % of look-aheads were cut short, at: {}",
                                 100 * early / all, list(&Ended::after)));
}

class WatchSink : public record::ProcessSink {
 public:
    WatchSink(const EstimateOptions& options, const FunctionCounts* counts, record::TakeProfile take)
        : options_(options), counts_(counts), take_(std::move(take)) {}

    Result<void> add(const AccessBatch&) override { return {}; }
    void watched(const record::WatchEvent& event) override { samples_.add(event); }

    Result<void> finish(const record::Decoder& process) override {
        Profile profile = estimate(samples_, process.origins(), options_, counts_);
        explain(profile, process.origins());
        tell(samples_.notes, profile.notes);
        tell_ends(samples_, process.origins(), profile.notes);
        return take_(process.pid(), std::move(profile));
    }

 private:
    EstimateOptions options_;
    const FunctionCounts* counts_;
    record::TakeProfile take_;
    Samples samples_;
};

// Accesses by function, of the first process.
class CountingSink : public record::ProcessSink {
 public:
    CountingSink(std::uint64_t granularity, FunctionCounts* counts)
        : cutter_(granularity), counts_(counts) {}

    Result<void> add(const AccessBatch& batch) override {
        if (counts_ == nullptr) return {};
        return cutter_.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
            for (std::uint32_t label : piece.sites) {
                if (label >= by_label_.size()) by_label_.resize(label + 1024);
                by_label_[label]++;
            }
            return {};
        });
    }

    Result<void> finish(const record::Decoder& process) override {
        if (counts_ == nullptr) return {};
        const Origins& origins = process.origins();
        FunctionNames names(origins);
        for (std::size_t label = 0; label < by_label_.size() && label < origins.labels.size(); label++)
            if (by_label_[label] > 0)
                (*counts_)[names.of(origins.labels[label].place)] +=
                    static_cast<double>(by_label_[label]);
        return {};
    }

 private:
    BlockCutter cutter_;
    FunctionCounts* counts_;
    std::vector<std::uint64_t> by_label_;
};

}  // namespace

Result<std::string> find_sampler() {
    std::string directory = record::support_directory("watch");
    if (directory.empty())
        return fail(
            fmt::format("this revisit was built without its sampler, which knows aarch64 and "
                        "x86_64; {}",
                        kInstead));
    return directory + "/librevisit-watch.so";
}

bool works_here() {
    return find_sampler() && record::probe_watchpoints().works && record::probe_clock().works;
}

namespace {

// What "#!" names in the first line of a script.
std::string interpreter_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    if (!std::getline(file, line) || !line.starts_with("#!")) return {};
    std::size_t begin = line.find_first_not_of(" \t", 2);
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

// The loader leaves out libraries that a user names where a program has more rights than the user.
bool has_rights_of_another(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) return false;
    return (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
           (status.st_mode & S_ISGID && status.st_gid != getegid()) ||
           (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0);
}

Result<void> check_file(const std::string& path, int depth) {
    if (has_rights_of_another(path))
        return fail(path, "",
                    fmt::format("runs with the rights of another user or with capabilities, so the "
                                "sampler cannot be loaded into it; {}",
                                kInstead));
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (file.gcount() < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        std::string interpreter = interpreter_of(path);
        return interpreter.empty() || depth > 4 ? Result<void>{} : check_file(interpreter, depth + 1);
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return fail(path, "", "is a program of 32 bits, which cannot be sampled");
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part{};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize));
        file.read(reinterpret_cast<char*>(&part), sizeof part);
        if (file && part.p_type == PT_INTERP) return {};
    }
    if (record::contains(path, REVISIT_LINKED_MARK)) return {};
    // No interpreter is named in it: nothing can be loaded into it.
    return fail(
        path, "",
        fmt::format("is linked statically, so the sampler cannot be loaded into it; link it with "
                    "$(revisit doctor --static-link), or {}",
                    kInstead));
}

}  // namespace

Result<void> check_program(const record::Program& program) {
    return check_file(program.path, 0);
}

Result<std::string> static_link_line() {
    Result<std::string> sampler = find_sampler();
    if (!sampler) return sampler;
    std::string line, names = REVISIT_WRAPPED;
    for (std::size_t at = 0; at < names.size();) {
        std::size_t end = std::min(names.find(',', at), names.size());
        line += "-Wl,--wrap=" + names.substr(at, end - at) + " ";
        at = end + 1;
    }
    return line + "-Wl,--whole-archive " + sampler->substr(0, sampler->rfind('.')) +
           ".a -Wl,--no-whole-archive";
}

std::string settings_text(const Settings& settings) {
    auto fields = std::bit_cast<std::array<std::uint64_t, kSettings>>(settings);
    return fmt::format("{}", fmt::join(fields, ","));
}

std::uint64_t own_filters() {
    std::ifstream status("/proc/self/status");
    for (std::string name; status >> name;)
        if (name == "Seccomp_filters:") {
            std::uint64_t count = 0;
            status >> count;
            return count;
        }
    return 0;
}

Result<FunctionCounts> count_accesses(record::RunOptions run, std::uint64_t granularity) {
    FunctionCounts counts;
    run.launch.recorder = record::Recorder::valgrind;
    run.launch.silent = true;
    run.decode.contexts = run.decode.objects = false;
    run.want = 0;
    Result<record::RunOutcome> outcome = record::run(
        run, [&](std::uint32_t, bool is_first) -> Result<std::unique_ptr<record::ProcessSink>> {
            return std::make_unique<CountingSink>(granularity, is_first ? &counts : nullptr);
        });
    if (!outcome) return std::unexpected(outcome.error());
    return counts;
}

std::unique_ptr<record::ProcessSink> make_watch_sink(const EstimateOptions& options,
                                                     const FunctionCounts* counts,
                                                     record::TakeProfile take) {
    return std::make_unique<WatchSink>(options, counts, std::move(take));
}

}  // namespace revisit::watch
