// A prediction against a recorded run.
//
// The one check that shares nothing with the prediction but the compiler: the source is compiled to
// machine code with the recording plug-in, run, and its accesses measured by the exact engine. A main
// is written around it: integers get the request's sizes, pointers get zeroed arrays as long as the
// prediction's own run reaches, everything else is 1. The addresses of static arrays are given away, so
// that nothing is optimised away which another function might have read; arrays are moved to 64-byte
// boundaries, where the prediction puts them. main, and a function predicted in its program, are run as
// they are, with the command line given.
#include "predict/certify/verify.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/files.h"
#include "core/pattern.h"
#include "core/try.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

unexpected<Error> refuse(std::string why) {
    return fail(ErrorCode::option, "", "verification", std::move(why));
}

namespace fs = std::filesystem;

class Folder {
 public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "revisit-verify.XXXXXX").string();
        if (mkdtemp(name.data())) path_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    const fs::path& path() const { return path_; }

 private:
    fs::path path_;
};

// Reads a file into an array, with nothing of the C library's that the source might declare otherwise.
constexpr const char* kFill = R"(
static void revisit_fill(void *to, const char *path, long bytes) {
  extern int revisit_open(const char *, int, ...) __asm__("open");
  extern long revisit_read(int, void *, unsigned long) __asm__("read");
  int file = revisit_open(path, 0);
  for (long done = 0, n; done < bytes; done += n)
    if ((n = revisit_read(file, (char *)to + done, bytes - done)) <= 0) break;
}
)";

// Bytes each pointer argument is used for, by argument number.
Result<std::map<std::size_t, std::uint64_t>> array_sizes(const Program& program,
                                                         const Parameters& sizes) {
    std::map<std::size_t, std::uint64_t> reach;
    bool below = false;
    RunOptions options;
    options.keep = false;
    options.max_accesses = 4'000'000'000;
    options.sink = [&](std::span<const std::uint64_t> addresses, std::span<const std::uint32_t>,
                       std::span<const std::uint32_t> bytes) {
        for (std::size_t i = 0; i < addresses.size(); ++i)
            if (const auto place = argument_place(addresses[i])) {
                below |= place->offset < 0;
                auto& end = reach[place->pointer];
                end = std::max(end, static_cast<std::uint64_t>(place->offset) + bytes[i]);
            }
        return !below;
    };
    const auto trace = TRY(interpret(program, sizes, options));
    if (below) return fail("a pointer argument is used below where it points");
    return reach;
}

// Writes what an array holds to a file, and the statement that reads it into memory.
Result<std::string> filled(const Table& table, const std::string& array, const fs::path& folder) {
    if (table.random) return refuse("an array of random values is no input that a run could have");
    const auto path = (folder / ("data-" + table.name)).string();
    std::ofstream out(path, std::ios::binary);
    for (const auto value : table.values)
        out.write(reinterpret_cast<const char*>(&value), static_cast<std::streamsize>(table.element));
    if (!out.flush()) return fail(path, "", "cannot be written");
    return "  revisit_fill((void *)" + array + ", \"" + path + "\", " +
           std::to_string(table.values.size() * table.element) + ");\n";
}

Result<std::string> driver(const Request& request, const Program& program, const fs::path& folder) {
    Parameters sizes = request.macros;
    sizes.insert(request.parameters.begin(), request.parameters.end());
    const auto reach = TRY(array_sizes(program, sizes));
    const Function& f = program.functions.front();
    for (const Argument& a : f.arguments)
        if (a.inside) return refuse(a.name + " lies behind a pointer, which no call here sets up");
    std::string arrays, call, contents;
    std::size_t pointer = 0;
    Parameters globals = request.parameters;
    for (const Argument& a : f.arguments) {
        call += call.empty() ? "" : ", ";
        if (a.kind == Kind::pointer) {
            const auto at = reach.find(pointer++);
            auto bytes = at == reach.end() ? 64 : at->second;
            const auto name = "revisit_array_" + std::to_string(pointer);
            for (const Table& t : program.data)
                if (t.name == a.name) {
                    bytes = std::max<std::uint64_t>(bytes, t.values.size() * t.element);
                    contents += TRY(filled(t, name, folder));
                }
            arrays +=
                "char " + name + "[" + std::to_string(bytes) + "] __attribute__((aligned(64)));\n";
            call += "(void *)" + name;
        } else if (const auto value = globals.find(a.name); value != globals.end()) {
            call += std::to_string(value->second);
            globals.erase(value);
        } else {
            call += "1";
        }
    }
    std::string assignments;
    for (const auto& [name, value] : globals)
        assignments += "  " + name + " = " + std::to_string(value) + ";\n";
    for (const Global& g : program.globals)
        for (const Table& t : program.data)
            if (t.name == g.name) contents += TRY(filled(t, "&" + g.name, folder));
    // Names with a dot are no names of the file's scope: static locals, literals. Of several files this
    // one knows what it mentions.
    const auto text =
        request.source.others.empty() ? std::string() : TRY(read_file(request.source.path));
    const auto mentions = [&](const std::string& name) {
        return request.source.others.empty() || Pattern("\\b" + name + "\\b").find(text);
    };
    for (const Global& g : program.globals)
        if (!g.constant && g.name.find('.') == std::string::npos && mentions(g.name))
            assignments += "  revisit_kept = (void *)&" + g.name + ";\n";
    return "#define main revisit_main_of_the_source\n#include \"" +
           fs::absolute(request.source.path).string() +
           "\"\n#undef main\nvoid *volatile revisit_kept;\n" + arrays + kFill + "int main(void) {\n" +
           assignments + contents + "  __typeof__(&" + f.name + ") volatile called = " + f.name +
           ";\n  called(" + call + ");\n  return 0;\n}\n";
}

Result<void> must(std::vector<std::string> arguments, const std::string& what) {
    std::string out, messages;
    const auto status = TRY(run_program(std::move(arguments), out, messages));
    if (status == 0) return {};
    while (!messages.empty() && messages.back() == '\n') messages.pop_back();
    return refuse(what + " failed: " + messages.substr(0, messages.find('\n')));
}

// Arrays start where the prediction puts them. Without objcopy they lie where the compiler puts them;
// by elements that changes nothing.
void align_arrays(const std::string& object, const Program& program) {
    std::string nothing, messages;
    std::vector<std::string> align{"objcopy"};
    for (const char* section : {".bss*", ".data*", ".tbss*", ".tdata*"})
        align.insert(align.end(), {"--set-section-alignment", std::string(section) + "=64"});
    // Constants by name: sections of merged literals must stay as they are.
    for (const Global& g : program.globals)
        if (g.constant && g.size >= 64)
            align.insert(align.end(), {"--set-section-alignment", ".rodata." + g.name + "=64"});
    align.push_back(object);
    (void)run_program(std::move(align), nothing, messages);
}

}  // namespace

Result<Verification> verify(const Request& request, const Prediction& prediction) {
    if (request.source.path.ends_with(".ll") || request.source.path.ends_with(".bc"))
        return fail(ErrorCode::option, request.source.path, "verification", "needs C source");
    if (!prediction.target) return refuse("nothing was predicted");
    const auto& name = prediction.target->functions.front().name;
    const bool whole = name == "main" || request.source.in_program;
    if (!whole && is_cpp(request.source.path))
        return fail(ErrorCode::option, request.source.path, "verification",
                    "needs C source, or the whole program in C++");
    if (request.record)
        return refuse("needs sizes and arrays as parameters and data, not recorded from a run");
    std::error_code ignored;
    const auto self = fs::read_symlink("/proc/self/exe", ignored);
    fs::path compiler;
    for (const auto& place :
         {self.parent_path() / "revisit-clang", self.parent_path() / "../bin/revisit-clang"})
        if (access(place.c_str(), X_OK) == 0) compiler = place;
    if (const char* given = std::getenv("REVISIT_COMPILER")) compiler = given;
    fs::path program = self;
    if (const char* given = std::getenv("REVISIT_VERIFY_PROGRAM")) program = given;
    if (compiler.empty())
        return refuse("revisit-clang is not beside this program (built without clang 19)");
    Folder folder;
    if (folder.path().empty()) return refuse("cannot make a temporary folder");
    const auto at = [&](const char* name) { return (folder.path() / name).string(); };
    std::vector<Unit> units{{request.source.path, request.source.flags}};
    if (!whole) {
        const auto text = TRY(driver(request, *prediction.target, folder.path()));
        std::ofstream(at("driver.c")) << text;
        units.front().path = at("driver.c");
    }
    units.insert(units.end(), request.source.others.begin(), request.source.others.end());
    std::vector<std::string> link{compiler.string()};
    for (std::size_t k = 0; k < units.size(); ++k) {
        // As the slicer compiles: at level 1 loops stay as they are.
        std::vector<std::string> compile{compiler.string(), "-O" + request.source.level()};
        if (request.source.optimise == 1)
            for (const char* flag : {"-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize",
                                     "-mllvm", "-disable-loop-idiom-all"})
                compile.emplace_back(flag);
        if (whole) compile.insert(compile.end(), {"-mllvm", "-force-attribute=" + name + ":noinline"});
        const auto object = at(("unit" + std::to_string(k) + ".o").c_str());
        compile.insert(compile.end(), {"-fdata-sections", "-w", "-c", "-o", object});
        compile.insert(compile.end(), units[k].flags.begin(), units[k].flags.end());
        for (const auto& [macro, value] : request.macros)
            compile.push_back("-D" + macro + "=" + std::to_string(value));
        compile.push_back("-I" + fs::absolute(request.source.path).parent_path().string());
        compile.push_back(units[k].path);
        TRY(must(std::move(compile), "compiling"));
        align_arrays(object, *prediction.target);
        link.push_back(object);
    }
    if (std::any_of(units.begin(), units.end(), [](const Unit& u) { return is_cpp(u.path); }))
        link.emplace_back("-lstdc++");
    link.insert(link.end(), {"-lm", "-o", at("driver")});
    TRY(must(std::move(link), "linking"));
    std::vector<std::string> run{program.string(),
                                 "profile",
                                 "--via",
                                 "clang",
                                 "--method",
                                 "exact",
                                 "--function",
                                 name,
                                 "--granularity",
                                 std::to_string(request.granularity),
                                 "--bins",
                                 request.bins.spec(),
                                 "--quiet",
                                 "-o",
                                 at("measured.json"),
                                 "--",
                                 at("driver")};
    run.insert(run.end(), request.argv.begin(), request.argv.end());
    auto ran = must(std::move(run), "the recorded run");
    // A whole program may end with a status of its own.
    if (!ran && !(whole && fs::exists(at("measured.json")))) return unexpected(ran.error());
    auto measured = TRY(load_profile(at("measured.json")));
    Verification v;
    v.equal =
        measured.accesses == prediction.profile.accesses && measured.reuse == prediction.profile.reuse;
    v.accuracy = accuracy(measured.reuse, prediction.profile.reuse);
    v.measured = std::move(measured);
    return v;
}

}  // namespace revisit::predict
