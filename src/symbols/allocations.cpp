// What the text of a line says about the type it allocates: see types.h.
#include <algorithm>

#include "core/pattern.h"
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
    static const Pattern kNew(
        R"(\bnew\s+(\([^)]*\)\s*)?(struct\s+|class\s+)?([A-Za-z_][A-Za-z0-9_:]*))");
    static const Pattern kSizeofType(
        R"(\bsizeof\s*\(\s*(const\s+)?(struct\s+|union\s+)?([A-Za-z_]\w*)\s*\))");
    static const Pattern kSizeofPointee(
        R"(\bsizeof\s*\(?\s*(\*\s*\(?\s*([A-Za-z_]\w*\s*(->|\.)\s*)*([A-Za-z_]\w*)|([A-Za-z_]\w*\s*(->|\.)\s*)*([A-Za-z_]\w*)\s*\[\s*0\s*\]))");
    static const Pattern kCast(R"(\(\s*(struct\s+|union\s+)?([A-Za-z_]\w*)\s*\*\s*\)\s*\w*alloc)");
    static const Pattern kTemplate(R"(<\s*(struct\s+)?([A-Za-z_][A-Za-z0-9_:]*)\s*(\[\s*\])?\s*>)");
    static const Pattern kAssigned(R"(([A-Za-z_]\w*)\s*(\[[^]]*\])?\s*=[^=])");
    if (auto found = kNew.find(text)) add(found->group(3), true);
    if (auto found = kSizeofType.find(text)) {
        add(found->group(3), true);
        add(found->group(3), false);  // sizeof(p[0]) is below; sizeof(x) may name a variable
    }
    if (auto found = kSizeofPointee.find(text))
        add(found->group(4).empty() ? found->group(7) : found->group(4), false);
    if (auto found = kCast.find(text)) add(found->group(2), true);
    if (auto found = kTemplate.find(text)) add(found->group(2), true);
    if (auto found = kAssigned.find(text)) add(found->group(1), false);
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
