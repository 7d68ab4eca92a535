#include "report/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "report/words.h"

namespace revisit {
namespace {

// What the linker and the language bring along; by the file's name, wherever it lies.
constexpr std::array kRuntimes = {
    "libc.so",     "libc-2.",     "libm.so",     "libm-2.",    "libpthread", "ld-linux", "ld-musl",
    "ld-2.",       "libstdc++",   "libc++",      "libgcc_s",   "libgomp",    "libomp",   "libiomp",
    "libjemalloc", "libtcmalloc", "libmimalloc", "linux-vdso", "[vdso]",     "libasan",  "libtsan"};

// In programs linked statically they have no file of their own.
constexpr std::array kStarters = {"_start",       "__libc_start", "_dl_",   "call_main",
                                  "start_thread", "__clone",      "clone3", "clone"};
constexpr std::array kCopiers = {"memcpy", "memmove",    "memset",  "memcmp", "memchr",  "mempcpy",
                                 "strlen", "strcpy",     "strcmp",  "strchr", "strncpy", "strncmp",
                                 "strcat", "bcopy",      "bzero",   "malloc", "calloc",  "realloc",
                                 "free",   "int_malloc", "int_free"};

// memcpy, __memcpy_avx_unaligned_erms, memcpy@plt
bool is_copier(std::string_view function) {
    function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
    return std::ranges::any_of(kCopiers, [&](std::string_view name) {
        if (!function.starts_with(name)) return false;
        std::string_view rest = function.substr(name.size());
        return rest.empty() || rest[0] == '@' || rest.starts_with("_avx") || rest.starts_with("_sse") ||
               rest.starts_with("_evex") || rest.starts_with("_generic") ||
               rest.starts_with("_advsimd") || rest.starts_with("_sve") || rest.starts_with("_erms") ||
               rest.starts_with("_chk") || rest.starts_with("_unaligned");
    });
}

// The outermost of what a site was inlined into is where its call path goes on.
std::vector<PathFrame> frames_of(const Site& site) {
    std::vector<PathFrame> out;
    for (const Frame& outer : site.inlined | std::views::reverse)
        out.push_back({site.module, site.offset, outer});
    out.push_back({site.module, site.offset, site.frame});
    return out;
}

PathFrame frame_of(const Context& context) {
    return {context.module, context.offset, context.frame};
}

bool same_function(const PathFrame& a, const PathFrame& b) {
    return !a.frame.function.empty() && a.frame.function == b.frame.function && a.module == b.module;
}

}  // namespace

SiteIndex::SiteIndex(const Profile& profile) {
    sites_.reserve(profile.sites.size());
    for (const Site& site : profile.sites) sites_.emplace(site.id, &site);
}

const Site* SiteIndex::find(std::uint32_t id) const {
    auto found = sites_.find(id);
    return found == sites_.end() ? nullptr : found->second;
}

bool starts_program_or_thread(std::string_view function) {
    return std::ranges::any_of(kStarters, [&](std::string_view name) {
        bool is_prefix = name.starts_with("__libc") || name == "_dl_";
        return is_prefix ? function.starts_with(name) : function == name;
    });
}

std::vector<std::uint32_t> call_path(const Profile& profile, std::uint32_t context) {
    std::vector<std::uint32_t> path;
    for (; context != 0 && context < profile.contexts.size() && path.size() <= profile.contexts.size();
         context = profile.contexts[context].parent)
        path.push_back(context);
    std::ranges::reverse(path);
    return path;
}

std::string frame_name(const PathFrame& frame) {
    if (!frame.frame.function.empty()) return frame.frame.function;
    if (frame.module.empty()) return "?";
    return fmt::format("{}+{:#x}", last_part(frame.module), frame.offset);
}

std::string frame_place(const PathFrame& frame) {
    if (frame.frame.file.empty()) return frame_name(frame);
    return fmt::format("{} ({}:{})", frame_name(frame), last_part(frame.frame.file), frame.frame.line);
}

std::string place_text(const PathFrame& frame) {
    if (frame.frame.file.empty()) return frame_name(frame);
    return fmt::format("{}:{} {}", last_part(frame.frame.file), frame.frame.line, frame.frame.function);
}

bool is_own_code(const PathFrame& at) {
    const std::string module = last_part(at.module);
    if (std::ranges::any_of(kRuntimes, [&](const char* name) { return module.starts_with(name); }))
        return false;
    if (at.frame.file.starts_with("/usr/include/") || at.frame.file.starts_with("/usr/lib/"))
        return false;
    return !starts_program_or_thread(at.frame.function) && !is_copier(at.frame.function);
}

Meeting meeting_of(const Profile& profile, const Pair& pair, const Site* use, const Site* reuse) {
    Meeting out;
    const std::vector<std::uint32_t> use_path = call_path(profile, pair.use_context),
                                     reuse_path = call_path(profile, pair.reuse_context);
    while (out.shared < use_path.size() && out.shared < reuse_path.size() &&
           use_path[out.shared] == reuse_path[out.shared])
        out.shared++;
    // Below the shared calls: the next call of each side, or the site with what it was inlined into.
    auto rest_of = [&](const std::vector<std::uint32_t>& path, const Site* site) {
        std::vector<PathFrame> rest;
        for (std::size_t i = out.shared; i < path.size(); i++)
            rest.push_back(frame_of(profile.contexts[path[i]]));
        if (site)
            for (PathFrame& frame : frames_of(*site)) rest.push_back(std::move(frame));
        return rest;
    };
    const std::vector<PathFrame> to_use = rest_of(use_path, use), to_reuse = rest_of(reuse_path, reuse);
    for (std::size_t i = 0; i < std::min(to_use.size(), to_reuse.size()); i++) {
        if (!same_function(to_use[i], to_reuse[i])) break;
        if (is_own_code(to_reuse[i])) out.at = to_reuse[i];
        if (to_use[i].frame != to_reuse[i].frame) break;  // different lines: here they part
    }
    for (std::size_t i = out.shared; !out.at && i-- > 0;) {
        PathFrame frame = frame_of(profile.contexts[use_path[i]]);
        if (is_own_code(frame)) out.at = std::move(frame);
    }
    return out;
}

PathFrame own_place(const Profile& profile, const Site& site, std::uint32_t context) {
    std::vector<PathFrame> here = frames_of(site);
    for (PathFrame& frame : here | std::views::reverse)
        if (is_own_code(frame)) return std::move(frame);
    for (std::uint32_t at : call_path(profile, context) | std::views::reverse)
        if (PathFrame frame = frame_of(profile.contexts[at]); is_own_code(frame)) return frame;
    return {site.module, site.offset, site.frame};
}

}  // namespace revisit
