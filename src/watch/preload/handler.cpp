// What happens at a sample and at a trap: see docs/watch.md for the whole.
//
// A sample: look ahead from where the thread was interrupted to one of its next few accesses (which, is
// drawn, so that an instruction on which the processor waits is not preferred): that is the use. Look
// on for some thousand accesses: a reuse met there is exact, and has cost no watchpoint. Otherwise the
// reservoir decides whether the word is watched.
// A trap: on aarch64 it comes before the touch and comes again for as long as the watchpoint is there,
// so it is taken away first; touches that must happen before (the use itself) are counted down by the
// kernel, which steps over them.
#include <string.h>
#include <ucontext.h>

#include "watch/preload/thread.h"

namespace revisit::watch {
namespace {

constexpr int kTrapPerf = 6;  // si_code of events with sigtrap

std::uint64_t signal_data(const siginfo_t* info) {
    std::uint64_t data;
    memcpy(&data, reinterpret_cast<const char*>(info) + 24, sizeof data);
    return data;
}

void set_watchpoint(perf_event_attr& attributes, std::uint64_t word, std::uint64_t touches,
                    std::uint64_t data) {
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = HW_BREAKPOINT_RW;
    attributes.bp_addr = word;
    attributes.bp_len = HW_BREAKPOINT_LEN_8;
    attributes.sample_period = touches;
    attributes.sig_data = data;
}

std::uint64_t program_time(const Thread& t, std::uint64_t now) {
    return now > t.recording ? now - t.recording : 0;
}

void read_state(A64State& s, const ucontext_t& context) {
    const mcontext_t& machine = context.uc_mcontext;
    for (unsigned i = 0; i < 31; i++) s.x[i] = machine.regs[i];
    s.x[31] = machine.sp;
    s.known = ~0u;
    s.pc = machine.pc;
    s.nzcv = machine.pstate >> 28 & 15;
    s.flags_known = true;
    __asm__("mrs %0, tpidr_el0" : "=r"(s.thread_pointer));
    s.v_known = 0;
    const auto* part = reinterpret_cast<const unsigned char*>(machine.__reserved);
    for (unsigned left = sizeof machine.__reserved; left >= 8;) {
        std::uint32_t magic, size;
        memcpy(&magic, part, 4);
        memcpy(&size, part + 4, 4);
        if (size == 0 || size > left) break;
        if (magic == 0x46508001) {  // the vector registers
            memcpy(s.v, part + 16, sizeof s.v);
            s.v_known = ~0u;
            break;
        }
        part += size;
        left -= size;
    }
}

// Return addresses by frame pointers, read as the look-ahead reads.
void write_path(Thread& t, const A64State& s) {
    constexpr unsigned kMost = 48;
    std::uint64_t path[kMost], frame = s.x[29], hash = s.pc * 3 + 1;
    unsigned count = 0;
    std::uint64_t low = s.x[31];
    std::uint64_t link = s.is_known(30) ? s.x[30] : 0;
    hash = (hash ^ link) * 0x9e3779b97f4a7c15;
    if (!s.is_known(29) || !s.is_known(31)) frame = 0;
    while (count < kMost && frame >= low && frame - low < 8u << 20 && (frame & 7) == 0 && frame != 0) {
        std::uint64_t next, back;
        if (t.memory.load(frame, 8, next) != Loaded::value ||
            t.memory.load(frame + 8, 8, back) != Loaded::value || back == 0)
            break;
        back &= 0xffffffffffff;  // without what signs it
        if (count == 0 && back == (link & 0xffffffffffff)) link = 0;
        path[count++] = back;
        hash = (hash ^ back) * 0x9e3779b97f4a7c15;
        low = frame + 16;
        frame = next;
    }
    if (!t.writer.room(kMost + 4) || !t.writer.is_new_path(hash | 1)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_PATH, count + 1));
    t.writer.put(s.pc);
    while (count > 0) t.writer.put(path[--count]);
    t.writer.put(link);
}

void write_reuse(Thread& t, std::uint64_t sample, std::uint64_t how, std::uint64_t time,
                 std::uint64_t pc, std::uint64_t address, std::uint64_t word) {
    if (!t.writer.room(6)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_REUSE, sample));
    t.writer.put(how);
    t.writer.put(time);
    t.writer.put(pc);
    t.writer.put(address);
    t.writer.put(word);
}

struct Span {
    std::uint64_t address, bytes;
    bool covers(std::uint64_t word) const { return address < word + 8 && word < address + bytes; }
};

// A look-ahead from one sample.
class Look {
 public:
    Look(Thread& thread, bool follows_vectors)
        : t_(thread),
          ahead_(thread.state, thread.memory, follows_vectors ? &thread.vectors : nullptr),
          shift_(process.settings.shift) {}

    // Runs to the use: the `wanted`-th block accessed, or the last before it that can be known.
    bool find_use(unsigned wanted) {
        for (unsigned i = 0; i < kMostInstructions && !use_found_; i++) {
            std::uint64_t pc = t_.state.pc;
            Step step = ahead_.step();
            if (step == Step::stop) {
                stopped_ = true;
                break;
            }
            if (step == Step::access) meet_before_use(pc, wanted);
        }
        return use_pc_ != 0;
    }

    // Runs on from the use, for `window` accesses.
    void find_reuse(std::uint64_t window, std::uint64_t instructions) {
        if (reuse_ != 0) return;  // in the same instruction
        for (; !stopped_ && instructions > 0 && accesses_ - use_index_ < window; instructions--) {
            std::uint64_t pc = t_.state.pc;
            Step step = ahead_.step();
            if (step == Step::stop) {
                stopped_ = true;
                break;
            }
            if (step != Step::access) continue;
            for_blocks(ahead_.touched(), [&](std::uint64_t block, std::uint64_t) {
                accesses_++;
                if (reuse_ != 0) return;
                if (block == use_block_) {
                    reuse_ = accesses_ - use_index_;
                    reuse_pc_ = pc;
                } else
                    t_.distinct.add(block);
            });
            if (reuse_ == 0) continue;
            spans_reuse_ = {ahead_.touched().address, total_bytes(ahead_.touched())};
            return;
        }
    }

    // Runs on to find two words not met before, a few thousand and some tens of thousand accesses on.
    bool find_mileposts(std::uint64_t instructions, Milepost (&post)[2]) {
        memset(t_.seen, 0, sizeof t_.seen);
        post[0].word = post[1].word = 0;
        for (; !stopped_ && instructions > 0 && accesses_ < kLastMilepost; instructions--) {
            std::uint64_t pc = t_.state.pc;
            if (Step step = ahead_.step(); step == Step::stop)
                break;
            else if (step != Step::access)
                continue;
            Milepost* next = accesses_ < kFirstMilepost         ? nullptr
                             : post[0].word == 0                ? &post[0]
                             : accesses_ > 4 * post[0].accesses ? &post[1]
                                                                : nullptr;
            for_blocks(ahead_.touched(), [&](std::uint64_t, std::uint64_t address) {
                accesses_++;
                std::uint64_t word = address & ~std::uint64_t{7};
                auto hash = static_cast<unsigned>(word * 0x9e3779b97f4a7c15 >> 48);
                std::uint64_t bit = std::uint64_t{1} << (hash & 63);
                std::uint64_t& bits = t_.seen[hash >> 6];
                if (next != nullptr && !(bits & bit)) *next = {word, pc, accesses_};
                bits |= bit;
            });
        }
        return post[1].word != 0;
    }

    // Touches of the watched word from the interruption to the use, the use included.
    std::uint64_t touches(std::uint64_t word) const {
        std::uint64_t count = 0;
        for (unsigned i = 0; i < spans_; i++) count += span_[i].covers(word);
        return count > 0 ? count : 1;
    }
    bool reuse_touches(std::uint64_t word) const { return spans_reuse_.covers(word); }

    std::uint64_t use_pc() const { return use_pc_; }
    std::uint64_t use_address() const { return use_address_; }
    std::uint64_t use_index() const { return use_index_; }
    unsigned use_bytes() const { return use_bytes_; }
    bool use_writes() const { return use_writes_; }
    std::uint64_t reuse() const { return reuse_; }
    std::uint64_t reuse_pc() const { return reuse_pc_; }
    std::uint64_t looked_at() const { return accesses_ - use_index_; }
    // Whether it ended for want of a vector register's value.
    bool lacked_vectors() const { return stopped_ && ahead_.left_out_vectors(); }

    static constexpr std::uint64_t kFirstMilepost = 1000, kLastMilepost = 10000;

 private:
    static constexpr unsigned kMostInstructions = 4000;
    static constexpr unsigned kSpans = 64;

    static std::uint64_t total_bytes(const MemoryOperation& op) {
        return std::uint64_t{op.pieces} * op.bytes;
    }

    template <class Take>
    void for_blocks(const MemoryOperation& op, Take take) const {
        for (unsigned k = 0; k < op.pieces; k++) {
            std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
            for (std::uint64_t block = low >> shift_; block <= high >> shift_; block++)
                take(block, block << shift_ < low ? low : block << shift_);
        }
    }

    void meet_before_use(std::uint64_t pc, unsigned wanted) {
        const MemoryOperation& op = ahead_.touched();
        if (spans_ < kSpans) span_[spans_++] = {op.address, total_bytes(op)};
        for_blocks(op, [&](std::uint64_t block, std::uint64_t address) {
            accesses_++;
            if (use_found_) {  // the rest of the use's own instruction
                if (block == use_block_ && reuse_ == 0) {
                    reuse_ = accesses_ - use_index_;
                    reuse_pc_ = pc;
                } else if (reuse_ == 0)
                    t_.distinct.add(block);
                return;
            }
            use_pc_ = pc;
            use_block_ = block;
            use_address_ = address;
            use_index_ = accesses_;
            use_bytes_ = op.bytes;
            use_writes_ = op.writes();
            use_found_ = accesses_ == wanted;
        });
    }

    Thread& t_;
    A64Ahead<LookMemory> ahead_;
    unsigned shift_;
    bool stopped_ = false, use_found_ = false, use_writes_ = false;
    unsigned spans_ = 0, use_bytes_ = 0;
    Span span_[kSpans], spans_reuse_{0, 0};
    std::uint64_t accesses_ = 0, use_pc_ = 0, use_block_ = 0, use_address_ = 0, use_index_ = 0;
    std::uint64_t reuse_ = 0, reuse_pc_ = 0;
};

bool is_ours(const Thread& t, std::uint64_t word) {
    auto inside = [&](const void* begin, std::size_t bytes) {
        return word - reinterpret_cast<std::uint64_t>(begin) < bytes;
    };
    return inside(&t, sizeof t) || inside(t.signal_stack, kSignalStack) || inside(&self, sizeof self) ||
           inside(process.stream, REVISIT_STREAM_BYTES);
}

void wait_for(Thread& t, std::uint64_t word, std::uint64_t touches) {
    perf_event_attr attributes;
    set_watchpoint(attributes, word, touches, kStretchData);
    t.stretch.waits = t.stretch.event.open(attributes);
}

// Words that a watchpoint is on.
void avoid_watched(Thread& t) {
    for (unsigned i = 0; i < t.reservoir.watchpoints(); i++)
        if (t.reservoir.held(i)) t.memory.avoid(t.watch[i].word);
    if (t.stretch.waits) t.memory.avoid(t.stretch.post[t.stretch.at].word);
}

// How far to look. Where a use was never met again ahead, looking far is wasted: a watchpoint will do.
// Now and then all is tried again.
std::uint64_t window_for(Thread& t, std::uint8_t& fruitless) {
    constexpr std::uint8_t kEnough = 4;
    if (fruitless < kEnough || t.random.below(16) == 0) return process.settings.window;
    return process.settings.window / 16;
}

// From the interruption to the use and on to its reuse. What vector registers hold is followed only
// where that was needed before: most code that computes with them branches on integers.
Look look_ahead(Thread& t, const ucontext_t& context, bool searches) {
    unsigned wanted = 1 + t.random.below(static_cast<unsigned>(process.settings.spread));
    bool& needs_vectors = t.needs_vectors[context.uc_mcontext.pc >> 6 & 255];
    for (;;) {
        bool follows_vectors = needs_vectors;
        t.memory.start(process.pid);
        avoid_watched(t);
        read_state(t.state, context);
        t.distinct.clear();
        Look look(t, follows_vectors);
        if (look.find_use(wanted)) {
            t.use_state = t.state;
            if (searches) {
                std::uint8_t& fruitless = t.fruitless[look.use_pc() >> 2 & 255];
                look.find_reuse(window_for(t, fruitless), process.settings.budget);
                fruitless = static_cast<std::uint8_t>(look.reuse()      ? 0
                                                      : fruitless < 255 ? fruitless + 1
                                                                        : 255);
            }
        }
        if (follows_vectors || !look.lacked_vectors()) return look;
        needs_vectors = true;
    }
}

// Sets a watchpoint for the sample's use if the reservoir gives it one.
bool watch_for(Thread& t, const Look& look, std::uint64_t word, Reservoir::Choice choice) {
    if (choice.watchpoint < 0) return false;
    auto index = static_cast<unsigned>(choice.watchpoint);
    Watch& watch = t.watch[index];
    watch.word = word;
    watch.sample = t.counts.samples;
    watch.touches = look.touches(word);
    perf_event_attr attributes;
    set_watchpoint(attributes, word, 1 + watch.touches, index + 1);
    if (watch.event.open(attributes)) {
        t.reservoir.set(index);
        return true;
    }
    t.reservoir.release(index);
    return false;
}

void measure_rate(Thread& t, Look& look, std::uint64_t interrupted) {
    Stretch& stretch = t.stretch;
    if (!look.find_mileposts(6 * process.settings.budget, stretch.post) ||
        is_ours(t, stretch.post[0].word) || is_ours(t, stretch.post[1].word))
        return;
    stretch.checks = false;
    stretch.at = 0;
    stretch.from_pc = interrupted;
    wait_for(t, stretch.post[0].word, 1);
}

void check_prediction(Thread& t, const Look& look, std::uint64_t word) {
    if (t.stretch.waits || !look.reuse_touches(word) || look.reuse() <= 64) return;
    t.stretch.checks = true;
    t.stretch.at = 0;
    t.stretch.post[0] = {word, look.reuse_pc(), 0};
    wait_for(t, word, 1 + look.touches(word));
}

void sample(Thread& t, const ucontext_t& context, std::uint64_t now) {
    const Settings& settings = process.settings;
    std::uint64_t number = ++t.counts.samples, interrupted = context.uc_mcontext.pc;
    bool measures = settings.rates && !t.stretch.waits &&
                    (number % settings.rates == 1 || number == 2 || number == 4);
    Look look = look_ahead(t, context, !measures);
    std::uint64_t word = look.use_address() & ~std::uint64_t{7};
    bool have_use = look.use_pc() != 0 && !is_ours(t, word);
    if (!have_use) t.counts.without_address++;

    Reservoir::Choice choice;
    bool watched = false;
    if (have_use && !measures && look.reuse() == 0) {
        choice = t.reservoir.choose(t.random);
        watched = watch_for(t, look, word, choice);
    }
    if (have_use) write_path(t, t.use_state);
    if (!t.writer.room(11)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_USE, (look.use_writes() ? REVISIT_USE_WRITE : 0) |
                                                       (have_use ? 0 : REVISIT_USE_NO_ADDRESS) |
                                                       (measures ? REVISIT_USE_UNSEARCHED : 0) |
                                                       (watched ? REVISIT_USE_WATCHED : 0)));
    t.writer.put(number);
    t.writer.put(program_time(t, now));
    t.writer.put(interrupted);
    t.writer.put(have_use ? look.use_pc() : 0);
    t.writer.put(look.use_address());
    t.writer.put(std::uint64_t{look.use_bytes()});
    t.writer.put(look.use_index());
    t.writer.put(measures ? 0 : look.looked_at());
    t.writer.put(choice.probability);
    t.writer.put(t.period);

    if (have_use && look.reuse() != 0) {
        t.state.pc = look.reuse_pc();
        write_path(t, t.state);
        write_reuse(t, number, REVISIT_REUSE_AHEAD, 0, look.reuse_pc(), look.use_address(),
                    look.reuse() | std::uint64_t{t.distinct.size()} << 32);
        if (settings.check && number % settings.check == 0) check_prediction(t, look, word);
    }
    if (have_use && measures) measure_rate(t, look, interrupted);
}

void milepost_reached(Thread& t, const ucontext_t& context, std::uint64_t now) {
    Stretch& stretch = t.stretch;
    stretch.event.disable();
    if (!stretch.waits) {
        t.counts.stray++;
        return;
    }
    stretch.waits = false;
    t.counts.checked++;
    const Milepost& post = stretch.post[stretch.at];
    if (context.uc_mcontext.pc != post.pc) {
        t.counts.missed++;
        return;
    }
    if (stretch.checks) return;
    if (stretch.at == 0) {
        stretch.at = 1;
        wait_for(t, stretch.post[1].word, 1);
        return;
    }
    std::uint64_t before = stretch.start + process.trap_cost;
    if (now <= before || !t.writer.room(3)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_RATE, stretch.from_pc));
    t.writer.put(post.accesses - stretch.post[0].accesses);
    t.writer.put(now - before);
}

void reused(Thread& t, unsigned index, const ucontext_t& context, std::uint64_t now) {
    Watch& watch = t.watch[index];
    watch.event.disable();
    if (!t.reservoir.held(index)) {
        t.counts.stray++;
        return;
    }
    t.recording += watch.touches * process.step_cost;
    t.memory.start(process.pid);
    avoid_watched(t);
    read_state(t.state, context);
    write_path(t, t.state);
    write_reuse(t, watch.sample, REVISIT_REUSE_TRAPPED, program_time(t, now), context.uc_mcontext.pc,
                watch.word, __builtin_bit_cast(std::uint64_t, t.reservoir.kept(index)));
    t.reservoir.release(index);
}

// The next sample: after the period while all sampling so far has kept to its share of the time (a few
// milliseconds are free, for short runs), else much later. Not in step with what the program does.
void pace(Thread& t, std::uint64_t now, std::uint64_t cost) {
    constexpr std::uint64_t kFree = 6000000;
    const Settings& settings = process.settings;
    std::uint64_t spent = t.recording + cost;
    bool over = settings.share != 0 && spent > kFree + now / 1000 * settings.share;
    std::uint64_t period = over ? settings.period * 4 : settings.period;
    t.period = period * 7 / 8 + t.random.below(static_cast<unsigned>(period / 4));
    t.sampler.set_period(t.period);
}

}  // namespace

void handle_trap(int signal, siginfo_t* info, void* raw) {
    if (info->si_code != kTrapPerf) return pass_on(signal, info, raw);
    Thread* t = self;
    std::uint64_t now = thread_time();
    if (process.calibrates) {
        process.calibrated = now;
        if (t != nullptr) t->stretch.event.disable();
        return;
    }
    if (t == nullptr || !process.active || t->ended) return;
    auto& context = *static_cast<ucontext_t*>(raw);
    std::uint64_t data = signal_data(info);
    t->sampler.disable();
    if (data == kSamplerData)
        sample(*t, context, now);
    else if (data == kStretchData)
        milepost_reached(*t, context, now);
    else if (data >= 1 && data <= kMostWatchpoints)
        reused(*t, static_cast<unsigned>(data - 1), context, now);
    std::uint64_t end = thread_time();
    if (data == kSamplerData) pace(*t, end, end - now + process.trap_cost);
    t->sampler.enable();
    t->recording += end - now + process.trap_cost;
    if (t->stretch.waits && data == kStretchData) t->stretch.start = end;
}

bool start_sampling(Thread& t) {
    perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = t.period = process.settings.period;
    attributes.disabled = 1;
    attributes.sig_data = kSamplerData;
    if (!t.sampler.open(attributes)) return false;
    t.sampler.enable();
    return true;
}

void end_sampling(Thread& t) {
    if (t.ended) return;
    t.sampler.disable();
    t.ended = true;
    t.sampler.close();
    t.stretch.event.close();
    std::uint64_t now = thread_time();
    for (unsigned i = 0; i < t.reservoir.watchpoints(); i++) {
        t.watch[i].event.close();
        if (t.reservoir.held(i))
            write_reuse(t, t.watch[i].sample, REVISIT_REUSE_NEVER, program_time(t, now), 0,
                        t.watch[i].word, __builtin_bit_cast(std::uint64_t, t.reservoir.kept(i)));
    }
    if (t.writer.room(7)) {
        t.writer.put(REVISIT_RECORD(REVISIT_WATCH_CLOCK, program_time(t, now)));
        t.writer.put(t.recording);
        t.writer.put(t.counts.samples);
        t.writer.put(t.counts.without_address);
        t.writer.put(t.counts.checked);
        t.writer.put(t.counts.missed);
        t.writer.put(t.counts.stray);
    }
    t.writer.hand_over();
}

}  // namespace revisit::watch
