// How a prediction comes about, for people: the steps of the static method one after the other.
#include "predict/explain.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/try.h"
#include "predict/fit/evaluate.h"
#include "predict/fit/fixed_numbers.h"

namespace revisit::predict {
namespace {

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
}

std::string block_name(const Block& b, std::size_t index) {
    return b.name.empty() ? "block" + std::to_string(index) : b.name;
}

// How often each edge out of a block is taken, where the counts of blocks determine it.
std::string edges_text(const Function& f, std::size_t block, const std::vector<std::uint64_t>& counts) {
    std::vector<int> arrivals(f.blocks.size(), 0);
    for (const Block& b : f.blocks)
        for (const Edge& e : b.edges) ++arrivals[static_cast<std::size_t>(e.block)];
    const Block& b = f.blocks[block];
    double known = 0;
    int open = 0;
    for (const Edge& e : b.edges)
        if (arrivals[static_cast<std::size_t>(e.block)] == 1)
            known += static_cast<double>(counts[static_cast<std::size_t>(e.block)]);
        else
            ++open;
    std::string out;
    for (const Edge& e : b.edges) {
        const auto to = static_cast<std::size_t>(e.block);
        out += (out.empty() ? " -> " : ", ") + block_name(f.blocks[to], to);
        if (b.edges.size() < 2 || counts[block] == 0) continue;
        const double all = static_cast<double>(counts[block]);
        const double taken = arrivals[to] == 1 ? static_cast<double>(counts[to])
                             : open == 1       ? all - known
                                               : -1;
        char text[32];
        if (taken >= 0) {
            std::snprintf(text, sizeof text, " (%.4g)", taken / all);
            out += text;
        }
    }
    return out.empty() ? " -> return" : out;
}

class Brackets {
 public:
    Brackets(const Program& program, const Trace& trace) : program_(program), trace_(trace) {}

    std::string of(std::uint32_t function, int depth = 0) {
        const Function& f = program_.functions[function];
        std::vector<bool> done(f.blocks.size(), false);
        return join(items(function, -1, done, depth));
    }

 private:
    using Items = std::vector<std::string>;

    static std::string join(const Items& items) {
        std::string out;
        for (const auto& i : items) out += (out.empty() ? "" : ", ") + i;
        return out;
    }

    bool inside(const Function& f, std::int32_t loop, std::int32_t outer) const {
        for (; loop >= 0; loop = f.loops[static_cast<std::size_t>(loop)].parent)
            if (loop == outer) return true;
        return outer < 0;
    }

    Items block_items(std::uint32_t function, std::size_t block, int depth) {
        Items out;
        const Function& f = program_.functions[function];
        for (const Instruction& i : f.blocks[block].code) {
            if (i.op == Op::load || i.op == Op::store || i.op == Op::fill || i.op == Op::move)
                out.push_back(f.references[static_cast<std::size_t>(i.imm)].expression);
            if (i.op == Op::move)
                out.push_back(f.references[static_cast<std::size_t>(i.imm) + 1].expression);
            if (i.op == Op::call && depth < 8) {
                const auto callee = f.calls[static_cast<std::size_t>(i.imm)].function;
                const auto text = of(static_cast<std::uint32_t>(callee), depth + 1);
                if (!text.empty()) out.push_back(text);
            }
        }
        return out;
    }

    Items items(std::uint32_t function, std::int32_t loop, std::vector<bool>& done, int depth) {
        const Function& f = program_.functions[function];
        Items out;
        for (std::size_t b = 0; b < f.blocks.size(); ++b) {
            const auto of_block = f.blocks[b].loop;
            if (done[b] || !inside(f, of_block, loop)) continue;
            if (of_block == loop) {
                done[b] = true;
                const auto more = block_items(function, b, depth);
                out.insert(out.end(), more.begin(), more.end());
                continue;
            }
            auto child = of_block;  // the outermost loop below `loop`
            while (f.loops[static_cast<std::size_t>(child)].parent != loop)
                child = f.loops[static_cast<std::size_t>(child)].parent;
            const auto& l = f.loops[static_cast<std::size_t>(child)];
            // A header that may leave is run once more than the rest: what it touches follows the loop.
            const Block& header = f.blocks[static_cast<std::size_t>(l.header)];
            bool leaves = false, back = false;
            for (const Edge& e : header.edges) {
                leaves |= !inside(f, f.blocks[static_cast<std::size_t>(e.block)].loop, child);
                back |= e.block == l.header;
            }
            const bool tested_first = leaves && !back;
            const auto body = items(function, child, done, depth);
            const auto name = l.variable.empty() ? "" : "~" + l.variable;
            Items whole{trips(function, child, tested_first) + name};
            whole.insert(whole.end(), body.begin(), body.end());
            out.push_back("[" + join(whole) + "]");
            if (tested_first) {
                const auto after = block_items(function, static_cast<std::size_t>(l.header), depth);
                out.insert(out.end(), after.begin(), after.end());
            }
        }
        return out;
    }

    std::string trips(std::uint32_t function, std::int32_t loop, bool tested_first) const {
        std::int64_t low = INT64_MAX, high = -1;
        for (const LoopPlace& place : trace_.loops) {
            if (place.function != function || place.loop != static_cast<std::uint32_t>(loop) ||
                place.longest == 0)
                continue;
            low = std::min<std::int64_t>(low, place.shortest - (tested_first ? 1 : 0));
            high = std::max<std::int64_t>(high, place.longest - (tested_first ? 1 : 0));
        }
        if (high < 0) return "?";
        return low == high ? std::to_string(low) : std::to_string(low) + ".." + std::to_string(high);
    }

    const Program& program_;
    const Trace& trace_;
};

std::vector<std::string> variable_names(const Model& model, const Stream& s) {
    std::vector<std::string> names;
    for (const Axis& a : model.design.axes) {
        // Sizes that move together go by the first one's name.
        names.push_back(shown(a.names.front().first));
    }
    const auto& loops = model.table.references()[static_cast<std::size_t>(s.reference)].loops;
    for (std::size_t l = 0; l < loops.size(); ++l)
        names.push_back(loops[l].empty() ? "t" + std::to_string(l) : "#" + loops[l]);
    // A variable can start from an outer one and then goes by the same name: the inner ones get marks.
    for (std::size_t v = 0; v < names.size(); ++v)
        while (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(v), names[v]) !=
               names.begin() + static_cast<std::ptrdiff_t>(v))
            names[v] += '\'';
    return names;
}

std::string reference_text(const Model& model, std::int32_t reference) {
    const auto& r = model.table.references()[static_cast<std::size_t>(reference)];
    const auto& text = model.target.functions[r.function].references[r.reference];
    return text.expression + (text.write ? " (store" : " (load") + ", line " +
           std::to_string(text.line) + ")";
}

std::string ranges_text(const Cell& c, const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t k = 0; k < c.free.size(); ++k) {
        const auto& r = c.ranges[k];
        out += ", " + names[c.free[k]] + " from " + r.low.text(names) + " to " + r.high.text(names);
        if (r.stride != 1) out += " by " + std::to_string(r.stride);
    }
    return out;
}

// The number of accesses in cells as a polynomial of the sizes, from what the cells say at the samples.
std::string total_text(const Model& model, const std::vector<const Cell*>& cells, std::size_t degree) {
    const auto sizes = model.table.sizes();
    Points points;
    points.variables = sizes;
    std::vector<std::uint32_t> which;
    std::vector<std::uint8_t> order(sizes);
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    const auto add = [&](const std::vector<std::int64_t>& size) {
        std::int64_t total = 0;
        for (const Cell* c : cells)
            total += static_cast<std::int64_t>(
                evaluate(
                    *c, size, [](std::uint64_t) { return 0; }, [](auto, auto) {}, 20'000'000)
                    .total);
        for (const auto n : size) points.x.push_back(static_cast<std::int32_t>(n));
        points.y.push_back(total);
        which.push_back(static_cast<std::uint32_t>(which.size()));
    };
    for (const auto& s : model.design.samples) add(s);
    for (const double factor : {1.5, 2.0, 2.5}) add(model.design.held_out(factor));
    std::vector<std::string> names;
    for (const Axis& a : model.design.axes) names.push_back(shown(a.names.front().first));
    const auto p = fit_simplest(points, which, order, static_cast<int>(degree));
    return p ? p->text(names) : "no polynomial of the sizes";
}

std::string axes_text(const Model& model) {
    std::string out;
    for (const Axis& a : model.design.axes) {
        if (a.names.size() > 1) {
            out += "  sizes that move together:";
            for (const auto& [name, offset] : a.names)
                out += " " + shown(name) + " = " + shown(a.names.front().first) +
                       (offset == 0 ? "" : (offset > 0 ? "+" : "") + std::to_string(offset)) + ";";
            out += "\n";
        }
        if (a.modulus > 1)
            out += "  holds for " + shown(a.names.front().first) + " mod " + std::to_string(a.modulus) +
                   " = " + std::to_string(a.target % a.modulus) + "\n";
    }
    return out;
}

}  // namespace

std::string bracket_notation(const Program& program, const Trace& trace) {
    return Brackets(program, trace).of(0);
}

Result<std::string> explain(const Request& request, const Prediction& prediction) {
    const Program& program = *prediction.target;
    Parameters sizes = request.macros;
    sizes.insert(request.parameters.begin(), request.parameters.end());
    RunOptions options;
    options.keep = false;
    options.deadline = Deadline(3);
    options.max_accesses = 40'000'000'000;
    auto trace = TRY(interpret(program, sizes, options));
    std::string out =
        "Control-flow graph and execution counts at " + sizes_text(sizes) +
        (trace.complete ? ""
                        : " (of its first " + number(static_cast<double>(trace.count)) + " accesses)") +
        "\n";
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
        const Function& function = program.functions[f];
        out += "  " + function.name + "\n";
        for (std::size_t b = 0; b < function.blocks.size(); ++b)
            out += "    " + block_name(function.blocks[b], b) + " x " +
                   number(static_cast<double>(trace.block_counts[f][b])) +
                   edges_text(function, b, trace.block_counts[f]) + "\n";
    }
    out += "\nLoop-annotated trace\n  [" + bracket_notation(program, trace) + "]\n";
    if (!prediction.model)
        return out + "\nThe run was interpreted whole: no formulas. --method fit finds them.\n";
    const Model& model = *prediction.model;
    out += "\nFormulas, from " + std::to_string(model.design.samples.size()) + " runs at";
    for (std::size_t k = 0; k < std::min<std::size_t>(3, model.design.samples.size()); ++k)
        out += (k ? "; " : " ") + sizes_text(model.design.at(model.design.samples[k]));
    out += " … (#i is the number of the iteration, from 0)\n" + axes_text(model);
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        const auto names = variable_names(model, s);
        out += "  " + reference_text(model, s.reference) +
               (s.source == kCold ? ", first touches" : " after " + reference_text(model, s.source)) +
               "\n";
        if (model.streams[i].lost) {
            out += "    no formula for " + std::to_string(model.streams[i].lost) + " of " +
                   std::to_string(model.streams[i].rows) + " accesses\n";
            continue;
        }
        for (const Cell& c : model.streams[i].cells) {
            out += "    " +
                   (s.source == kCold ? std::string() : "distance " + c.distance.text(names) + ", ") +
                   c.count.text(names) + (c.count.text(names) == "1" ? " time" : " times") +
                   ranges_text(c, names);
            out += c.where.empty() ? "\n" : "   where " + c.where + "\n";
        }
    }
    return out;
}

std::string symbolic(const Prediction& prediction, const std::vector<CacheSpec>& caches) {
    if (!prediction.model)
        return "No formulas: the run was interpreted whole. --method fit finds them.\n";
    const Model& model = *prediction.model;
    std::size_t degree = 1;
    std::vector<const Cell*> all, cold;
    struct Family {
        std::vector<const Cell*> cells;
        std::set<std::string> references;
    };
    std::map<std::string, Family> families;
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        if (model.streams[i].lost)
            return "No formulas for all references (" + reference_text(model, s.reference) +
                   "): see --explain.\n";
        degree = std::max(degree, s.loops);
        const auto names = variable_names(model, s);
        for (const Cell& c : model.streams[i].cells) {
            all.push_back(&c);
            if (s.source == kCold) {
                cold.push_back(&c);
                continue;
            }
            bool moves = false;
            for (const auto v : c.free) moves |= c.distance.uses(v);
            auto& family = families[c.distance.text(names) + (moves ? ranges_text(c, names) : "")];
            family.cells.push_back(&c);
            family.references.insert(
                model.target
                    .functions[model.table.references()[static_cast<std::size_t>(s.reference)].function]
                    .references[model.table.references()[static_cast<std::size_t>(s.reference)]
                                    .reference]
                    .array);
        }
    }
    std::string out = "Formulas in the sizes";
    out += prediction.certainty() == Certainty::exact ? "\n" : " (not certified: see the notes)\n";
    out += axes_text(model);
    out += "  accesses       " + total_text(model, all, degree) + "\n";
    out += "  first touches  " + total_text(model, cold, degree) + "\n";
    out +=
        "Families: distance, then how many accesses have it (#i is the number of the iteration, from "
        "0)\n";
    for (const auto& [distance, family] : families) {
        std::string arrays;
        for (const auto& a : family.references) arrays += (arrays.empty() ? "" : ", ") + a;
        out += "  " + distance + "\n      " + total_text(model, family.cells, degree) + "   of " +
               arrays + "\n";
    }
    for (const CacheSpec& cache : caches) {
        const auto blocks =
            cache.bytes /
            std::max<std::uint64_t>(1, model.table.granularity() > 1 ? model.table.granularity() : 8);
        std::vector<const Cell*> missing = cold;
        bool mixed = false;
        for (const auto& [distance, family] : families)
            for (const Cell* c : family.cells) {
                std::uint64_t near = 0, far = 0;
                evaluate(
                    *c, model.design.target, [&](std::uint64_t d) { return d >= blocks ? 1 : 0; },
                    [&](std::uint64_t d, std::uint64_t n) { (d >= blocks ? far : near) += n; },
                    20'000'000);
                if (far > 0) missing.push_back(c);
                mixed |= far > 0 && near > 0;
            }
        out += "Misses of " +
               (cache.name.empty() ? std::to_string(cache.bytes) + " bytes" : cache.name) + " (" +
               std::to_string(blocks) +
               " blocks, fully associative) at sizes where the same families miss\n  " +
               (mixed ? "at most " : "") + total_text(model, missing, degree) + "\n";
    }
    return out;
}

}  // namespace revisit::predict
