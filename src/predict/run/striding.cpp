// Rounds of an inner loop taken at once.
//
// Two rounds of a loop that went the same way show how far each of its registers moves per round; a
// third and all that follow then do the same a stride further, as long as every comparison on the way
// comes out alike (affine_path.cpp finds how long). Their accesses are arithmetic progressions. Loops
// where that keeps failing are left alone for a while.
#include <algorithm>

#include "predict/run/arithmetic.h"
#include "predict/run/machine.h"

namespace revisit::predict {

// At a header: rounds that are known to repeat are taken at once.
void Machine::stride(Frame& f) {
    Active& a = f.loops.back();
    if (knowledge_.size() <= a.place) knowledge_.resize(a.place + 1);
    Known& known = knowledge_[a.place];
    if (known.rest > 0) {
        if (a.iteration == 0) --known.rest;
        return;
    }
    if (known.path && advance(f, known)) return;
    if (!f.whole || a.iteration == 0) return;
    if (!f.observed) {
        f.before = f.values;
        f.observed = true;
        return;
    }
    // Two rounds were seen: how far did each register move?
    if (!known.path || known.path->blocks != f.path)
        known.path = path_of(program_, program_.functions[f.function], f.path);
    if (known.path) {
        auto& p = *known.path;
        for (std::size_t c = 0; c < p.carried.size(); ++c)
            p.steps[c] = static_cast<std::int64_t>(static_cast<std::uint64_t>(f.values[p.carried[c]]) -
                                                   static_cast<std::uint64_t>(f.before[p.carried[c]]));
        if (advance(f, known)) return;
    }
    f.before = f.values;
    known.misses += 2;
    if (known.misses > 16) {
        known.rest = 64;
        known.misses = 8;
    }
}

bool Machine::advance(Frame& f, Known& known) {
    Active& a = f.loops.back();
    const Function& function = program_.functions[f.function];
    const auto& path = *known.path;
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const auto rounds = strider_.run(program_, function, path, kMost, f.values, f.known);
    if (rounds == 0) return false;
    const auto accesses = strider_.accesses();
    // A run cut short ends with a whole round.
    std::int64_t taken = rounds;
    const auto left = options_.max_accesses - trace_.count;
    if (!accesses.empty())
        taken = std::min<std::int64_t>(taken, static_cast<std::int64_t>(left / accesses.size()));
    taken = std::min<std::int64_t>(taken, 0xfffffff0LL - a.iteration);
    emit(f, taken);
    if (taken < rounds || rounds == kMost) throw Stop{Stop::Why::budget, {}, 0};
    const auto& l = function.loops[a.loop];
    if (l.induction >= 0) {
        const auto at = std::find(path.carried.begin(), path.carried.end(), l.induction);
        const bool moves =
            std::find(path.written.begin(), path.written.end(), l.induction) != path.written.end();
        const auto step = at != path.carried.end()
                              ? path.steps[static_cast<std::size_t>(at - path.carried.begin())]
                              : 0;
        if (a.iteration == 0)
            a.step = step;
        else if (a.step != step)
            trace_.loops[a.place].linear = false;
        if (moves && at == path.carried.end()) trace_.loops[a.place].linear = false;
        a.last = f.values[l.induction];
    }
    a.iteration += static_cast<std::uint32_t>(taken);
    auto& counts = trace_.block_counts[f.function];
    for (const auto b : path.blocks) counts[b] += static_cast<std::uint64_t>(taken);
    if (options_.watch > 0 && taken > 0) strider_.observe_into(trace_.observed, taken);
    steps_ += static_cast<std::uint64_t>(path.code) + static_cast<std::uint64_t>(taken);
    known.misses += taken < 4 ? 1 : taken >= 12 ? -known.misses : 0;
    if (known.misses > 16) {
        known.rest = 64;
        known.misses = 8;
    }
    f.path.clear();
    f.whole = true;
    f.observed = false;
    return true;
}

// The accesses of so many rounds.
void Machine::emit(Frame& f, std::int64_t rounds) {
    if (rounds <= 0) return;
    const auto accesses = strider_.accesses();
    const auto& references = program_.functions[f.function].references;
    progressions_.clear();
    for (const auto& x : accesses) {
        const auto place = reference_place(f, x.reference);
        progressions_.push_back(
            {place, x.address, x.step, rounds, references[x.reference].size, accesses.size()});
        for (std::size_t k = 0; k < x.indices.size(); ++k) {
            auto& index = trace_.references[place].indices[k];
            index.add(x.indices[k].first);
            index.add(x.indices[k].first + x.indices[k].step * (rounds - 1));
        }
    }
    if (muted_) return;
    if (options_.progression)
        for (const auto& p : progressions_) options_.progression(p);
    const auto& a = f.loops.back();
    if (options_.keep) {
        for (std::int64_t t = 0; t < rounds; ++t)
            for (auto& p : progressions_) {
                trace_.accesses.push_back({p.address, p.reference, a.run,
                                           a.iteration + static_cast<std::uint32_t>(t), p.size});
                p.address += static_cast<std::uint64_t>(p.step);
            }
    }
    if (options_.sink && !progressions_.empty()) hand_on(rounds);
    trace_.count += accesses.size() * static_cast<std::uint64_t>(rounds);
}

void Machine::hand_on(std::int64_t rounds) {
    const auto block = signed_of(options_.block_bytes);
    const auto far = [&](const Stretch& p) {
        return p.address >> 63 || p.step >= block || p.step <= -block;
    };
    if (options_.again && std::none_of(progressions_.begin(), progressions_.end(), far))
        return hand_on_crossing(rounds);
    for (std::int64_t t = 0; t < rounds;) {
        const auto now = std::min<std::int64_t>(
            rounds - t, static_cast<std::int64_t>(kBatch / progressions_.size()) + 1);
        for (std::int64_t k = 0; k < now; ++k) hand_on_round();
        t += now;
        if (out_addresses_.size() >= kBatch) flush();
    }
}

inline void Machine::hand_on_round() {
    for (auto& p : progressions_) {
        out_addresses_.push_back(p.address);
        out_references_.push_back(p.reference);
        out_sizes_.push_back(p.size);
        p.address += static_cast<std::uint64_t>(p.step);
    }
}

// Only the rounds in which an access crosses into another block.
void Machine::hand_on_crossing(std::int64_t rounds) {
    // Rounds that follow this one until an end of the access leaves its block.
    const auto until_crossing = [&](const Stretch& p) {
        if (p.step == 0) return INT64_MAX;
        const auto block = options_.block_bytes;
        const auto first = p.address % block,
                   last = (p.address + std::max<std::uint32_t>(p.size, 1) - 1) % block;
        return p.step > 0 ? signed_of(block - 1 - std::max(first, last)) / p.step
                          : signed_of(std::min(first, last)) / -p.step;
    };
    staying_.assign(progressions_.size(), -1);
    for (std::int64_t t = 0; t < rounds; ++t) {
        auto times = rounds - t - 1;
        for (std::size_t k = 0; k < progressions_.size(); ++k) {
            if (staying_[k] < 0) staying_[k] = until_crossing(progressions_[k]);
            times = std::min(times, staying_[k]);
        }
        if (times > 0) options_.again(progressions_, times);
        hand_on_round();
        for (auto& p : progressions_) p.address += bits(p.step) * bits(times);
        for (auto& left : staying_) left -= times + 1;
        t += times;
        if (out_addresses_.size() >= kBatch) flush();
    }
}

// Leaves out iterations that were asked to be.
void Machine::leap(Frame& f, Active& a) {
    if (depth_ != 1) return;
    const auto at = options_.leaps.find(a.loop);
    if (at == options_.leaps.end() || at->second.from != a.iteration) return;
    const auto n = at->second.iterations;
    for (const Advance& r : at->second.registers)
        f.values[r.reg] =
            sign_extend(signed_of(bits(f.values[r.reg]) + bits(n) * bits(r.step)), r.width);
    a.iteration += static_cast<std::uint32_t>(n);
    const auto induction = program_.functions[f.function].loops[a.loop].induction;
    if (induction >= 0) a.last = f.values[induction];
}

void Machine::report(const Frame& f, std::int32_t loop, std::uint32_t iteration) {
    if (!is_reported(f, loop)) return;
    if (options_.sink && !out_addresses_.empty()) flush();
    options_.report(f.function, loop, iteration);
}

}  // namespace revisit::predict
