#include "record/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/elf_file.h"
#include "core/try.h"
#include "record/stream.h"

namespace revisit::record {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
constexpr const char* kValgrindPlatform = "arm64-linux";
#else
constexpr std::uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86_64";
constexpr const char* kValgrindPlatform = "amd64-linux";
#endif

std::string machine_name(std::uint16_t machine) {
    switch (machine) {
        case EM_AARCH64:
            return "aarch64";
        case EM_X86_64:
            return "x86_64";
        case EM_386:
            return "32-bit x86";
        case EM_ARM:
            return "32-bit arm";
        case EM_RISCV:
            return "riscv";
        default:
            return fmt::format("machine {}", machine);
    }
}

bool is_executable(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
}

// What the compiler plug-in's runtime leaves in every program it is linked to.
constexpr std::string_view kInstrumentedMark = "revisit-instrumented-program";

// Programs that do nothing but prepare for another, which their arguments name.
constexpr std::string_view kWrappers[] = {"chrt",    "env",     "ionice",  "nice",    "nohup",
                                          "numactl", "prlimit", "setarch", "setpriv", "setsid",
                                          "stdbuf",  "taskset", "time",    "timeout"};

}  // namespace

bool contains(const std::string& path, std::string_view mark) {
    std::ifstream file(path, std::ios::binary);
    std::string window, chunk(1 << 20, '\0');
    while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
        window.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
        if (window.find(mark) != std::string::npos) return true;
        window.erase(0, window.size() - std::min(window.size(), mark.size()));
    }
    return false;
}

namespace {

Result<void> check_machine(const std::string& path) {
    const ElfFile file(path);
    const Elf64_Ehdr& header = file.header();
    if (!file.is_elf()) return {};  // a script
    if (header.e_machine != kMachine || header.e_ident[EI_CLASS] != ELFCLASS64)
        return fail(path, "",
                    fmt::format("is a program for {}, this machine is {}",
                                machine_name(header.e_machine), kMachineName));
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return fail(path, "", "is an object file, not a program; link it first");
    return {};
}

std::string find_in_path(const std::string& name, bool& found_not_executable) {
    const char* variable = std::getenv("PATH");
    std::istringstream path(variable ? variable : "/usr/local/bin:/usr/bin:/bin");
    for (std::string directory; std::getline(path, directory, ':');) {
        std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
        if (is_executable(candidate)) return candidate;
        std::error_code unreadable;  // a folder of the path that this user may not enter
        if (fs::is_regular_file(candidate, unreadable)) found_not_executable = true;
    }
    return {};
}

}  // namespace

namespace {

// `taskset -c 0 ./app`: what is meant is ./app. An argument of another program may be a file it reads.
// Options of env may take away what tells ./app where to write.
bool wraps_instrumented(const std::vector<std::string>& command) {
    const std::string name = fs::path(command[0]).filename();
    if (std::ranges::find(kWrappers, name) == std::end(kWrappers)) return false;
    if (name == "env" && command.size() > 1 && command[1].starts_with('-')) return false;
    return std::any_of(command.begin() + 1, command.end(), [](const std::string& word) {
        bool ignored = false;
        const std::string path =
            word.find('/') == std::string::npos ? find_in_path(word, ignored) : word;
        return is_executable(path) && contains(path, kInstrumentedMark);
    });
}

}  // namespace

Result<Program> find_program(const std::vector<std::string>& command) {
    if (command.empty() || command[0].empty()) return fail("no program was named");
    const std::string& name = command[0];
    Program program{name, command};
    if (name.find('/') == std::string::npos) {
        bool not_executable = false;
        program.path = find_in_path(name, not_executable);
        if (program.path.empty()) {
            std::error_code ignored;
            if (fs::exists(name, ignored))
                return fail(name, "",
                            fmt::format("not found in PATH; the one in this directory is ./{}", name));
            return fail(name, "", not_executable ? "is not executable" : "program not found");
        }
    } else {
        struct stat status;
        if (stat(name.c_str(), &status) != 0)
            return fail(name, "", errno == ENOENT ? "program not found" : std::strerror(errno));
        if (S_ISDIR(status.st_mode)) return fail(name, "", "is a directory, not a program");
        if (!is_executable(name)) return fail(name, "", "is not executable");
    }
    TRY(check_machine(program.path));
    program.instrumented = contains(program.path, kInstrumentedMark);
    program.wraps_instrumented = !program.instrumented && wraps_instrumented(command);
    return program;
}

// Go's goroutines store below the stack pointer and move their stacks, which valgrind takes for stores
// to memory that is not there.
Result<void> check_for_valgrind(const Program& program) {
    struct stat status;
    if (stat(program.path.c_str(), &status) == 0 &&
        (status.st_mode & (S_ISUID | S_ISGID) ||
         getxattr(program.path.c_str(), "security.capability", nullptr, 0) > 0))
        return fail(ErrorCode::not_recordable, program.path, "",
                    "runs with the rights of another user or with capabilities, which valgrind cannot "
                    "run, and only root can sample");
    const std::string mark = std::string("\xff Go ") + "buildinf:";  // apart, not to have it ourselves
    if (!contains(program.path, mark)) return {};
    return fail(ErrorCode::not_recordable, program.path, "",
                "is a Go program, which valgrind cannot run");
}

std::string support_directory(const std::string& name) {
    std::error_code ignored;
    if (const char* told = std::getenv("REVISIT_LIBEXEC"))
        if (fs::exists(fs::path(told) / name, ignored)) return fs::path(told) / name;
    fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (fs::path candidate : {self / "libexec/revisit" / name, self / "../libexec/revisit" / name})
        if (fs::exists(candidate, ignored)) return fs::canonical(candidate, ignored);
    return {};
}

Result<ValgrindParts> find_valgrind() {
    ValgrindParts parts;
    bool ignored = false;
    // Debian's `valgrind` is a script that changes the environment of the program; valgrind.bin does
    // not.
    for (const char* name : {"valgrind.bin", "valgrind"})
        if (parts.launcher = find_in_path(name, ignored); !parts.launcher.empty()) break;
    if (parts.launcher.empty())
        return fail(
            "valgrind is not installed; install it (apt-get install valgrind), or build the program "
            "with "
            "revisit-clang");
    parts.directory = support_directory("valgrind");
    if (parts.directory.empty() || !is_executable(parts.directory + "/revisit-" + kValgrindPlatform))
        return fail(
            "this revisit was built without its valgrind tool; rebuild it with valgrind installed");
    return parts;
}

Result<pid_t> launch(const Program& program, const Slots& slots, const LaunchOptions& options) {
    std::vector<std::string> arguments;
    Environment environment;
    std::string file = program.path;
    if (options.recorder == Recorder::valgrind) {
        const ValgrindParts parts = TRY(find_valgrind());
        const char* log = std::getenv("REVISIT_VALGRIND_LOG");
        file = parts.launcher;
        arguments = {"valgrind", "--tool=revisit", "--quiet", "--vgdb=no", "--demangle=no",
                     "--sigill-diagnostics=yes",  // which --quiet leaves out
                     fmt::format("--log-file={}", log ? log : "/dev/null"), "--stream=" + slots.path(),
                     fmt::format("--trace-children={}", options.follow_exec ? "yes" : "no"),
                     // With code inserted between a load-linked and its store-conditional the pair
                     // might never succeed on real hardware; valgrind then emulates it.
                     "--sim-hints=fallback-llsc"};
        if (!options.messages.empty() && !log) arguments.push_back("--messages=" + options.messages);
        if (options.in_order) arguments.push_back("--fair-sched=try");
        for (const std::string& function : options.functions)
            arguments.push_back("--function=" + function);
        arguments.push_back("--");
        arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
        environment.emplace_back("VALGRIND_LIB", parts.directory);
    } else {
        arguments = program.arguments;
        environment.emplace_back(REVISIT_STREAM_ENV, slots.path());
        environment.emplace_back(REVISIT_FUNCTIONS_ENV,
                                 fmt::format("{}", fmt::join(options.functions, "\n")));
        environment.emplace_back(REVISIT_REGIONS_ENV,
                                 fmt::format("{}", fmt::join(options.regions, "\n")));
    }
    return start(file, std::move(arguments), environment, options);
}

namespace {

// A child that is traced stops at every signal, and one may come before it has become the program
// (Ctrl-C, a stopped job). The stop of its exec is the tracer's own to take.
void pass_signals_to(pid_t child) {
    siginfo_t stop{};
    if (waitid(P_PID, static_cast<id_t>(child), &stop, WSTOPPED | WNOWAIT | WNOHANG | __WALL) != 0 ||
        stop.si_pid == 0 || stop.si_code != CLD_TRAPPED || stop.si_status >> 8 == PTRACE_EVENT_EXEC)
        return;
    int status = 0;
    if (waitpid(child, &status, __WALL | WNOHANG) != child || !WIFSTOPPED(status)) return;
    int signal = WSTOPSIG(status);
    if (status >> 16 != PTRACE_EVENT_STOP)
        ptrace(PTRACE_CONT, child, 0, signal);
    else
        ptrace(signal == SIGTRAP ? PTRACE_CONT : PTRACE_LISTEN, child, 0, 0);
}

}  // namespace

Result<pid_t> start(const std::string& file, std::vector<std::string> arguments,
                    const Environment& environment, const LaunchOptions& options) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);

    int told[2], ready[2];
    if (pipe2(told, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot start the program: {}", std::strerror(errno)));
    pid_t self = getpid();
    pid_t child = fork();
    if (child < 0) return fail(fmt::format("cannot start the program: {}", std::strerror(errno)));
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        // Ignored here, so that they are errors of write; exec would hand that down to the program.
        for (int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
        if (options.ends_with_us) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != self) _exit(127);  // it was too late
        }
        if (options.silent)
            for (int file = open("/dev/null", O_RDWR), to = options.keeps_input ? 1 : 0; to < 3; to++)
                dup2(file, to);
        if (options.output_to_error) dup2(2, 1);
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        char ignored;
        close(ready[1]);
        (void)!read(ready[0], &ignored, 1);  // until the other side is closed
        execv(file.c_str(), argv.data());
        int reason = errno;
        (void)!write(told[1], &reason, sizeof reason);
        _exit(127);
    }
    close(told[1]);
    close(ready[0]);
    Result<void> prepared = options.before_exec ? options.before_exec(child) : Result<void>{};
    if (!prepared) kill(child, SIGKILL);
    close(ready[1]);
    if (!prepared) {
        close(told[0]);
        waitpid(child, nullptr, __WALL);
        return unexpected(prepared.error());
    }
    constexpr int kPatience = 10;  // milliseconds
    for (pollfd answer{told[0], POLLIN, 0}; options.before_exec && poll(&answer, 1, kPatience) <= 0;)
        pass_signals_to(child);
    int reason = 0;
    ssize_t got = read(told[0], &reason, sizeof reason);
    close(told[0]);
    if (got > 0) return fail(file, "", fmt::format("cannot be started: {}", std::strerror(reason)));
    return child;
}

}  // namespace revisit::record
