// Interprets a slice.
//
// Objects get addresses as a linker and an allocator would give them: globals one after the other,
// arguments that are pointers as separate arrays far apart, the stack downwards no further than needed;
// every array starts on a 64-byte boundary. A value the data would decide is carried as unknown and
// does no harm until a branch or an address depends on it; then the run says so (a doubt) and goes on
// with a coin toss, or stops where there is nothing to guess.
//
// A loop place is a loop under one path of calls, so that the iteration vector of an access runs
// through its callers' loops too. About 60 M slice instructions a second; inner loops that do the same
// a stride further go by affine_path.cpp, at hundreds of millions of accesses a second.
#include "predict/run/machine.h"

#include <algorithm>

#include "predict/run/arithmetic.h"
#include "predict/run/interpret.h"

namespace revisit::predict {
namespace {

constexpr int kMaxDepth = 4000;
constexpr std::uint64_t kLargestObject = std::uint64_t{1} << 40;

// By how many lines an object is moved in another layout. Negative ones move the stack alone, by so
// many bytes, and arrays on it start where their type lets them.
std::uint64_t shift(int layout, std::uint64_t object) {
    if (layout <= 0) return 0;
    const auto mixed = (static_cast<std::uint64_t>(layout) * 31 + object + 1) * 0x9E3779B97F4A7C15ull;
    return (mixed >> 44) * kLine;
}

}  // namespace

Machine::Machine(const Program& program, const Parameters& parameters, const RunOptions& options)
    : program_(program), parameters_(parameters), options_(options), random_(options.seed) {
    std::uint64_t next = kGlobalBase + shift(options.layout, 0);
    globals_.resize(program.globals.size());
    for (std::size_t k = 0; k < globals_.size(); ++k) {
        const auto which = options.layout % 2 ? globals_.size() - 1 - k : k;
        const Global& g = program.globals[which];
        next = align_up(next, g.size >= kLine ? std::max(kLine, g.align) : g.align);
        globals_[which] = next;
        next += g.size + shift(options.layout, k + 1);
    }
    if (program.memory_needed) {
        for (std::size_t i = 0; i < program.globals.size(); ++i) {
            const Global& g = program.globals[i];
            if (const auto at = parameters.find(g.name); at != parameters.end())
                hold(globals_[i], {at->second, std::max<std::uint32_t>(1, g.element)});
            else
                for (std::size_t k = 0; k < g.values.size(); ++k)
                    hold(globals_[i] + k * g.element, {g.values[k], g.element});
        }
        std::set<std::uint32_t> sizes;
        for (const Function& f : program.functions)
            for (const Reference& r : f.references) sizes.insert(r.size);
        mixed_ = sizes.size() > 1;
    }
    for (const Table& t : program.data)
        for (std::size_t k = 0; k < globals_.size(); ++k)
            if (program.globals[k].name == t.name)
                given_.push_back({globals_[k], globals_[k] + program.globals[k].size, &t});
    if (program.memory_needed && options.watch > 0) {
        trace_.tables.resize(globals_.size());
        for (std::size_t k = 0; k < globals_.size(); ++k) {
            const auto& values = program.globals[k].values;
            if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end())
                continue;
            trace_.tables[k].resize(values.size());
            tables_.push_back(k);
        }
    }
    trace_.block_counts.resize(program.functions.size());
    for (std::size_t i = 0; i < program.functions.size(); ++i) {
        const Function& f = program.functions[i];
        trace_.block_counts[i].assign(f.blocks.size(), 0);
        Image image;
        image.values.assign(f.registers, 0);
        image.known.assign(f.registers, 1);
        for (const Constant& c : f.constants) {
            image.values[c.reg] =
                c.value + (c.global >= 0 ? static_cast<std::int64_t>(globals_[c.global]) : 0);
            image.known[c.reg] = c.known;
        }
        images_.push_back(std::move(image));
    }
    trace_.observed.resize(static_cast<std::size_t>(options.watch));
    contexts_.push_back({0, 0});
    stack_ += options.layout < 0 ? bits(-options.layout) : shift(options.layout, 1001);
    heap_ += options.layout < 0 ? bits(-options.layout) : shift(options.layout, 1002);
    on_stack_.assign(program.functions.size(), 0);
    first_context_.assign(program.functions.size(), 0);
}

Result<Trace> Machine::run() {
    const Function& entry = program_.functions.front();
    Frame frame = enter(0, 0, -1, 0);
    std::uint64_t pointers = 0, all = 0;
    for (const Argument& a : entry.arguments) all += a.kind == Kind::pointer;
    for (const Argument& a : entry.arguments) {
        if (a.kind == Kind::pointer) ++pointers;
        if (a.reg < 0) continue;
        if (a.kind == Kind::pointer) {
            const auto place = options_.layout % 2 ? all - pointers : pointers - 1;
            const auto address = argument_base(place) + shift(options_.layout, 2000 + pointers);
            frame.values[a.reg] = signed_of(address);
            for (const Table& t : program_.data)
                if (t.name == a.name) given_.push_back({address, address + kArgumentSpan / 2, &t});
        } else if (const auto at = parameters_.find(a.name); at != parameters_.end()) {
            frame.values[a.reg] = sign_extend(at->second, a.width);
        } else {
            frame.known[a.reg] = 0;
        }
    }
    try {
        execute(frame);
    } catch (const Stop& stop) {
        if (stop.why == Stop::Why::failed)
            return fail(stop.code, {}, stop.line ? "line " + std::to_string(stop.line) : "",
                        stop.message);
        trace_.complete = false;
    }
    if (!out_addresses_.empty() && !options_.sink(out_addresses_, out_references_, out_sizes_))
        trace_.complete = false;
    for (const Doubt& limit : program_.limits) doubts_.insert(limit);
    trace_.doubts.assign(doubts_.begin(), doubts_.end());
    return std::move(trace_);
}

Machine::Frame Machine::enter(std::uint32_t function, std::uint32_t context, std::int32_t run,
                              std::uint32_t iteration) {
    Frame f;
    f.function = function;
    f.context = context;
    f.values = images_[function].values;
    f.known = images_[function].known;
    f.outer_run = run;
    f.outer_iteration = iteration;
    f.places = &reference_places_[context];
    if (f.places->empty()) f.places->assign(program_.functions[function].references.size(), -1);
    return f;
}

void Machine::stop(const std::string& message, std::uint32_t line, ErrorCode code) {
    throw Stop{Stop::Why::failed, message, line, code};
}

void Machine::doubt(Doubt::Kind kind, const std::string& what, std::uint32_t line) {
    doubts_.emplace(kind, line, what);
}

std::uint32_t Machine::loop_place(Frame& f, std::int32_t loop) {
    const auto key = (std::uint64_t{f.context} << 32) | static_cast<std::uint32_t>(loop);
    const auto [at, fresh] =
        loop_places_.try_emplace(key, static_cast<std::uint32_t>(trace_.loops.size()));
    if (fresh) {
        const std::int32_t parent =
            f.loops.empty() ? f.outer_place : static_cast<std::int32_t>(f.loops.back().place);
        trace_.loops.push_back({f.function, static_cast<std::uint32_t>(loop), parent, true, 0, 0});
    }
    return at->second;
}

std::uint32_t Machine::reference_place(Frame& f, std::uint32_t reference) {
    auto& table = *f.places;
    if (table[reference] < 0) {
        table[reference] = static_cast<std::int32_t>(trace_.references.size());
        ReferencePlace place;
        place.function = f.function;
        place.reference = reference;
        place.context = contexts_[f.context].key;
        std::int32_t at =
            f.loops.empty() ? f.outer_place : static_cast<std::int32_t>(f.loops.back().place);
        for (; at >= 0; at = trace_.loops[at].parent)
            place.loops.push_back(static_cast<std::uint32_t>(at));
        std::reverse(place.loops.begin(), place.loops.end());
        place.indices.resize(program_.functions[f.function].references[reference].extents.size());
        trace_.references.push_back(std::move(place));
    }
    return static_cast<std::uint32_t>(table[reference]);
}

// What runs once an instruction is inline, as it would be in a class of this file alone: 10 % of the
// time.
inline void Machine::access(Frame& f, std::uint32_t reference, std::uint64_t address,
                            std::uint32_t size) {
    const auto place = reference_place(f, reference);
    if (options_.keep) {
        const bool inside = !f.loops.empty();
        trace_.accesses.push_back({address, place, inside ? f.loops.back().run : f.outer_run,
                                   inside ? f.loops.back().iteration : f.outer_iteration, size});
    }
    const auto& extents = program_.functions[f.function].references[reference].extents;
    for (std::size_t k = 0; k < extents.size(); ++k)
        trace_.references[place].indices[k].add(f.values[extents[k].first]);
    if (muted_) return;
    if (options_.progression) options_.progression({place, address, 0, 1, size, 1});
    ++trace_.count;
    if (options_.sink) {
        out_addresses_.push_back(address);
        out_references_.push_back(place);
        out_sizes_.push_back(size);
        if (out_addresses_.size() >= kBatch) flush();
    }
    if (trace_.count >= options_.max_accesses) throw Stop{Stop::Why::budget, {}, 0};
}

void Machine::flush() {
    if (!options_.sink(out_addresses_, out_references_, out_sizes_) || options_.deadline.passed())
        throw Stop{Stop::Why::budget, {}, 0};
    out_addresses_.clear();
    out_references_.clear();
    out_sizes_.clear();
}

inline std::uint64_t Machine::address_in(Frame& f, std::int32_t reg, std::uint32_t line) {
    if (!f.known[reg])
        stop("the address depends on data (or on a parameter that is not given)" +
                 (unknown_ ? ": on what " + *unknown_ + " holds" : std::string()),
             line, ErrorCode::no_data);
    return static_cast<std::uint64_t>(f.values[reg]);
}

inline void Machine::leave_loops(Frame& f, std::int32_t target) {
    while (!f.loops.empty()) {
        const auto& loops = program_.functions[f.function].loops;
        for (std::int32_t l = target; l >= 0; l = loops[l].parent)
            if (l == f.loops.back().loop) return;
        close(f.loops.back());
        report(f, f.loops.back().loop, kNoLoop);
        f.loops.pop_back();
        f.whole = false;
        if (f.loops.empty()) ask(kNoLoop, 0);
    }
}

void Machine::close(const Active& a) {
    LoopPlace& place = trace_.loops[a.place];
    const auto rounds = a.iteration + 1;
    place.shortest = place.longest == 0 ? rounds : std::min(place.shortest, rounds);
    place.longest = std::max(place.longest, rounds);
    if (a.run < 0) return;
    auto& run = trace_.runs[a.run];
    run.iterations = a.iteration + 1;
    run.first = a.first;
    run.step = a.step;
}

// Whether what an outermost loop does next is wanted.
void Machine::ask(std::uint32_t loop, std::uint32_t iteration) {
    if (!options_.outermost || depth_ != 1) return;
    if (options_.sink && !out_addresses_.empty()) flush();
    const auto show = options_.outermost(loop, iteration);
    if (show == RunOptions::Show::stop) throw Stop{Stop::Why::budget, {}, 0};
    muted_ = show == RunOptions::Show::nothing;
}

// Control arrives at the header of a loop.
inline void Machine::arrive(Frame& f, std::int32_t loop, bool again) {
    const auto& l = program_.functions[f.function].loops[loop];
    if (again) {
        auto& a = f.loops.back();
        ++a.iteration;
        if (l.induction >= 0) {
            const auto now = f.values[l.induction];
            if (a.iteration == 1)
                a.step = now - a.first;
            else if (now - a.last != a.step)
                trace_.loops[a.place].linear = false;
            a.last = now;
        }
        if (f.loops.size() == 1) {
            leap(f, a);
            ask(a.place, a.iteration);
        }
        report(f, loop, a.iteration);
        return;
    }
    Active a{loop, -1, loop_place(f, loop), 0, 0, 0, 0};
    if (options_.keep) {
        const bool inside = !f.loops.empty();
        a.run = static_cast<std::int32_t>(trace_.runs.size());
        trace_.runs.push_back({a.place, inside ? f.loops.back().run : f.outer_run,
                               inside ? f.loops.back().iteration : f.outer_iteration, 1, 0, 0});
    }
    if (l.induction >= 0)
        a.first = a.last = f.values[l.induction];
    else
        a.step = 1;
    f.loops.push_back(a);
    if (f.loops.size() == 1) ask(a.place, 0);
    report(f, loop, 0);
}

inline void Machine::follow(Frame& f, const Edge& edge, std::int32_t& block) {
    const Function& function = program_.functions[f.function];
    if (edge.moves.size() == 1) {
        f.values[edge.moves[0].to] = f.values[edge.moves[0].from];
        f.known[edge.moves[0].to] = f.known[edge.moves[0].from];
    } else if (!edge.moves.empty()) {
        buffer_.clear();
        for (const Move& m : edge.moves) buffer_.push_back({f.values[m.from], f.known[m.from]});
        for (std::size_t i = 0; i < edge.moves.size(); ++i) {
            f.values[edge.moves[i].to] = buffer_[i].first;
            f.known[edge.moves[i].to] = buffer_[i].second;
        }
    }
    const std::int32_t to = edge.block;
    const std::int32_t loop = function.blocks[to].loop;
    if (!f.loops.empty()) leave_loops(f, loop);
    if (loop >= 0 && function.loops[loop].header == to) {
        const bool again = !f.loops.empty() && f.loops.back().loop == loop;
        arrive(f, loop, again);
        if (!again) f.whole = f.observed = false;
        if (options_.stride && !is_reported(f, loop) &&
            !(options_.outermost && depth_ == 1 && f.loops.size() == 1))
            stride(f);
        if (!f.whole || !again) f.observed = false;
        f.whole = true;
        f.path.clear();
    }
    block = to;
}

void Machine::execute(Frame& f) {
    const Function& function = program_.functions[f.function];
    if (++depth_ > kMaxDepth) stop("recursion deeper than " + std::to_string(kMaxDepth) + " calls", 0);
    if (on_stack_[f.function]++ > 0)
        doubt(Doubt::Kind::recursion, "recursion in " + function.name, 0);
    else
        first_context_[f.function] = f.context;
    const auto stack = stack_;
    stack_ = align_up(stack_, options_.layout < 0 ? 16 : kLine);
    std::int32_t block = 0;
    auto& counts = trace_.block_counts[f.function];
    if (function.blocks[0].loop >= 0 && function.loops[function.blocks[0].loop].header == 0)
        arrive(f, function.blocks[0].loop, false);
    for (;;) {
        const Block& b = function.blocks[block];
        ++counts[block];
        f.path.push_back(block);
        if ((++ticks_ & 0xfff) == 0 && options_.deadline.passed())
            throw Stop{Stop::Why::budget, {}, b.line};
        if (steps_ += b.code.size() + 1; steps_ > options_.max_steps)
            throw Stop{Stop::Why::budget, {}, b.line};
        for (const Instruction& i : b.code) step(f, i);
        if (b.exit == Exit::jump) {
            follow(f, b.edges[0], block);
        } else if (b.exit == Exit::branch) {
            bool taken = f.values[b.value] & 1;
            if (!f.known[b.value]) {
                doubt(Doubt::Kind::data,
                      "the data decides this branch; taken with probability " +
                          std::to_string(options_.branch_probability).substr(0, 4),
                      b.line);
                taken = std::uniform_real_distribution<double>()(random_) < options_.branch_probability;
            }
            follow(f, b.edges[taken ? 0 : 1], block);
        } else if (b.exit == Exit::choose) {
            std::size_t which = 0;
            if (!f.known[b.value]) {
                doubt(Doubt::Kind::data,
                      "the data decides this switch; all cases taken as equally likely", b.line);
                which = random_() % b.edges.size();
            } else {
                const auto at = std::find(b.cases.begin(), b.cases.end(), f.values[b.value]);
                if (at != b.cases.end()) which = 1 + static_cast<std::size_t>(at - b.cases.begin());
                if (options_.watch > 0) {
                    Observed& o = trace_.observed[static_cast<std::size_t>(b.watch - 1)];
                    o.value.add(f.values[b.value]);
                    o.taken.resize(b.edges.size(), false);
                    o.taken[which] = true;
                }
            }
            follow(f, b.edges[which], block);
        } else if (b.exit == Exit::leave) {
            if (b.value >= 0) {
                f.result = f.values[b.value];
                f.result_known = f.known[b.value];
            }
            break;
        } else {
            stop("control reaches code that cannot be followed", b.line);
        }
    }
    leave_loops(f, -1);
    stack_ = stack;
    --on_stack_[f.function];
    --depth_;
}

void Machine::call(Frame& f, const Instruction& i) {
    const Call& c = program_.functions[f.function].calls[i.imm];
    f.whole = false;
    // A path of calls is a place of its own, but not how often a function is within itself: such paths
    // are as many as there are calls.
    const auto key = (std::uint64_t{f.context} << 32) | static_cast<std::uint64_t>(i.imm);
    const bool within = on_stack_[c.function] > 0;
    auto [at, fresh] = call_contexts_.try_emplace(
        key, within ? first_context_[c.function] : static_cast<std::uint32_t>(contexts_.size()));
    if (fresh && !within) {
        const auto parent = contexts_[f.context].key;
        contexts_.push_back({(parent ^ (static_cast<std::uint64_t>(i.imm) + 0x9E3779B97F4A7C15ull +
                                        (std::uint64_t{f.function} << 32))) *
                                     0xff51afd7ed558ccdull +
                                 1,
                             (contexts_[f.context].path + static_cast<std::uint64_t>(c.function) + 1) *
                                 0xff51afd7ed558ccdull});
    }
    const bool inside = !f.loops.empty();
    Frame g = enter(static_cast<std::uint32_t>(c.function), at->second,
                    inside ? f.loops.back().run : f.outer_run,
                    inside ? f.loops.back().iteration : f.outer_iteration);
    g.outer_place = inside ? static_cast<std::int32_t>(f.loops.back().place) : f.outer_place;
    const Function& callee = program_.functions[c.function];
    for (std::size_t k = 0; k < c.arguments.size(); ++k)
        if (c.arguments[k] >= 0) {
            g.values[callee.arguments[k].reg] = f.values[c.arguments[k]];
            g.known[callee.arguments[k].reg] = f.known[c.arguments[k]];
        }
    execute(g);
    if (c.dst >= 0) {
        f.values[c.dst] = g.result;
        f.known[c.dst] = g.result_known;
    }
}

// One of two numbers, and only the data knows which: as a branch would have it.
void Machine::choose(Frame& f, const Instruction& i) {
    doubt(Doubt::Kind::data,
          "the data decides which of two values is meant; the first with probability " +
              std::to_string(options_.branch_probability).substr(0, 4),
          i.line);
    const bool first = std::uniform_real_distribution<double>()(random_) < options_.branch_probability;
    f.values[i.dst] = f.values[first ? i.b : i.c];
    f.known[i.dst] = 1;
}

inline void Machine::step(Frame& f, const Instruction& i) {
    if (i.op == Op::load) return load(f, i);
    if (i.op == Op::store) return store(f, i);
    auto& v = f.values;
    auto& k = f.known;
    if (calculate(i, v, k)) {
        if (i.op == Op::select && !k[i.dst] && k[i.b] && k[i.c]) choose(f, i);
        return watch(f, i);
    }
    switch (i.op) {
        case Op::udiv:
        case Op::sdiv:
        case Op::urem:
        case Op::srem:
            divide(f, i);
            return watch(f, i);
        case Op::reserve: {
            if (!k[i.a]) stop("the size of a local array depends on data", i.line);
            const auto size = bits(v[i.a]) * bits(i.imm);
            stack_ = align_up(stack_, size >= kLine && options_.layout >= 0
                                          ? std::max<std::uint64_t>(kLine, bits(i.b))
                                          : bits(i.b));
            if (size > kLargestObject || stack_ + size > kStackBase + kLargestObject)
                stop("local variables of more than 2^40 bytes", i.line);
            if (!stack_shared_ && size > 0 &&
                !same_on_stack(stack_, size,
                               contexts_[f.context].path ^ reinterpret_cast<std::uintptr_t>(&i))) {
                stack_shared_ = true;
                doubt(
                    Doubt::Kind::place,
                    "local variables of calls or scopes that follow each other lie on the same stack, "
                    "how is the compiler's choice",
                    i.line);
            }
            v[i.dst] = signed_of(stack_);
            k[i.dst] = 1;
            stack_ += size;
            return;
        }
        case Op::allocate: {
            if (!k[i.a] || (i.b >= 0 && !k[i.b]))
                stop("the size of an allocation depends on data", i.line);
            const auto size = bits(v[i.a]) * (i.b >= 0 ? bits(v[i.b]) : 1);
            if (size > kLargestObject || heap_ > kLargestObject)
                stop("allocations of more than 2^40 bytes", i.line);
            v[i.dst] = signed_of(kHeapBase + heap_);
            k[i.dst] = 1;
            if (program_.memory_needed && i.width == 8 && size > 0)
                fill_values(bits(v[i.dst]), size, 0);
            // Elsewhere: one after the other, as an allocator has them.
            const auto between = options_.layout < 0 ? 16 : kLine;
            heap_ = align_up(heap_ + size, between) + between;
            return;
        }
        case Op::stack_save:
            v[i.dst] = signed_of(stack_);
            k[i.dst] = 1;
            return;
        case Op::stack_restore:
            stack_ = bits(v[i.a]);
            return;
        case Op::fill:
        case Op::move:
            return transfer(f, i);
        case Op::call:
            return call(f, i);
        case Op::unknown:
            v[i.dst] = 0;
            k[i.dst] = 0;
            return;
        default:
            return;
    }
}

inline void Machine::watch(const Frame& f, const Instruction& i) {
    if (options_.watch == 0 || i.watch == 0 || !f.known[i.dst]) return;
    observe(i, f.values[i.a], i.b >= 0 ? f.values[i.b] : 0, f.values[i.dst],
            trace_.observed[static_cast<std::size_t>(i.watch - 1)]);
}

inline void Machine::divide(Frame& f, const Instruction& i) {
    f.known[i.dst] = f.known[i.a] & f.known[i.b];
    if (!f.known[i.dst]) return;
    const auto a = f.values[i.a], b = f.values[i.b];
    if (b == 0) stop("division by zero", i.line);
    if (b == -1) {
        f.values[i.dst] =
            i.op == Op::sdiv
                ? sign_extend(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a)), i.width)
                : 0;
        if (i.op == Op::sdiv || i.op == Op::srem) return;
    }
    const auto ua = zero_extend(a, i.width), ub = zero_extend(b, i.width);
    const std::int64_t result = i.op == Op::sdiv   ? a / b
                                : i.op == Op::srem ? a % b
                                : i.op == Op::udiv ? static_cast<std::int64_t>(ua / ub)
                                                   : static_cast<std::int64_t>(ua % ub);
    f.values[i.dst] = sign_extend(result, i.width);
}

inline void Machine::load(Frame& f, const Instruction& i) {
    const auto address = address_in(f, i.a, i.line);
    access(f, static_cast<std::uint32_t>(i.imm), address,
           program_.functions[f.function].references[i.imm].size);
    if (i.dst < 0) return;
    if (i.b >= 0 && (f.known[i.b] || given_.empty())) {
        f.values[i.dst] = f.values[i.b];
        f.known[i.dst] = f.known[i.b];
    } else if (i.c >= 0) {
        load_end(f, i, address);
    } else if (const auto at = memory_.find(address);
               at != memory_.end() &&
               at->second.bytes >= program_.functions[f.function].references[i.imm].size) {
        f.values[i.dst] = sign_extend(at->second.value, i.width);
        f.known[i.dst] = 1;
        if (!tables_.empty()) note_entry(address);
    } else if (bool known = false;
               !filled_.empty() &&
               in_filled(address, program_.functions[f.function].references[i.imm].size,
                         f.values[i.dst], known)) {
        f.values[i.dst] = known ? sign_extend(f.values[i.dst], i.width) : 0;
        f.known[i.dst] = known;
    } else if (!load_given(f, i, address)) {
        f.values[i.dst] = 0;
        f.known[i.dst] = 0;
        unknown_ = &program_.functions[f.function].references[i.imm].array;
    }
}

inline void Machine::store(Frame& f, const Instruction& i) {
    const auto address = address_in(f, i.a, i.line);
    access(f, static_cast<std::uint32_t>(i.imm), address,
           program_.functions[f.function].references[i.imm].size);
    if (i.b >= 0) {
        if (i.c >= 0) {
            f.values[i.b] = f.values[i.c];
            f.known[i.b] = f.known[i.c];
        }
    } else if (program_.memory_needed) {
        const auto bytes = program_.functions[f.function].references[i.imm].size;
        mixed_ |= bytes > 0 && address % bytes != 0;
        if (mixed_ && !memory_.empty()) forget(address, bytes);
        if (i.c >= 0 && f.known[i.c]) {
            hold(address, {f.values[i.c], bytes});
        } else {
            if (!memory_.empty()) memory_.erase(address);
            if (i.c >= 0) overwritten_.insert(address);
        }
        if (!given_.empty()) overwrite_given(address, bytes);
        if (!filled_.empty()) touch_filled(address, bytes);
    }
}

Result<Trace> interpret(const Program& program, const Parameters& parameters,
                        const RunOptions& options) {
    return Machine(program, parameters, options).run();
}

}  // namespace revisit::predict
