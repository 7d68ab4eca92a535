// revisit-slice: C or LLVM IR in, slices out. Run by `revisit predict`; a program of its own so that
// only it loads libLLVM.
//
//   revisit-slice OPT FUNCTION SOURCE [-D/-I FLAGS…] [--unit SOURCE [FLAGS…]]… [--in-program]
//                 [-- FLAGS OF ONE VARIANT…]…
//
//   With --notes PROGRAM: instead of a slice, the program that notes what decides (instrument.cpp).
//
//   revisit-slice macros '' SOURCE FLAGS…      prints the names among the -D flags that change nothing
//
// Compiles the source once a variant (macros are the sizes), links it with the other units, and prints
// one program for each variant. clang's own messages go to standard error; exit status 2 is a source
// that does not compile, 3 one that defines several functions when none is named.
#include <fcntl.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
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

// Runs a program to its end; its exit status, or -1.
int run(Flags& arguments) {
    std::vector<char*> raw;
    for (auto& a : arguments) raw.push_back(a.data());
    raw.push_back(nullptr);
    pid_t child = -1;
    int status = 0;
    if (posix_spawnp(&child, raw[0], nullptr, nullptr, raw.data(), environ) != 0) return -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Starts the compiler; the caller waits.
Compilation compile(const std::string& clang, const Unit& unit, char level, const Flags& own,
                    const std::string& output, bool quiet = false) {
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
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (quiet) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&c.child, raw[0], &actions, nullptr, raw.data(), environ) != 0) c.child = -1;
    posix_spawn_file_actions_destroy(&actions);
    return c;
}

std::string preprocessed(const std::string& clang, const std::string& source, const Flags& flags,
                         const std::string& to) {
    Flags arguments{clang, "-E", "-P", "-w", "-o", to};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.push_back(source);
    const int status = run(arguments);
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

bool is_c(const std::string& path) {
    return ends_with(path, ".c") || ends_with(path, ".i");
}

// A source that also uses the function meant, where nothing in it does: a template, a method written in
// its class, a lambda in a variable, a static function.
std::string using_function(const std::string& source, const std::string& expression,
                           const std::string& folder) {
    char* whole = realpath(source.c_str(), nullptr);
    const auto path = folder + (is_c(source) ? "/instance.c" : "/instance.cpp");
    std::FILE* out = std::fopen(path.c_str(), "w");
    if (out) {
        std::fprintf(out, "#include \"%s\"\n", whole ? whole : source.c_str());
        std::fprintf(out,
                     is_c(source) ? "__attribute__((used)) void* const revisit_instance = (void*)%s;\n"
                                  : "[[gnu::used]] extern auto const revisit_instance = %s;\n",
                     expression.c_str());
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

// The function whose address using_function() takes; empty: none that is defined there.
std::string used_function(const std::string& path) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseIRFile(path, error, context);
    if (!module) return {};
    const auto named = [](const llvm::GlobalVariable& g) {
        return g.getName().contains("revisit_instance") && g.hasInitializer();
    };
    const auto instance = llvm::find_if(module->globals(), named);
    if (instance == module->global_end()) return {};
    const llvm::Constant* value = instance->getInitializer();
    // A pointer to a method is a number and how far to move the object.
    if (value->getType()->isStructTy()) value = value->getAggregateElement(0u);
    while (const auto* e = llvm::dyn_cast_or_null<llvm::ConstantExpr>(value)) value = e->getOperand(0);
    const auto* f = llvm::dyn_cast_or_null<llvm::Function>(value);
    return f && !f->isDeclaration() ? f->getName().str() : std::string();
}

// Who wrote the file, where that explains why it cannot be read.
std::string other_version(const std::string& path) {
    const auto file = llvm::MemoryBuffer::getFile(path);
    if (!file) return {};
    const auto text = (*file)->getBuffer();
    const auto number_after = [&](llvm::StringRef words) -> std::pair<std::string, unsigned> {
        const auto at = text.find(words);
        if (at == llvm::StringRef::npos) return {"", 0};
        const auto rest = text.substr(at + words.size());
        const auto version = rest.substr(0, rest.find_first_not_of("0123456789."));
        const bool rust = words.contains("rust");
        unsigned number = 0;
        if ((rust ? version.split('.').second : version).split('.').first.getAsInteger(10, number))
            return {"", 0};
        return {(rust                      ? "rustc "
                 : words.contains("clang") ? "clang "
                                           : "LLVM ") +
                    version.str(),
                number};
    };
    constexpr unsigned kRustNewest = 86, kRustOpaque = 70;  // the last with LLVM 19, the first with 16
    struct Writer {
        const char* words;
        unsigned newest, oldest;
    };
    for (const auto& [words, newest, oldest] :
         {Writer{"rustc version ", kRustNewest, kRustOpaque},
          Writer{"-rust-", kRustNewest, kRustOpaque}, Writer{"clang version ", LLVM_VERSION_MAJOR, 15},
          Writer{"LLVM", LLVM_VERSION_MAJOR, 15}}) {
        const auto [name, number] = number_after(words);
        if (number > newest)
            return "written by " + name + ", too new: LLVM " + std::to_string(LLVM_VERSION_MAJOR) +
                   ", rustc 1." + std::to_string(kRustNewest) + " and older write what is read here";
        if (number > 0 && number < oldest && ends_with(path, ".ll"))
            return "written by " + name + ", whose text is too old: give it as bitcode (.bc)";
    }
    return {};
}

std::unique_ptr<llvm::Module> read(const std::string& path, llvm::LLVMContext& context) {
    llvm::SMDiagnostic error;
    auto module = llvm::parseIRFile(path, error, context);
    if (module) return module;
    if (const auto why = other_version(path); !why.empty()) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return nullptr;
    }
    std::fprintf(
        stderr, "no LLVM IR that LLVM 19 reads: %s",
        error.getLineNo() > 0 ? ("line " + std::to_string(error.getLineNo()) + ": ").c_str() : "");
    std::fprintf(stderr, "%s\n", error.getMessage().str().c_str());
    return nullptr;
}

// Writes text to a file.
bool written(const std::string& path, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    out << text;
    return !error;
}

// The program that notes what decides, at `path`.
int link_notes(llvm::Module& module, const std::string& clang, const std::string& path, bool cpp) {
    const auto code = path + ".bc", notes = path + ".notes.c";
    std::error_code error;
    llvm::raw_fd_ostream out(code, error);
    if (!error) llvm::WriteBitcodeToFile(module, out);
    out.close();
    int status = 2;
    Flags arguments{clang, "-O0", "-w", "-o", path, code, notes, "-lm"};
    if (cpp) arguments.emplace_back("-lstdc++");
    if (!error && written(notes, revisit::predict::kNotes)) status = run(arguments) == 0 ? 0 : 2;
    unlink(code.c_str());
    unlink(notes.c_str());
    return status;
}

struct Task {
    char level = '1';
    std::string function;
    bool in_program = false;
    std::string notes;  // where to put the program that notes what decides; empty: slice
    std::string clang;
    bool cpp = false;
};

int slice(const std::vector<std::string>& paths, const Task& task) {
    llvm::LLVMContext context;
    auto module = read(paths.front(), context);
    if (!module) return 2;
    for (std::size_t k = 1; k < paths.size(); ++k) {
        auto other = read(paths[k], context);
        if (!other || llvm::Linker::linkModules(*module, std::move(other))) return 2;
    }
    const auto function = revisit::predict::chosen_function(*module, task.function);
    if (task.level != '0') revisit::predict::optimise(*module, function, task.level, task.in_program);
    revisit::predict::expand_overflow_checks(*module);
    if (!task.notes.empty()) {
        if (!module->getFunction("main") || module->getFunction("main")->isDeclaration()) {
            std::fprintf(stderr, "there is no main to run\n");
            return 2;
        }
        if (!revisit::predict::instrument(*module, function)) return 2;
        return link_notes(*module, task.clang, task.notes, task.cpp);
    }
    const auto program = revisit::predict::lower(*module, function);
    if (!program) {
        std::fprintf(stderr, "%s\n", program.error().message.c_str());
        return program.error().code == revisit::ErrorCode::no_function
                   ? revisit::predict::kNoFunctionChosen
                   : 2;
    }
    const auto text = revisit::predict::to_text(*program);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

// One variant: every unit compiled, at most `jobs` at once, then sliced.
class Variant {
 public:
    Variant(const std::string& clang, const std::vector<Unit>& units, char level, const Flags& own,
            const std::string& folder, std::size_t number, bool quiet = false) {
        for (std::size_t u = 0; u < units.size(); ++u) {
            if (is_intermediate(units[u].source))
                started_.push_back({units[u].source, 0});
            else
                started_.push_back(compile(
                    clang, units[u], level, own,
                    folder + "/" + std::to_string(number) + "-" + std::to_string(u) + ".bc", quiet));
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
    Task task;
    for (int i = 4; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--")
            variants.emplace_back();
        else if (word == "--in-program")
            task.in_program = true;
        else if (word == "--notes" && i + 1 < argc)
            task.notes = argv[++i];
        else if (word == "--unit" && i + 1 < argc)
            units.push_back({argv[++i], {}});
        else
            (variants.empty() ? units.back().flags : variants.back()).push_back(word);
    }
    if (variants.empty()) variants.emplace_back();
    const bool macros = std::string(argv[1]) == "macros";
    const char* override_clang = std::getenv("REVISIT_CLANG");
    const std::string clang = override_clang ? override_clang : REVISIT_CLANG_PATH;
    task.clang = clang;
    task.level = is_intermediate(source) && units.size() == 1 ? '0' : level;
    task.function = function;
    task.cpp = !is_c(source) && !is_intermediate(source);
    if (is_intermediate(source) && units.size() == 1) return macros ? 0 : slice({source}, task);

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
        if (i == 0 && compiles && !function.empty() && !is_intermediate(source) &&
            !is_fortran(source) && !defines(started[0].outputs().front(), function)) {
            for (const auto& form : {"&" + function, "&decltype(" + function + ")::operator()"}) {
                auto other = units;
                other.front().source = using_function(source, form, folder);
                // Private methods, too.
                if (!is_c(source)) other.front().flags.emplace_back("-fno-access-control");
                Variant variant(clang, other, level, variants[0], folder, variants.size(), true);
                const bool fine = variant.wait();
                const auto found = fine ? used_function(variant.outputs().front()) : std::string();
                if (!found.empty()) {
                    units = std::move(other);
                    task.function = found;
                    started[0].remove();
                    started[0] = std::move(variant);
                    break;
                }
                variant.remove();
                unlink(other.front().source.c_str());
            }
        }
        status = compiles ? slice(started[i].outputs(), task) : 2;
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
