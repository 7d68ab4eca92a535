// Which argument an address belongs to, and which arguments are still open.
#include "predict/run/address_space.h"

#include <algorithm>

#include "predict/run/interpret.h"

namespace revisit::predict {

std::optional<ArgumentPlace> argument_place(std::uint64_t address) {
    if (address < kArgumentBase + kArgumentSpan / 2) return std::nullopt;
    const auto pointer = (address - kArgumentBase - kArgumentSpan / 2) / (kArgumentSpan + 65 * kLine);
    return ArgumentPlace{static_cast<std::size_t>(pointer),
                         static_cast<std::int64_t>(address - argument_base(pointer))};
}

std::vector<std::string> open_parameters(const Program& program, const Parameters& parameters) {
    std::vector<std::string> open;
    for (const Argument& a : program.functions.front().arguments)
        if (a.kind == Kind::integer && a.reg >= 0 && !parameters.contains(a.name) &&
            std::none_of(program.data.begin(), program.data.end(),
                         [&](const Table& t) { return a.inside && t.name == a.name; }))
            open.push_back(a.name);
    return open;
}

}  // namespace revisit::predict
