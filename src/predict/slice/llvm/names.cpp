// Which function a name means.
//
// C++ functions have mangled names; people write gemm<float>, ns::gemm or scale. A name is compared, in
// this order, with the mangled one, the whole signature, the name with its namespaces, the name alone
// and the name without template arguments; the first of these that fits one function or more decides.
// Last comes the name that debug information has. That is how Fortran's mm is found, which is mm_ to
// the linker; procedures of modules are _QMmodulePname, and go by module::name too.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <vector>

#include "predict/slice/llvm/lower.h"

namespace revisit::predict {
namespace {

std::string without_spaces(std::string text) {
    std::erase(text, ' ');
    return text;
}

bool opens(char c) {
    return c == '<' || c == '(' || c == '{' || c == '[';
}
bool closes(char c) {
    return c == '>' || c == ')' || c == '}' || c == ']';
}

// "void a::gemm<float>(float*, int) const" is a::gemm<float>.
std::string qualified(std::string name) {
    if (name.ends_with(" const")) name.resize(name.size() - 6);
    if (!name.empty() && name.back() == ')') {
        int depth = 0;
        auto at = name.size();
        while (at > 0) {
            --at;
            depth += closes(name[at]) - opens(name[at]);
            if (depth == 0) break;
        }
        name.resize(at);
    }
    // What is before the last space outside of brackets is what it returns.
    int depth = 0;
    for (auto at = name.size(); at > 0; --at) {
        const char c = name[at - 1];
        if (c == '>' && at > 1 && name[at - 2] == '-') continue;
        depth += closes(c) - opens(c);
        if (depth == 0 && c == ' ') return name.substr(at);
    }
    return name;
}

// Without namespaces and classes.
std::string last_part(const std::string& name) {
    int depth = 0;
    for (auto at = name.size(); at > 1; --at) {
        const char c = name[at - 1];
        depth += closes(c) - opens(c);
        if (depth == 0 && c == ':' && name[at - 2] == ':') return name.substr(at);
    }
    return name;
}

// flang's names: after _Q a capital says what follows (module, host procedure, procedure), in small
// letters.
std::string demangled(const std::string& mangled) {
    if (!mangled.starts_with("_Q")) return llvm::demangle(mangled);
    std::string name;
    for (const char c : mangled.substr(2)) {
        const bool part = c >= 'A' && c <= 'Z';
        if (!part)
            name += c;
        else if (!name.empty())
            name += "::";
    }
    return name;
}

}  // namespace

std::string readable_name(const std::string& mangled) {
    return qualified(demangled(mangled));
}

std::vector<std::string> functions_named(const llvm::Module& module, const std::string& given) {
    const auto wanted = without_spaces(given);
    std::vector<std::vector<std::string>> fits(5);
    for (const auto& f : module) {
        if (f.isDeclaration()) continue;
        const auto mangled = f.getName().str();
        if (mangled == given) return {mangled};
        const auto signature = demangled(mangled);
        const auto name = qualified(signature), part = last_part(name);
        const auto plain = part.substr(0, part.find('<'));
        const auto* debug = f.getSubprogram();
        const std::string forms[] = {signature, name, part, plain, debug ? debug->getName().str() : ""};
        for (std::size_t k = 0; k < std::size(forms); ++k)
            if (without_spaces(forms[k]) == wanted) {
                fits[k].push_back(mangled);
                break;
            }
    }
    for (auto& some : fits)
        if (!some.empty()) return std::move(some);
    return {};
}

std::string chosen_function(const llvm::Module& module, const std::string& given) {
    if (!given.empty()) {
        const auto named = functions_named(module, given);
        return named.size() == 1 ? named.front() : given;
    }
    // Helpers that are local to their file are not meant, where there is another function.
    std::vector<std::string> all, callable;
    for (const auto& f : module) {
        if (f.isDeclaration() || f.getName() == "main") continue;
        // Of C++, what headers bring along is not what is meant.
        if (f.hasLinkOnceLinkage() || f.getName().starts_with("_GLOBAL__sub_I_") ||
            f.getName().starts_with("__cxx_global"))
            continue;
        all.push_back(f.getName().str());
        if (!f.hasLocalLinkage()) callable.push_back(all.back());
    }
    const auto& meant = callable.empty() ? all : callable;
    return meant.size() == 1 ? meant.front() : std::string();
}

}  // namespace revisit::predict
