// What a prediction takes for granted, and what of the layout it cannot know.
#include "predict/certify/assumptions.h"

#include <algorithm>
#include <set>

#include "predict/run/address_space.h"

namespace revisit::predict {
namespace {

// Blocks of the heap that need not start where a block of the granularity does.
bool loosely_allocated(const Program& program, std::uint64_t granularity) {
    for (const Function& f : program.functions)
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code)
                if (i.op == Op::allocate && static_cast<std::uint64_t>(i.imm) < granularity)
                    return true;
    return false;
}

bool finds_pointers(const Program& program) {
    for (const Function& f : program.functions)
        for (const Reference& r : f.references)
            if (r.pointer) return true;
    return false;
}

// Globals smaller than a line, beside others or not: one alone is on its own line wherever it lies.
bool has_small_globals(const Program& program) {
    std::set<std::string> named;
    for (const Function& f : program.functions)
        for (const Reference& r : f.references) named.insert(r.array);
    std::size_t small = 0, all = 0;
    for (const Global& g : program.globals)
        if (named.contains(g.name)) {
            ++all;
            small += g.size < 64;
        }
    return small > 0 && all > 1;
}

}  // namespace

std::vector<Doubt> layout_doubts(const Session& session) {
    const Request& request = session.request;
    std::vector<Doubt> all;
    if (request.granularity > kLine)
        all.emplace_back("arrays start on 64-byte boundaries: where within a block of " +
                         std::to_string(request.granularity) + " bytes is not known");
    if (loosely_allocated(session.target, request.granularity))
        all.emplace_back(
            Doubt::Kind::place, 0,
            "the allocator aligns to 16 bytes: where memory it gives lies within a block is not "
            "known");
    if (request.granularity > 1 && finds_pointers(session.target))
        all.emplace_back(
            Doubt::Kind::place, 0,
            "pointers are read from memory: where in a block the arrays start that they point to is "
            "not known");
    if (request.granularity > 1 && has_small_globals(session.target))
        all.emplace_back(
            "global variables of less than 64 bytes share blocks with whatever the linker puts "
            "beside them");
    return all;
}

bool has_local_arrays(const Program& program) {
    for (const Function& f : program.functions)
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code)
                if (i.op == Op::reserve) return true;
    return false;
}

std::vector<std::string> assumptions(const Session& session) {
    const Request& request = session.request;
    std::vector<std::string> all;
    std::string plain;
    std::size_t pointers = 0;
    for (const Argument& a : session.target.functions.front().arguments) {
        if (a.kind != Kind::pointer) continue;
        ++pointers;
        if (!a.alone) plain += (plain.empty() ? "" : ", ") + a.name;
    }
    std::set<std::string> named;
    for (const Function& f : session.target.functions)
        for (const Reference& r : f.references) named.insert(r.array);
    bool globals = false;
    for (const Global& g : session.target.globals) globals |= named.contains(g.name);
    if (!plain.empty() && (pointers > 1 || globals))
        all.push_back("the arguments " + plain +
                      " point to arrays of their own (restrict would promise it)");
    if (finds_pointers(session.target))
        all.push_back(
            "pointers that are read from memory, and were not written here, point to arrays of their "
            "own");
    if (session.target.memory_needed)
        for (const Global& g : session.target.globals)
            if (!g.constant && !g.values.empty() && !session.sizes.contains(g.name))
                all.push_back("the global " + g.name +
                              (g.values.size() == 1 ? " is " + std::to_string(g.values.front())
                                                    : std::string(" has its initial values")) +
                              " at the start" + (g.values.size() == 1 ? ", as it is initialised" : ""));
    for (const Argument& a : session.target.functions.front().arguments)
        if (const auto at = request.parameters.find(a.name);
            a.kind == Kind::integer && a.width < 64 && at != request.parameters.end() &&
            at->second >= std::int64_t{1} << (a.width - 1))
            all.push_back(a.name + " is unsigned: as a signed number of " + std::to_string(a.width) +
                          " bits it would be negative");
    for (const DataSource& d : request.data)
        all.push_back(
            d.name + " holds " +
            (d.from.starts_with("uniform:") ? "values " + d.from : "what " + d.from + " has"));
    if (request.record)
        for (const Table& t : session.target.data)
            if (std::none_of(request.data.begin(), request.data.end(),
                             [&](const DataSource& d) { return d.name == t.name; }))
                all.push_back(t.name + " holds what the recorded run had");
    const auto bulk = [](const Instruction& i) { return i.op == Op::fill || i.op == Op::move; };
    for (const Function& f : session.target.functions)
        if (request.granularity <= 1 &&
            std::any_of(f.blocks.begin(), f.blocks.end(), [&](const Block& b) {
                return std::any_of(b.code.begin(), b.code.end(), bulk);
            })) {
            all.push_back(
                "memory filled or copied at once is one access to its start, or a read and a "
                "write");
            break;
        }
    const auto& path = request.source.path;
    if (!request.compiler && !path.ends_with(".ll") && !path.ends_with(".bc"))
        all.push_back(
            "clang at -O" + request.source.level() +
            (request.source.optimise == 1
                 ? ", loops as they are written: not unrolled, no vectors, none turned into memset"
                 : "") +
            (request.source.in_program ? "; with its callers in sight, as a function of its own"
                                       : "; called from elsewhere, not inlined into its program"));
    std::string inside;
    for (const Argument& a : session.target.functions.front().arguments)
        if (a.inside && !a.name.starts_with("argv[")) inside += (inside.empty() ? "" : ", ") + a.name;
    if (!inside.empty()) all.push_back("nothing changes while it runs: " + inside);
    if (request.granularity > 1)
        all.push_back("arrays of 64 bytes or more, local ones too, start on a 64-byte boundary");
    return all;
}

}  // namespace revisit::predict
