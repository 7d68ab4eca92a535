// Labelled reuse: runs into rows.
#include "predict/fit/rows.h"

#include <bit>

namespace revisit::predict {

DistanceStack::DistanceStack(std::size_t accesses)
    : marks_(accesses / 64 + 1, 0), tree_(marks_.size() + 1, 0), keys_(1024, 0), last_(1024, -1) {}

void DistanceStack::grow() {
    const auto keys = std::move(keys_);
    const auto last = std::move(last_);
    keys_.assign(keys.size() * 2, 0);
    last_.assign(last.size() * 2, -1);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (last[i] < 0) continue;
        std::size_t slot = slot_of(keys[i]);
        while (last_[slot] >= 0) slot = (slot + 1) & (keys_.size() - 1);
        keys_[slot] = keys[i];
        last_[slot] = last[i];
    }
}

DistanceStack::Answer DistanceStack::access(std::uint64_t block) {
    if (distinct_ * 2 >= keys_.size()) grow();
    std::size_t slot = slot_of(block);
    while (last_[slot] >= 0 && keys_[slot] != block) slot = (slot + 1) & (keys_.size() - 1);
    Answer answer;
    if (last_[slot] >= 0) {
        answer.previous = last_[slot];
        const auto then = static_cast<std::size_t>(last_[slot]);
        if (then + 1 == now_) {  // immediate repeat, the commonest case
            answer.distance = 0;
        } else {
            std::int64_t upto = std::popcount(marks_[then / 64] << (63 - then % 64));
            for (std::size_t at = then / 64; at > 0; at -= at & (~at + 1)) upto += tree_[at];
            answer.distance = static_cast<std::int64_t>(distinct_) - upto;
        }
        marks_[then / 64] ^= std::uint64_t{1} << then % 64;
        if (then / 64 != now_ / 64) count(then / 64, -1), count(now_ / 64, 1);
    } else {
        keys_[slot] = block;
        ++distinct_;
        count(now_ / 64, 1);
    }
    last_[slot] = static_cast<std::int32_t>(now_);
    marks_[now_ / 64] |= std::uint64_t{1} << now_ % 64;
    ++now_;
    return answer;
}

void DistanceStack::count(std::size_t word, std::int32_t by) {
    for (++word; word < tree_.size(); word += word & (~word + 1)) tree_[word] += by;
}

bool RowTable::add(const Program& program, const Trace& trace, const std::vector<std::int64_t>& size) {
    for (const auto& place : trace.references)
        if (place.loops.size() + sizes_ > kMaxVariables) return false;
    const auto sample = static_cast<std::int32_t>(samples_.size());
    samples_.push_back(size);
    std::vector<std::int32_t> reference_of(trace.references.size());
    for (std::size_t i = 0; i < trace.references.size(); ++i) {
        const auto& place = trace.references[i];
        const auto key = std::tuple{place.function, place.reference, place.context};
        const auto [at, fresh] =
            reference_index_.try_emplace(key, static_cast<std::int32_t>(references_.size()));
        if (fresh) {
            ReferenceInfo info{place.function, place.reference, place.context, {}, {}, {}};
            for (const auto l : place.loops)
                info.loops.push_back(
                    program.functions[trace.loops[l].function].loops[trace.loops[l].loop].variable);
            references_.push_back(std::move(info));
        }
        reference_of[i] = at->second;
        auto& info = references_[at->second];
        info.indices.resize(samples_.size());
        info.indices.back() = place.indices;
    }
    for (auto& info : references_) {
        info.totals.resize(samples_.size(), 0);
        info.indices.resize(samples_.size());
    }

    std::size_t blocks = 0;
    const auto span_of = [&](const Access32& a) {
        return granularity_ <= 1 || a.size <= 1
                   ? std::uint64_t{0}
                   : (a.address + a.size - 1) / granularity_ - a.address / granularity_;
    };
    for (const auto& a : trace.accesses) blocks += 1 + span_of(a);
    DistanceStack stack(blocks);
    std::vector<std::uint32_t> history;  // reference by access number
    history.reserve(blocks);
    std::vector<std::int32_t> streams_of_reference;
    std::int32_t chain_run[kMaxVariables];
    std::uint32_t chain_iteration[kMaxVariables];
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
        const auto& a = trace.accesses[i];
        if (i + kAhead < trace.accesses.size()) {
            const auto address = trace.accesses[i + kAhead].address;
            stack.prefetch(granularity_ <= 1 ? address : address / granularity_);
        }
        const auto reference = reference_of[a.reference];
        const std::size_t loops = references_[reference].loops.size();
        const auto extra = span_of(a);
        for (std::uint64_t k = 0; k <= extra; ++k) {
            const auto block = granularity_ <= 1 ? a.address : a.address / granularity_ + k;
            const auto answer = stack.access(block);
            const auto source =
                answer.previous < 0 ? kCold : static_cast<std::int32_t>(history[answer.previous]);
            history.push_back(static_cast<std::uint32_t>(reference));
            const auto [at, fresh] = stream_index_.try_emplace(
                {reference, source}, static_cast<std::int32_t>(streams_.size()));
            if (fresh) {
                auto& s = streams_.emplace_back();
                s.reference = reference;
                s.source = source;
                s.loops = loops;
                s.points.variables = sizes_ + loops;
            }
            auto& s = streams_[at->second];
            references_[reference].totals.back() += 1;
            ++rows_;
            if (const auto n = s.seen++; n >= kept_.whole && n % kept_.every != 0) continue;
            for (const auto n : size) s.points.x.push_back(static_cast<std::int32_t>(n));
            auto run = a.run;
            auto iteration = a.iteration;
            for (std::size_t l = loops; l-- > 0;) {
                chain_run[l] = run;
                chain_iteration[l] = iteration;
                iteration = trace.runs[run].parent_iteration;
                run = trace.runs[run].parent;
            }
            for (std::size_t l = 0; l < loops; ++l) {
                const auto& r = trace.runs[chain_run[l]];
                const auto t = chain_iteration[l];
                s.points.x.push_back(static_cast<std::int32_t>(t));
                s.left.push_back(static_cast<std::int32_t>(r.iterations - 1 - t));
                const bool linear = trace.loops[r.loop].linear;
                s.value.push_back(linear ? static_cast<std::int32_t>(r.first + r.step * t)
                                         : static_cast<std::int32_t>(t));
            }
            s.points.y.push_back(answer.distance);
            s.sample.push_back(sample);
            s.phase.push_back(
                granularity_ <= 1 ? 0 : static_cast<std::uint16_t>(k ? 0 : a.address % granularity_));
        }
    }
    return true;
}

}  // namespace revisit::predict
