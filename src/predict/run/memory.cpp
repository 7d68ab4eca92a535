// What memory holds: integers that the program wrote, tables, and what the user gave.
#include <algorithm>
#include <bit>

#include "predict/run/arithmetic.h"
#include "predict/run/machine.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kFirstFound = 1000;  // after the arguments
constexpr std::uint64_t kMostFound = 1 << 20;

}  // namespace

void Machine::note_entry(std::uint64_t address) {
    for (const auto k : tables_)
        if (address >= globals_[k] && address < globals_[k] + program_.globals[k].size)
            if (const auto entry = (address - globals_[k]) / program_.globals[k].element;
                entry < trace_.tables[k].size())
                trace_.tables[k][entry] = true;
}

// What a given array holds there; or, of a pointer that nobody here wrote, as std::vector has one, an
// array of its own.
bool Machine::load_given(Frame& f, const Instruction& i, std::uint64_t address) {
    const Reference& r = program_.functions[f.function].references[i.imm];
    const auto bytes = r.size;
    if (!overwritten_.empty() && overwritten_.contains(address)) return false;
    // The heap and the stack hold what was written here, or nothing.
    const bool elsewhere = address >= kArgumentBase || address < kHeapBase;
    if (r.pointer && elsewhere && found_ < kMostFound) {
        f.values[i.dst] = found_array(address, bytes);
        f.known[i.dst] = 1;
        return true;
    }
    for (const auto& [start, end, table] : given_) {
        if (address < start || address >= end) continue;
        const auto entry = (address - start) / table->element;
        if (bytes != table->element || (address - start) % bytes != 0) return false;
        if (!table->random && entry >= table->values.size()) {
            if (address >= kArgumentBase)  // a global may be given in part
                stop("reads " + table->name + "[" + std::to_string(entry) + "], and its data gives " +
                         std::to_string(table->values.size()) + " entries",
                     i.line, ErrorCode::no_data);
            return false;
        }
        if (!table->known.empty() && !table->known[entry]) return false;
        f.values[i.dst] = sign_extend(table->at(entry), i.width);
        f.known[i.dst] = 1;
        return true;
    }
    return false;
}

std::int64_t Machine::found_array(std::uint64_t address, std::uint32_t bytes) {
    // In other layouts, elsewhere within a line.
    const auto moved = options_.layout < 0 ? bits(-options_.layout) * (found_ % 4 + 1) % kLine : 0;
    const auto start = signed_of(argument_base(kFirstFound + found_++) + moved);
    hold(address, {start, bytes});
    return start;
}

// The pointer before it is where the vector starts.
void Machine::load_end(Frame& f, const Instruction& i, std::uint64_t address) {
    const Reference& r = program_.functions[f.function].references[i.imm];
    const auto start = memory_.find(address - 8);
    f.values[i.dst] = (start == memory_.end() ? found_array(address - 8, 8) : start->second.value) +
                      f.values[i.c] * static_cast<std::int64_t>(r.element);
    f.known[i.dst] = f.known[i.c];
}

bool Machine::same_on_stack(std::uint64_t address, std::uint64_t size, std::uint64_t owner) {
    auto at = locals_.lower_bound(address);
    if (at != locals_.end() && at->first == address && at->second.end == address + size)
        return at->second.owner == owner;
    if (at != locals_.end() && at->first < address + size) return false;
    if (at != locals_.begin() && std::prev(at)->second.end > address) return false;
    locals_.emplace_hint(at, address, OnStack{address + size, owner});
    return true;
}

void Machine::overwrite_given(std::uint64_t address, std::uint32_t bytes) {
    for (const auto& [start, end, table] : given_)
        if (address + bytes > start && address < end) {
            const auto first = std::max(address, start);
            for (auto at = first - (first - start) % table->element; at < address + bytes;
                 at += table->element)
                overwritten_.insert(at);
        }
}

// What a store covers, in part or whole, is no longer what it was.
void Machine::forget(std::uint64_t address, std::uint32_t bytes) {
    const std::uint64_t end = address + bytes;
    for (std::uint64_t at = address - 15; at < end;) {
        const std::uint64_t left = held(at) >> at % 64;  // of the line
        if (left == 0) {
            at += 64 - at % 64;
            continue;
        }
        at += static_cast<std::uint64_t>(std::countr_zero(left));
        if (at >= end) break;
        if (const auto old = memory_.find(at); old != memory_.end() && at + old->second.bytes > address)
            memory_.erase(old);
        ++at;
    }
}

// A block of memory filled or moved is one access, or a read and a write.
void Machine::transfer(Frame& f, const Instruction& i) {
    const bool moving = i.op == Op::move;
    const auto length_reg = moving ? i.c : i.b;
    if (!f.known[length_reg]) stop("the length of a copied block depends on data", i.line);
    const auto to = address_in(f, i.a, i.line);
    const auto from = moving ? address_in(f, i.b, i.line) : 0;
    const auto length = static_cast<std::uint64_t>(f.values[length_reg]);
    // One access each, as long as it is: a cutter makes blocks of it.
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 31;
    for (const bool write : {false, true})
        for (std::uint64_t at = 0; at < length && (write || moving); at += kLongest)
            access(f, static_cast<std::uint32_t>(i.imm) + (moving && write ? 1 : 0),
                   (write ? to : from) + at,
                   static_cast<std::uint32_t>(std::min(kLongest, length - at)));
    if (!program_.memory_needed || length == 0) return;
    if (moving)
        move_values(to, from, length);
    else
        fill_values(to, length, i.c >= 0 && f.known[i.c] ? static_cast<int>(f.values[i.c] & 255) : -1);
}

namespace {

// Entries of a map by address that overlap a range, each given to `found`, which says whether it goes.
template <class Map, class Bytes, class Found>
void overlapping(Map& map, std::uint64_t start, std::uint64_t length, const Bytes& bytes,
                 const Found& found) {
    if (map.size() <= length) {
        for (auto at = map.begin(); at != map.end();)
            if (at->first < start + length && at->first + bytes(at->second) > start && found(*at))
                at = map.erase(at);
            else
                ++at;
        return;
    }
    for (std::uint64_t a = start - 15; a < start + length; ++a)
        if (const auto at = map.find(a); at != map.end() && a + bytes(at->second) > start && found(*at))
            map.erase(at);
}

}  // namespace

// Nothing is known of a range any more but what `byte` says.
void Machine::fill_values(std::uint64_t start, std::uint64_t length, int byte) {
    const auto all = [](const auto&) { return true; };
    overlapping(
        memory_, start, length, [](const Stored& s) { return s.bytes; }, all);
    overlapping(
        touched_, start, length, [](std::uint32_t bytes) { return bytes; }, all);
    const auto end = start + length;
    auto at = filled_.upper_bound(start);
    if (at != filled_.begin()) --at;
    while (at != filled_.end() && at->first < end) {
        const auto [first, old] = *at;
        if (old.end <= start) {
            ++at;
            continue;
        }
        at = filled_.erase(at);
        if (first < start) filled_[first] = {start, old.byte};
        if (old.end > end) at = filled_.insert_or_assign(end, Filled{old.end, old.byte}).first;
    }
    filled_[start] = {end, byte};
}

// One range becomes what another is: numbers known there are known here.
void Machine::move_values(std::uint64_t to, std::uint64_t from, std::uint64_t length) {
    std::vector<std::pair<std::uint64_t, Stored>> known;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> touched;
    std::vector<std::pair<std::uint64_t, Filled>> filled;
    overlapping(
        memory_, from, length, [](const Stored& s) { return s.bytes; },
        [&](const auto& entry) {
            if (entry.first >= from && entry.first + entry.second.bytes <= from + length)
                known.emplace_back(entry);
            return false;
        });
    overlapping(
        touched_, from, length, [](std::uint32_t bytes) { return bytes; },
        [&](const auto& entry) {
            touched.emplace_back(entry);
            return false;
        });
    auto at = filled_.upper_bound(from);
    if (at != filled_.begin()) --at;
    for (; at != filled_.end() && at->first < from + length; ++at)
        if (at->second.end > from) filled.emplace_back(*at);
    fill_values(to, length, -1);
    for (const auto& [start, piece] : filled) {
        const auto first = std::max(start, from), end = std::min(piece.end, from + length);
        fill_values(first - from + to, end - first, piece.byte);
    }
    for (const auto& [address, bytes] : touched) touched_[address - from + to] = bytes;
    for (const auto& [address, stored] : known) {
        hold(address - from + to, stored);
        touched_[address - from + to] = stored.bytes;
    }
}

// Within a filled range: whether nothing was stored there since, and what it holds then.
bool Machine::in_filled(std::uint64_t address, std::uint32_t bytes, std::int64_t& value, bool& known) {
    auto at = filled_.upper_bound(address + bytes - 1);
    if (at == filled_.begin() || std::prev(at)->second.end <= address) return false;
    --at;
    known =
        at->first <= address && at->second.end >= address + bytes && at->second.byte >= 0 && bytes <= 8;
    if (!touched_.empty())
        for (std::uint64_t a = mixed_ ? address - 15 : address; a < address + bytes && known; ++a)
            if (const auto t = touched_.find(a); t != touched_.end() && a + t->second > address)
                known = false;
    value = 0;
    for (std::uint32_t k = 0; k < bytes && known; ++k)
        value |= static_cast<std::int64_t>(static_cast<std::uint64_t>(at->second.byte) << (8 * k));
    return true;
}

void Machine::touch_filled(std::uint64_t address, std::uint32_t bytes) {
    for (std::uint32_t k = 0; k < bytes; k += 8)
        touched_[address + k] = std::min<std::uint32_t>(8, bytes - k);
}

std::vector<Doubt> Trace::doubts_at(std::uint64_t granularity) const {
    auto kept = doubts;
    if (granularity > 1)
        std::erase_if(kept, [](const Doubt& d) { return d.kind == Doubt::Kind::bulk; });
    return kept;
}

}  // namespace revisit::predict
