// Slices as text: what the slicer helper writes and the predictor reads. One record a line, fields by
// blanks, names percent-encoded; both ends come from one build, so there are no versions.
#include <charconv>
#include <cstdlib>
#include <type_traits>

#include "predict/slice.h"

namespace revisit::predict {
namespace {

void put(std::string& out, std::int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out += ' ';
    out.append(digits, end);
}

void put(std::string& out, const std::string& name) {
    out += ' ';
    if (name.empty()) out += "%";
    for (const unsigned char c : name) {
        if (c <= ' ' || c == '%' || c >= 127) {
            constexpr char hex[] = "0123456789abcdef";
            out += '%';
            out += hex[c >> 4];
            out += hex[c & 15];
        } else {
            out += static_cast<char>(c);
        }
    }
}

// Fields of a record, whatever they are: names, numbers, kinds.
template <class... Values>
void put_all(std::string& out, const Values&... values) {
    const auto one = [&](const auto& value) {
        if constexpr (std::is_convertible_v<decltype(value), std::string>)
            put(out, value);
        else
            put(out, static_cast<std::int64_t>(value));
    };
    (one(values), ...);
}

void put_block(std::string& out, const Block& b) {
    out += "block";
    put_all(out, b.name, b.exit, b.value, b.loop, b.line);
    out += '\n';
    for (const Instruction& i : b.code) {
        out += "i";
        put_all(out, i.op, i.width, i.dst, i.a, i.b, i.c, i.imm, i.line);
        out += '\n';
    }
    for (const Edge& e : b.edges) {
        out += "edge";
        put_all(out, e.block);
        for (const Move& m : e.moves) put_all(out, m.to, m.from);
        out += '\n';
    }
    if (b.cases.empty()) return;
    out += "cases";
    for (const auto v : b.cases) put(out, v);
    out += '\n';
}

void put_function(std::string& out, const Function& f) {
    out += "function";
    put_all(out, f.name, f.registers);
    out += '\n';
    for (const Argument& a : f.arguments) {
        out += "argument";
        put_all(out, a.name, a.kind, a.reg, a.width, a.is_signed, a.alone);
        out += '\n';
    }
    for (const Constant& c : f.constants) {
        out += "constant";
        put_all(out, c.reg, c.global, c.value, c.known);
        out += '\n';
    }
    for (const Loop& l : f.loops) {
        out += "loop";
        put_all(out, l.header, l.parent, l.induction, l.variable, l.line);
        out += '\n';
    }
    for (const Reference& r : f.references) {
        out += "reference";
        put_all(out, r.write, r.size, r.array, r.expression, r.file, r.line, r.column, r.inlined);
        for (const auto& [reg, extent] : r.extents) put_all(out, reg, extent);
        out += '\n';
    }
    for (const Call& c : f.calls) {
        out += "call";
        put_all(out, c.function, c.dst);
        for (const auto a : c.arguments) put(out, a);
        out += '\n';
    }
    for (const Block& b : f.blocks) put_block(out, b);
}

// The fields of one line.
class Fields {
 public:
    explicit Fields(std::string_view line) : rest_(line) {}
    bool more() {
        skip();
        return !rest_.empty();
    }
    std::string_view word() {
        skip();
        const auto end = std::min(rest_.find(' '), rest_.size());
        const auto w = rest_.substr(0, end);
        rest_.remove_prefix(end);
        return w;
    }
    template <class T = std::int64_t>
    T number() {
        const auto w = word();
        std::int64_t value = 0;
        const auto [end, ec] = std::from_chars(w.data(), w.data() + w.size(), value);
        if (ec != std::errc{} || end != w.data() + w.size()) bad_ = true;
        return static_cast<T>(value);
    }
    std::string name() {
        const auto w = word();
        if (w == "%") return {};
        std::string out;
        for (std::size_t i = 0; i < w.size(); ++i) {
            if (w[i] == '%' && i + 2 < w.size()) {
                out += static_cast<char>(
                    std::strtol(std::string(w.substr(i + 1, 2)).c_str(), nullptr, 16));
                i += 2;
            } else {
                out += w[i];
            }
        }
        return out;
    }
    bool bad() const { return bad_; }

 private:
    void skip() {
        while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    }
    std::string_view rest_;
    bool bad_ = false;
};

}  // namespace

std::string to_text(const Program& program) {
    std::string out = "program";
    put_all(out, program.memory_needed, program.addresses_compared);
    out += '\n';
    for (const auto& limit : program.limits) {
        out += "limit";
        put(out, limit);
        out += '\n';
    }
    for (const Global& g : program.globals) {
        out += "global";
        put(out, g.name);
        put(out, static_cast<std::int64_t>(g.size));
        put(out, static_cast<std::int64_t>(g.align));
        put(out, g.constant);
        put(out, g.element);
        for (const auto v : g.values) put(out, v);
        out += '\n';
    }
    for (const Function& f : program.functions) put_function(out, f);
    out += "end\n";
    return out;
}

Result<std::vector<Program>> programs_from_text(std::string_view text) {
    std::vector<Program> programs;
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const auto end = std::min(text.find('\n'), text.size());
        Fields in(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!in.more()) continue;
        const auto kind = in.word();
        const auto broken = [&] {
            return fail("slice", "line " + std::to_string(number), "not a slice record");
        };
        if (kind == "program") {
            programs.emplace_back().memory_needed = in.number<bool>();
            programs.back().addresses_compared = in.number<bool>();
            continue;
        }
        if (programs.empty()) return broken();
        Program& p = programs.back();
        if (kind == "limit") {
            p.limits.push_back(in.name());
        } else if (kind == "global") {
            Global g;
            g.name = in.name();
            g.size = in.number<std::uint64_t>();
            g.align = in.number<std::uint64_t>();
            g.constant = in.number<bool>();
            g.element = in.number<std::uint32_t>();
            while (in.more()) g.values.push_back(in.number());
            p.globals.push_back(std::move(g));
        } else if (kind == "function") {
            Function f;
            f.name = in.name();
            f.registers = in.number<std::int32_t>();
            p.functions.push_back(std::move(f));
        } else if (kind == "end") {
        } else {
            if (p.functions.empty()) return broken();
            Function& f = p.functions.back();
            if (kind == "argument") {
                Argument a;
                a.name = in.name();
                a.kind = in.number<Kind>();
                a.reg = in.number<std::int32_t>();
                a.width = in.number<std::uint8_t>();
                a.is_signed = in.number<bool>();
                a.alone = in.number<bool>();
                f.arguments.push_back(std::move(a));
            } else if (kind == "constant") {
                Constant c;
                c.reg = in.number<std::int32_t>();
                c.global = in.number<std::int32_t>();
                c.value = in.number();
                c.known = in.number<bool>();
                f.constants.push_back(c);
            } else if (kind == "loop") {
                Loop l;
                l.header = in.number<std::int32_t>();
                l.parent = in.number<std::int32_t>();
                l.induction = in.number<std::int32_t>();
                l.variable = in.name();
                l.line = in.number<std::uint32_t>();
                f.loops.push_back(std::move(l));
            } else if (kind == "reference") {
                Reference r;
                r.write = in.number<bool>();
                r.size = in.number<std::uint32_t>();
                r.array = in.name();
                r.expression = in.name();
                r.file = in.name();
                r.line = in.number<std::uint32_t>();
                r.column = in.number<std::uint32_t>();
                r.inlined = in.name();
                while (in.more()) {
                    const auto reg = in.number<std::int32_t>();
                    r.extents.emplace_back(reg, in.number<std::uint64_t>());
                }
                f.references.push_back(std::move(r));
            } else if (kind == "call") {
                Call c;
                c.function = in.number<std::int32_t>();
                c.dst = in.number<std::int32_t>();
                while (in.more()) c.arguments.push_back(in.number<std::int32_t>());
                f.calls.push_back(std::move(c));
            } else if (kind == "block") {
                Block b;
                b.name = in.name();
                b.exit = in.number<Exit>();
                b.value = in.number<std::int32_t>();
                b.loop = in.number<std::int32_t>();
                b.line = in.number<std::uint32_t>();
                f.blocks.push_back(std::move(b));
            } else if (f.blocks.empty()) {
                return broken();
            } else if (kind == "i") {
                Instruction i;
                i.op = in.number<Op>();
                i.width = in.number<std::uint8_t>();
                i.dst = in.number<std::int32_t>();
                i.a = in.number<std::int32_t>();
                i.b = in.number<std::int32_t>();
                i.c = in.number<std::int32_t>();
                i.imm = in.number();
                i.line = in.number<std::uint32_t>();
                f.blocks.back().code.push_back(i);
            } else if (kind == "edge") {
                Edge e;
                e.block = in.number<std::int32_t>();
                while (in.more()) {
                    Move m;
                    m.to = in.number<std::int32_t>();
                    m.from = in.number<std::int32_t>();
                    e.moves.push_back(m);
                }
                f.blocks.back().edges.push_back(std::move(e));
            } else if (kind == "cases") {
                while (in.more()) f.blocks.back().cases.push_back(in.number());
            } else {
                return broken();
            }
        }
        if (in.bad()) return broken();
    }
    return programs;
}

bool same_shape(const Program& a, const Program& b) {
    if (a.functions.size() != b.functions.size() || a.globals.size() != b.globals.size()) return false;
    for (std::size_t i = 0; i < a.functions.size(); ++i) {
        const Function& f = a.functions[i];
        const Function& g = b.functions[i];
        if (f.blocks.size() != g.blocks.size() || f.loops.size() != g.loops.size() ||
            f.references.size() != g.references.size() || f.calls.size() != g.calls.size() ||
            f.registers != g.registers || f.constants.size() != g.constants.size())
            return false;
        for (std::size_t k = 0; k < f.blocks.size(); ++k) {
            const Block& x = f.blocks[k];
            const Block& y = g.blocks[k];
            if (x.exit != y.exit || x.loop != y.loop || x.code.size() != y.code.size() ||
                x.edges.size() != y.edges.size())
                return false;
            for (std::size_t j = 0; j < x.code.size(); ++j)
                if (x.code[j].op != y.code[j].op || x.code[j].dst != y.code[j].dst ||
                    x.code[j].a != y.code[j].a || x.code[j].b != y.code[j].b ||
                    x.code[j].c != y.code[j].c)
                    return false;
            for (std::size_t j = 0; j < x.edges.size(); ++j)
                if (x.edges[j].block != y.edges[j].block || x.edges[j].moves != y.edges[j].moves)
                    return false;
        }
        for (std::size_t k = 0; k < f.references.size(); ++k)
            if (f.references[k].write != g.references[k].write ||
                f.references[k].size != g.references[k].size ||
                f.references[k].line != g.references[k].line)
                return false;
    }
    return true;
}

}  // namespace revisit::predict
