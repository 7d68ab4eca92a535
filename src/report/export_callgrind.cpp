// Callgrind's text format, as KCachegrind reads it: self costs by line, inclusive costs by call.
//
// Costs are whole numbers, one an event: accesses, first touches, misses in each cache. The path of a
// sample is a list of calls; each adds the sample's cost to "function X, at this line, calls Y", where
// Y is the function of the next call or of the site. A function that calls itself further up the path
// counts once a call, as callgrind has it too.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "report/exports.h"
#include "report/paths.h"

namespace revisit {
namespace {

using Costs = std::vector<double>;

void add(Costs& to, const Costs& what) {
    to.resize(what.size());
    for (std::size_t i = 0; i < what.size(); ++i) to[i] += what[i];
}

struct Function {
    std::string module, file, name;
    auto operator<=>(const Function&) const = default;
};

struct Record {
    std::map<std::uint32_t, Costs> lines;
    std::map<std::tuple<std::uint32_t, Function>, Costs> calls;
};

// One line a name: a newline in one would start another record.
std::string clean(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return text.empty() ? "???" : text;
}

std::string numbers(const Costs& costs) {
    std::string out;
    for (double cost : costs) out += fmt::format(" {}", std::llround(std::max(0.0, cost)));
    return out;
}

// A cost line names an event, which is one word.
std::string event_name(const std::string& cache) {
    std::string out;
    for (char c : cache)
        out += (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ? c : '_';
    return out + "_misses";
}

Function function_of(const std::string& module, std::uint64_t offset, const Frame& frame) {
    std::string name = frame.function;
    if (name.empty() && !module.empty()) name = fmt::format("{}+{:#x}", module, offset);
    return {clean(module), clean(frame.file), clean(name)};
}

}  // namespace

Result<std::string> export_callgrind(const Profile& profile, const ExportOptions& options) {
    std::map<Function, Record> records;
    Costs total(2 + options.caches.size());
    for (const StackSample& sample : stack_samples(profile, options.caches)) {
        Costs costs = {sample.accesses, sample.cold};
        costs.insert(costs.end(), sample.misses.begin(), sample.misses.end());
        const Site& site = *sample.site;
        Function leaf = function_of(site.module, site.offset, site.frame);
        add(records[leaf].lines[site.frame.line], costs);
        add(total, costs);
        auto function_at = [&](std::uint32_t context) {
            const Context& at = profile.contexts[context];
            return function_of(at.module, at.offset, at.frame);
        };
        std::vector<std::uint32_t> path = call_path(profile, sample.context);
        for (std::size_t i = 0; i < path.size(); ++i) {
            Function callee = i + 1 < path.size() ? function_at(path[i + 1]) : leaf;
            std::uint32_t line = profile.contexts[path[i]].frame.line;
            add(records[function_at(path[i])].calls[{line, callee}], costs);
        }
    }
    std::string out = "# callgrind format\nversion: 1\ncreator: revisit\n";
    std::string command;
    for (const std::string& word : profile.command) command += (command.empty() ? "" : " ") + word;
    if (!command.empty()) out += "cmd: " + clean(command) + "\n";
    out += "positions: line\nevents: accesses first_touches";
    for (const CacheSpec& cache : options.caches) out += " " + event_name(cache.name);
    out += "\nsummary:" + numbers(total) + "\n";
    for (const auto& [function, record] : records) {
        out += fmt::format("\nob={}\nfl={}\nfn={}\n", function.module, function.file, function.name);
        for (const auto& [line, costs] : record.lines)
            out += fmt::format("{}{}\n", line, numbers(costs));
        for (const auto& [key, costs] : record.calls) {
            const auto& [line, callee] = key;
            out += fmt::format("cob={}\ncfi={}\ncfn={}\ncalls=1 0\n{}{}\n", callee.module, callee.file,
                               callee.name, line, numbers(costs));
        }
    }
    return out;
}

}  // namespace revisit
