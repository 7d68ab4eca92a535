// Sources into slices: runs the slicer helper and reads what it prints.
#include "predict/slice/frontend.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/try.h"

extern char** environ;

namespace revisit::predict {

// Standard output and error of a child, both read to the end.
Result<int> run_program(std::vector<std::string> arguments, std::string& out, std::string& messages) {
    int pipes[2][2];
    if (pipe(pipes[0]) != 0) return fail("cannot make a pipe");
    if (pipe(pipes[1]) != 0) {
        close(pipes[0][0]);
        close(pipes[0][1]);
        return fail("cannot make a pipe");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int k = 0; k < 2; ++k) {
        posix_spawn_file_actions_adddup2(&actions, pipes[k][1], k + 1);
        posix_spawn_file_actions_addclose(&actions, pipes[k][0]);
        posix_spawn_file_actions_addclose(&actions, pipes[k][1]);
    }
    std::vector<char*> raw;
    for (auto& a : arguments) raw.push_back(a.data());
    raw.push_back(nullptr);
    pid_t child = -1;
    const int failed = posix_spawnp(&child, raw[0], &actions, nullptr, raw.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[0][1]);
    close(pipes[1][1]);
    std::string* to[2] = {&out, &messages};
    // Both at once: a child that waits until one is read never ends the other.
    pollfd ready[2] = {{pipes[0][0], POLLIN, 0}, {pipes[1][0], POLLIN, 0}};
    while (ready[0].fd >= 0 || ready[1].fd >= 0) {
        if (poll(ready, 2, -1) < 0) {
            if (errno == EINTR) continue;
            break;
        }
        for (int k = 0; k < 2; ++k) {
            if (ready[k].fd < 0 || ready[k].revents == 0) continue;
            char buffer[1 << 16];
            const auto n = read(ready[k].fd, buffer, sizeof buffer);
            if (n > 0)
                to[k]->append(buffer, static_cast<std::size_t>(n));
            else if (n == 0 || errno != EINTR)
                ready[k].fd = -1;
        }
    }
    for (int k = 0; k < 2; ++k) close(pipes[k][0]);
    if (failed != 0) return fail(arguments[0], "", "cannot be run");
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

namespace {

bool is_source(const std::string& path) {
    static const std::set<std::string> known{".c",   ".i",   ".C",   ".cc", ".cpp", ".cxx",
                                             ".c++", ".ii",  ".ll",  ".bc", ".f",   ".f90",
                                             ".F90", ".f95", ".f03", ".f08"};
    return known.contains(std::filesystem::path(path).extension().string());
}

}  // namespace

bool is_cpp(const std::string& path) {
    static const std::set<std::string> known{".C", ".cc", ".cpp", ".cxx", ".c++", ".ii"};
    return known.contains(std::filesystem::path(path).extension().string());
}

namespace {

Result<void> readable(const std::string& path) {
    if (access(path.c_str(), R_OK) != 0) return fail(path, "", "cannot be read");
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return fail(path, "", "is no file");
    if (!is_source(path))
        return fail(path, "",
                    "is neither C (.c, .cpp), Fortran (.f90) nor LLVM IR (.ll, .bc), by its name");
    return {};
}

}  // namespace

std::string slicer_path() {
    if (const char* given = std::getenv("REVISIT_SLICE")) return given;
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    for (const auto& place :
         {self.parent_path() / "revisit-slice", self.parent_path() / "../libexec/revisit/revisit-slice",
          self.parent_path() / "../lib/revisit/revisit-slice"})
        if (access(place.c_str(), X_OK) == 0) return place.string();
    return {};
}

Result<std::vector<std::string>> unused_macros(const Source& source, const Parameters& macros) {
    const auto helper = slicer_path();
    std::vector<std::string> names;
    if (helper.empty() || !is_source(source.path)) return names;  // compile() says so
    std::vector<std::string> arguments{helper, "macros", "", source.path};
    arguments.insert(arguments.end(), source.flags.begin(), source.flags.end());
    for (const auto& [name, value] : macros)
        arguments.push_back("-D" + name + "=" + std::to_string(value));
    std::string out, messages;
    TRY(run_program(std::move(arguments), out, messages));
    for (std::size_t at = 0, end; (end = out.find('\n', at)) != std::string::npos; at = end + 1)
        names.push_back(out.substr(at, end - at));
    return names;
}

namespace {

bool is_intermediate(const Source& source) {
    return source.path.ends_with(".ll") || source.path.ends_with(".bc");
}

// What the slicer prints of the source for each set of macros.
Result<std::string> slicer_output(const Source& source, const std::vector<Parameters>& macros,
                                  const std::vector<std::string>& options) {
    const auto helper = slicer_path();
    if (helper.empty())
        return fail(
            "reading C and LLVM IR is not in this build: revisit-slice is not beside it (built without "
            "LLVM 19)");
    std::vector<std::string> arguments{helper, source.level(), source.function, source.path};
    arguments.insert(arguments.end(), source.flags.begin(), source.flags.end());
    TRY(readable(source.path));
    for (const Unit& unit : source.others) {
        TRY(readable(unit.path));
        arguments.insert(arguments.end(), {"--unit", unit.path});
        arguments.insert(arguments.end(), unit.flags.begin(), unit.flags.end());
    }
    arguments.insert(arguments.end(), options.begin(), options.end());
    for (const auto& m : macros) {
        arguments.push_back("--");
        for (const auto& [name, value] : m)
            arguments.push_back("-D" + name + "=" + std::to_string(value));
    }
    std::string out, messages;
    const auto status = TRY(run_program(std::move(arguments), out, messages));
    while (!messages.empty() && messages.back() == '\n') messages.pop_back();
    if (status != 0) {
        // Several lines are clang's or LLVM's own, and stay as they are.
        const auto what =
            is_intermediate(source) ? "is no LLVM IR that LLVM 19 reads" : "does not compile";
        if (messages.empty()) return fail(source.path, "", what);
        const auto code =
            status == kNoFunctionChosen ? ErrorCode::no_function : ErrorCode::invalid_input;
        if (messages.find('\n') == std::string::npos) return fail(code, source.path, "", messages);
        return fail(source.path, "", what + ("\n" + messages));
    }
    return out;
}

}  // namespace

Result<void> compile_notes(const Source& source, const Parameters& macros, const std::string& program) {
    TRY(slicer_output(source, {macros}, {"--notes", program}));
    return {};
}

Result<std::vector<Program>> compile(const Source& source, const std::vector<Parameters>& macros) {
    std::vector<std::string> options;
    if (source.in_program) options.emplace_back("--in-program");
    const auto out = TRY(slicer_output(source, macros, options));
    const bool intermediate = is_intermediate(source);
    auto programs = programs_from_text(out);
    if (programs && programs->size() != (intermediate ? 1 : std::max<std::size_t>(1, macros.size())))
        return fail(source.path, "", "the slicer gave up");
    return programs;
}

}  // namespace revisit::predict
