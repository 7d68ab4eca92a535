// revisit-slice: C or LLVM IR in, slices out. Run by `revisit predict`; a program of its own so that
// only it loads libLLVM.
//
//   revisit-slice OPT FUNCTION SOURCE [COMMON -D/-I FLAGS…] [-- FLAGS OF ONE VARIANT…]…
//
//   revisit-slice macros '' SOURCE FLAGS…      prints the names among the -D flags that change nothing
//
// Compiles the source once a variant (macros are the sizes) and prints one program for each. clang's
// own messages go to standard error; exit status 2 is a source that does not compile.
#include <fcntl.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "predict/slice/llvm/lower.h"

extern char** environ;

namespace {

using Flags = std::vector<std::string>;

bool ends_with(const std::string& text, const char* end) {
    return llvm::StringRef(text).ends_with(end);
}

struct Compilation {
    std::string output;
    pid_t child = -1;
};

// Starts clang; the caller waits.
Compilation compile(const std::string& clang, const std::string& source, char level,
                    const Flags& common, const Flags& own, const std::string& folder,
                    std::size_t number) {
    Compilation c{folder + "/" + std::to_string(number) + ".bc", -1};
    Flags arguments{clang, "-g", "-fno-discard-value-names", "-emit-llvm", "-c", "-o", c.output, "-w"};
    arguments.push_back(std::string("-O") + level);
    if (level != '0') arguments.insert(arguments.end(), {"-Xclang", "-disable-llvm-passes"});
    arguments.insert(arguments.end(), common.begin(), common.end());
    arguments.insert(arguments.end(), own.begin(), own.end());
    arguments.push_back(source);
    std::vector<char*> raw;
    for (auto& a : arguments) raw.push_back(a.data());
    raw.push_back(nullptr);
    if (posix_spawnp(&c.child, raw[0], nullptr, nullptr, raw.data(), environ) != 0) c.child = -1;
    return c;
}

std::string preprocessed(const std::string& clang, const std::string& source, const Flags& flags,
                         const std::string& to) {
    Flags arguments{clang, "-E", "-P", "-w", "-o", to};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.push_back(source);
    std::vector<char*> raw;
    for (auto& a : arguments) raw.push_back(a.data());
    raw.push_back(nullptr);
    pid_t child = -1;
    int status = 0;
    if (posix_spawnp(&child, raw[0], nullptr, nullptr, raw.data(), environ) != 0) return {};
    waitpid(child, &status, 0);
    const auto text = llvm::MemoryBuffer::getFile(to);
    unlink(to.c_str());
    return text && status == 0 ? (*text)->getBuffer().str() : std::string();
}

// Names of macros without which the source stays the same. A macro that is expanded shows in the text
// as a word that nothing else is; for the others the text with and without them shows it.
int print_unused_macros(const std::string& clang, const std::string& source, const Flags& flags,
                        const std::string& folder) {
    const auto to = folder + "/text.i";
    Flags marked;
    for (std::size_t k = 0; k < flags.size(); ++k)
        marked.push_back(ends_with(flags[k].substr(0, 2), "-D")
                             ? flags[k].substr(0, flags[k].find('=')) + "=revisit_macro_" +
                                   std::to_string(k) + "_"
                             : flags[k]);
    const auto words = preprocessed(clang, source, marked, to);
    std::string whole;
    for (std::size_t k = 0; k < flags.size(); ++k) {
        if (marked[k] == flags[k]) continue;
        if (words.find("revisit_macro_" + std::to_string(k) + "_") != std::string::npos) continue;
        if (whole.empty()) whole = preprocessed(clang, source, flags, to);
        auto others = flags;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
        if (!whole.empty() && preprocessed(clang, source, others, to) == whole)
            std::printf("%s\n", flags[k].substr(2, flags[k].find('=') - 2).c_str());
    }
    return 0;
}

// A source that also instantiates the template meant, where it does not itself.
std::string instantiating(const std::string& source, const std::string& function,
                          const std::string& folder) {
    char* whole = realpath(source.c_str(), nullptr);
    const auto path = folder + "/instance.cpp";
    std::FILE* out = std::fopen(path.c_str(), "w");
    if (out) {
        std::fprintf(out, "#include \"%s\"\n[[gnu::used]] static auto* const revisit_instance = &%s;\n",
                     whole ? whole : source.c_str(), function.c_str());
        std::fclose(out);
    }
    std::free(whole);
    return path;
}

// Whether the module defines a function of that name; also where it cannot be read, which slice() says.
bool defines(const std::string& path, const std::string& function) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseIRFile(path, error, context);
    return !module || !revisit::predict::functions_named(*module, function).empty();
}

int slice(const std::string& path, char level, const std::string& given) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    auto module = llvm::parseIRFile(path, error, context);
    if (!module) {
        std::fprintf(
            stderr, "no LLVM IR that LLVM 19 reads: %s",
            error.getLineNo() > 0 ? ("line " + std::to_string(error.getLineNo()) + ": ").c_str() : "");
        std::fprintf(stderr, "%s\n", error.getMessage().str().c_str());
        return 2;
    }
    const auto function = revisit::predict::chosen_function(*module, given);
    if (level != '0') revisit::predict::optimise(*module, function, level);
    const auto program = revisit::predict::lower(*module, function);
    if (!program) {
        std::fprintf(stderr, "%s\n", program.error().message.c_str());
        return 2;
    }
    const auto text = revisit::predict::to_text(*program);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const char level = argv[1][0];
    const std::string function = argv[2], source = argv[3];
    Flags common;
    std::vector<Flags> variants;
    for (int i = 4; i < argc; ++i) {
        if (std::string(argv[i]) == "--")
            variants.emplace_back();
        else
            (variants.empty() ? common : variants.back()).push_back(argv[i]);
    }
    if (variants.empty()) variants.emplace_back();
    if (ends_with(source, ".ll") || ends_with(source, ".bc"))
        return std::string(argv[1]) == "macros" ? 0 : slice(source, '0', function);

    const char* override_clang = std::getenv("REVISIT_CLANG");
    const std::string clang = override_clang ? override_clang : REVISIT_CLANG_PATH;
    std::string folder = (std::getenv("TMPDIR") ? std::string(std::getenv("TMPDIR")) : "/tmp") +
                         "/revisit-predict.XXXXXX";
    if (!mkdtemp(folder.data())) {
        std::fprintf(stderr, "cannot make a temporary folder %s\n", folder.c_str());
        return 2;
    }
    if (std::string(argv[1]) == "macros") {
        const int done = print_unused_macros(clang, source, common, folder);
        rmdir(folder.c_str());
        return done;
    }
    std::string compiled = source;  // or a file around it
    int status = 0;
    const std::size_t jobs = std::max(1L, std::min(8L, sysconf(_SC_NPROCESSORS_ONLN)));
    std::vector<Compilation> started;
    for (std::size_t i = 0; i < variants.size(); ++i) {
        // The first alone: a source that does not compile says so once.
        while (started.size() < variants.size() && started.size() < (i == 0 ? 1 : i + jobs))
            started.push_back(compile(clang, compiled, level, common, variants[started.size()], folder,
                                      started.size()));
        int result = 0;
        const bool ran =
            started[i].child > 0 && waitpid(started[i].child, &result, 0) == started[i].child;
        if (started[i].child < 0) std::fprintf(stderr, "cannot run %s\n", clang.c_str());
        if (i == 0 && ran && result == 0 && function.find('<') != std::string::npos &&
            !defines(started[0].output, function)) {
            compiled = instantiating(source, function, folder);
            started[0] = compile(clang, compiled, level, common, variants[0], folder, 0);
            if (started[0].child > 0) waitpid(started[0].child, &result, 0);
        }
        if (status == 0)
            status = ran && WIFEXITED(result) && WEXITSTATUS(result) == 0
                         ? slice(started[i].output, level, function)
                         : 2;
        unlink(started[i].output.c_str());
        if (status != 0) {
            for (std::size_t k = i + 1; k < started.size(); ++k) {
                waitpid(started[k].child, &result, 0);
                unlink(started[k].output.c_str());
            }
            break;
        }
    }
    if (compiled != source) unlink(compiled.c_str());
    rmdir(folder.c_str());
    return status;
}
