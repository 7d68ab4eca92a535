// What the text of a line says about the type it allocates: see types.h.
#include <algorithm>
#include <regex>

#include "symbols/types.h"

namespace revisit {

std::vector<AllocatedName> allocated_names(const std::string& text) {
    std::vector<AllocatedName> out;
    auto add = [&](std::string name, bool is_type) {
        static constexpr std::string_view kNoNames[] = {"char", "int",    "long",   "short", "float",
                                                        "void", "double", "size_t", "const"};
        if (!name.empty() && std::ranges::find(kNoNames, name) == std::end(kNoNames) &&
            std::ranges::find(out, AllocatedName{name, is_type}) == out.end())
            out.push_back({std::move(name), is_type});
    };
    static const std::regex kNew(
        R"(\bnew\s+(?:\([^)]*\)\s*)?(?:struct\s+|class\s+)?([A-Za-z_][\w:]*))");
    static const std::regex kSizeofType(
        R"(\bsizeof\s*\(\s*(?:const\s+)?(?:struct\s+|union\s+)?([A-Za-z_]\w*)\s*\))");
    static const std::regex kSizeofPointee(
        R"(\bsizeof\s*\(?\s*(?:\*\s*\(?\s*(?:[A-Za-z_]\w*\s*(?:->|\.)\s*)*([A-Za-z_]\w*)|(?:[A-Za-z_]\w*\s*(?:->|\.)\s*)*([A-Za-z_]\w*)\s*\[\s*0\s*\]))");
    static const std::regex kCast(R"(\(\s*(?:struct\s+|union\s+)?([A-Za-z_]\w*)\s*\*\s*\)\s*\w*alloc)");
    static const std::regex kTemplate(R"(<\s*(?:struct\s+)?([A-Za-z_][\w:]*)\s*(?:\[\s*\])?\s*>)");
    static const std::regex kAssigned(R"(([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*=[^=])");
    std::smatch found;
    if (std::regex_search(text, found, kNew)) add(found[1], true);
    if (std::regex_search(text, found, kSizeofType)) {
        add(found[1], true);
        add(found[1], false);  // sizeof(p[0]) is below; sizeof(x) may name a variable
    }
    if (std::regex_search(text, found, kSizeofPointee))
        add(found[1].matched ? found[1] : found[2], false);
    if (std::regex_search(text, found, kCast)) add(found[1], true);
    if (std::regex_search(text, found, kTemplate)) add(found[1], true);
    if (std::regex_search(text, found, kAssigned)) add(found[1], false);
    return out;
}

std::string allocator_type(const std::string& function) {
    static constexpr std::string_view kName = "allocator<";
    const std::size_t at = function.find(kName);
    if (at == std::string::npos) return {};
    std::size_t depth = 1, end = at + kName.size();
    for (; end < function.size() && depth > 0; end++)
        depth += function[end] == '<' ? 1u : function[end] == '>' ? ~std::size_t{0} : 0u;
    if (depth != 0) return {};
    std::string name = function.substr(at + kName.size(), end - 1 - at - kName.size());
    // A list's or map's node holds the value; its own layout is the library's.
    while (!name.empty() && (name.back() == ' ' || name.back() == '*')) {
        if (name.back() == '*') return {};
        name.pop_back();
    }
    return name;
}

}  // namespace revisit
