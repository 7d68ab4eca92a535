// Slices as text: what the slicer helper writes and the predictor reads. One record a line, fields by
// blanks, names percent-encoded; both ends come from one build, so there are no versions.
#include <charconv>
#include <cstdlib>
#include <type_traits>

#include "predict/slice/slice.h"

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

void put(std::string& out, const Move& m) {
    put(out, m.to);
    put(out, m.from);
}

void put(std::string& out, const std::pair<std::int32_t, std::uint64_t>& extent) {
    put(out, extent.first);
    put(out, static_cast<std::int64_t>(extent.second));
}

// One line: fields of any kind, lists of them last.
template <class... Values>
void put_record(std::string& out, std::string_view kind, const Values&... values) {
    out += kind;
    const auto one = [&](const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>)
            put(out, value);
        else if constexpr (requires { value.begin(); })
            for (const auto& part : value) put(out, part);
        else
            put(out, static_cast<std::int64_t>(value));
    };
    (one(values), ...);
    out += '\n';
}

void put_block(std::string& out, const Block& b) {
    put_record(out, "block", b.name, b.exit, b.value, b.loop, b.line);
    for (const Instruction& i : b.code)
        put_record(out, "i", i.op, i.width, i.dst, i.a, i.b, i.c, i.imm, i.line);
    for (const Edge& e : b.edges) put_record(out, "edge", e.block, e.moves);
    if (!b.cases.empty()) put_record(out, "cases", b.cases);
}

void put_function(std::string& out, const Function& f) {
    put_record(out, "function", f.name, f.registers);
    for (const Argument& a : f.arguments)
        put_record(out, "argument", a.name, a.kind, a.reg, a.width, a.is_signed, a.alone, a.inside);
    for (const Constant& c : f.constants)
        put_record(out, "constant", c.reg, c.global, c.value, c.known);
    for (const Loop& l : f.loops)
        put_record(out, "loop", l.header, l.parent, l.induction, l.variable, l.line);
    for (const Reference& r : f.references)
        put_record(out, "reference", r.write, r.pointer, r.size, r.element, r.array, r.expression,
                   r.file, r.line, r.column, r.inlined, r.extents);
    for (const Call& c : f.calls) put_record(out, "call", c.function, c.dst, c.arguments);
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
    std::string out;
    put_record(out, "program", program.memory_needed, program.addresses_compared);
    for (const auto& limit : program.limits)
        put_record(out, "limit", static_cast<int>(limit.kind), limit.line, limit.text);
    for (const Global& g : program.globals)
        put_record(out, "global", g.name, g.size, g.align, g.constant, g.element, g.values);
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
            const auto of = static_cast<Doubt::Kind>(in.number<int>());
            const auto line = in.number<std::uint32_t>();
            p.limits.emplace_back(of, line, in.name());
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
                a.inside = in.number<bool>();
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
                r.pointer = in.number<bool>();
                r.size = in.number<std::uint32_t>();
                r.element = in.number<std::uint64_t>();
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
