#include "watch/watch.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <fstream>

#include "core/elf_file.h"
#include "core/try.h"
#include "record/probe.h"
#include "revisit/blocks.h"

namespace revisit::watch {
namespace {

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

bool can_watch(std::uint64_t granularity) {
    return std::has_single_bit(granularity) && granularity >= 8 && granularity <= 128;
}

bool works_here() {
    return record::probe_watchpoints().works && record::probe_clock().works;
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

// The kernel gives a program that is traced no more rights than its tracer has.
bool has_rights_of_another(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) return false;
    return (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
           (status.st_mode & S_ISGID && status.st_gid != getegid()) ||
           (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0);
}

// The ELF file that runs when `path` does: itself, or the interpreter of a script.
std::string executable_of(std::string path) {
    constexpr int kMostScripts = 4;
    for (int i = 0; i < kMostScripts; i++) {
        std::string interpreter = interpreter_of(path);
        if (interpreter.empty()) break;
        path = interpreter;
    }
    return path;
}

}  // namespace

Result<void> check_program(const record::Program& program) {
    std::string path = executable_of(program.path);
    if (geteuid() != 0 && has_rights_of_another(path))
        return fail(
            path, "",
            "runs with the rights of another user or with capabilities, which a program that is "
            "sampled does not get; run revisit as root");
    if (ElfFile(path).header().e_ident[EI_CLASS] == ELFCLASS32)
        return fail(path, "", "is a program of 32 bits, which cannot be sampled");
    return {};
}

std::string heap_library() {
    std::string directory = record::support_directory("watch");
    std::string library = directory + "/librevisit-heap.so";
    return !directory.empty() && access(library.c_str(), R_OK) == 0 ? library : "";
}

record::Environment heap_environment(const std::string& library) {
    if (library.empty()) return {};
    const char* others = std::getenv("LD_PRELOAD");
    return {{"LD_PRELOAD", library + (others && *others ? ":" + std::string(others) : "")}};
}

Result<FunctionCounts> count_accesses(record::RunOptions run, std::uint64_t granularity) {
    FunctionCounts counts;
    run.launch.recorder = record::Recorder::valgrind;
    run.launch.silent = true;
    run.decode.contexts = run.decode.objects = false;
    run.want = 0;
    TRY(record::run(
        run,
        [&](const record::StartedProcess& process) -> Result<std::unique_ptr<record::ProcessSink>> {
            return std::make_unique<CountingSink>(granularity, process.is_first ? &counts : nullptr);
        }));
    return counts;
}

}  // namespace revisit::watch
