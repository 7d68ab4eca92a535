// revisit-slice: C or LLVM IR in, slices out. Run by `revisit predict`; a program of its own so that
// only it loads libLLVM.
//
//   revisit-slice OPT FUNCTION SOURCE [-D/-I FLAGS…] [--unit SOURCE [FLAGS…]]… [--in-program]
//                 [-- FLAGS OF ONE VARIANT…]…
//
//   revisit-slice macros '' SOURCE FLAGS…      prints the names among the -D flags that change nothing
//
// Compiles the source once a variant (macros are the sizes), links it with the other units, and prints
// one program for each variant. clang's own messages go to standard error; exit status 2 is a source
// that does not compile.
#include <fcntl.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
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

// One file with its flags.
struct Unit {
    std::string source;
    Flags flags;
};

bool is_intermediate(const std::string& path) {
    return ends_with(path, ".ll") || ends_with(path, ".bc");
}

bool is_fortran(const std::string& path) {
    for (const char* end : {".f", ".f90", ".F90", ".f95", ".f03", ".f08"})
        if (ends_with(path, end)) return true;
    return false;
}

// Starts the compiler; the caller waits.
Compilation compile(const std::string& clang, const Unit& unit, char level, const Flags& own,
                    const std::string& output) {
    Compilation c{output, -1};
    Flags arguments{clang, "-g", "-emit-llvm", "-c", "-o", c.output, "-w"};
    if (is_fortran(unit.source)) {
        const char* flang = std::getenv("REVISIT_FLANG");
        arguments[0] = flang ? flang : "flang-new-19";
        arguments.pop_back();
        // Loops as they are written: flang's own passes are clang's, and run here.
        arguments.push_back("-O0");
    } else {
        arguments.insert(arguments.end(), {"-fno-discard-value-names", std::string("-O") + level});
        if (level != '0') arguments.insert(arguments.end(), {"-Xclang", "-disable-llvm-passes"});
        // What a vector holds is known from its whole type only.
        if (!ends_with(unit.source, ".c") && !ends_with(unit.source, ".i"))
            arguments.emplace_back("-fstandalone-debug");
    }
    arguments.insert(arguments.end(), unit.flags.begin(), unit.flags.end());
    arguments.insert(arguments.end(), own.begin(), own.end());
    arguments.push_back(unit.source);
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

std::unique_ptr<llvm::Module> read(const std::string& path, llvm::LLVMContext& context) {
    llvm::SMDiagnostic error;
    auto module = llvm::parseIRFile(path, error, context);
    if (module) return module;
    std::fprintf(
        stderr, "no LLVM IR that LLVM 19 reads: %s",
        error.getLineNo() > 0 ? ("line " + std::to_string(error.getLineNo()) + ": ").c_str() : "");
    std::fprintf(stderr, "%s\n", error.getMessage().str().c_str());
    return nullptr;
}

int slice(const std::vector<std::string>& paths, char level, const std::string& given,
          bool in_program) {
    llvm::LLVMContext context;
    auto module = read(paths.front(), context);
    if (!module) return 2;
    for (std::size_t k = 1; k < paths.size(); ++k) {
        auto other = read(paths[k], context);
        if (!other || llvm::Linker::linkModules(*module, std::move(other))) return 2;
    }
    const auto function = revisit::predict::chosen_function(*module, given);
    if (level != '0') revisit::predict::optimise(*module, function, level, in_program);
    const auto program = revisit::predict::lower(*module, function);
    if (!program) {
        std::fprintf(stderr, "%s\n", program.error().message.c_str());
        return 2;
    }
    const auto text = revisit::predict::to_text(*program);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

// One variant: every unit compiled, at most `jobs` at once, then sliced.
class Variant {
 public:
    Variant(const std::string& clang, const std::vector<Unit>& units, char level, const Flags& own,
            const std::string& folder, std::size_t number) {
        for (std::size_t u = 0; u < units.size(); ++u) {
            if (is_intermediate(units[u].source))
                started_.push_back({units[u].source, 0});
            else
                started_.push_back(
                    compile(clang, units[u], level, own,
                            folder + "/" + std::to_string(number) + "-" + std::to_string(u) + ".bc"));
            if (started_.back().child < 0)
                std::fprintf(stderr, "cannot run the compiler of %s\n", units[u].source.c_str());
        }
    }

    // Whether all of them compile.
    bool wait() {
        bool fine = true;
        for (Compilation& c : started_) {
            int result = 0;
            if (c.child > 0)
                fine &= waitpid(c.child, &result, 0) == c.child && WIFEXITED(result) &&
                        WEXITSTATUS(result) == 0;
            fine &= c.child >= 0;
        }
        return fine;
    }

    std::vector<std::string> outputs() const {
        std::vector<std::string> paths;
        for (const Compilation& c : started_) paths.push_back(c.output);
        return paths;
    }

    void remove() const {
        for (const Compilation& c : started_)
            if (c.child != 0) unlink(c.output.c_str());
    }

 private:
    std::vector<Compilation> started_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const char level = argv[1][0];
    const std::string function = argv[2], source = argv[3];
    std::vector<Unit> units{{source, {}}};
    std::vector<Flags> variants;
    bool in_program = false;
    for (int i = 4; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--")
            variants.emplace_back();
        else if (word == "--in-program")
            in_program = true;
        else if (word == "--unit" && i + 1 < argc)
            units.push_back({argv[++i], {}});
        else
            (variants.empty() ? units.back().flags : variants.back()).push_back(word);
    }
    if (variants.empty()) variants.emplace_back();
    const bool macros = std::string(argv[1]) == "macros";
    if (is_intermediate(source) && units.size() == 1)
        return macros ? 0 : slice({source}, '0', function, false);

    const char* override_clang = std::getenv("REVISIT_CLANG");
    const std::string clang = override_clang ? override_clang : REVISIT_CLANG_PATH;
    std::string folder = (std::getenv("TMPDIR") ? std::string(std::getenv("TMPDIR")) : "/tmp") +
                         "/revisit-predict.XXXXXX";
    if (!mkdtemp(folder.data())) {
        std::fprintf(stderr, "cannot make a temporary folder %s\n", folder.c_str());
        return 2;
    }
    if (macros) {
        const int done =
            is_fortran(source) ? 0 : print_unused_macros(clang, source, units.front().flags, folder);
        rmdir(folder.c_str());
        return done;
    }
    const std::size_t jobs =
        static_cast<std::size_t>(std::max(1L, std::min(8L, sysconf(_SC_NPROCESSORS_ONLN))));
    std::vector<Variant> started;
    const auto start = [&] {
        const auto number = started.size();
        started.emplace_back(clang, units, level, variants[number], folder, number);
    };
    int status = 0;
    for (std::size_t i = 0; i < variants.size() && status == 0; ++i) {
        // The first alone: a source that does not compile says so once.
        while (started.size() < variants.size() && started.size() < (i == 0 ? 1 : i + jobs)) start();
        bool compiles = started[i].wait();
        if (i == 0 && compiles && function.find('<') != std::string::npos &&
            !defines(started[0].outputs().front(), function)) {
            units.front().source = instantiating(source, function, folder);
            started.clear();
            start();
            compiles = started[0].wait();
        }
        status = compiles ? slice(started[i].outputs(), level, function, in_program) : 2;
        started[i].remove();
        for (std::size_t k = i + 1; k < started.size() && status != 0; ++k) {
            started[k].wait();
            started[k].remove();
        }
    }
    if (units.front().source != source) unlink(units.front().source.c_str());
    rmdir(folder.c_str());
    return status;
}
