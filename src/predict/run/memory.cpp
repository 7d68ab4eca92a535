// What memory holds: integers that the program wrote, tables, and what the user gave.
#include <algorithm>

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
                stop("reads " + table->name + "[" + std::to_string(entry) + "], and --data gives " +
                         std::to_string(table->values.size()) + " entries",
                     i.line);
            return false;
        }
        f.values[i.dst] = sign_extend(table->at(entry), i.width);
        f.known[i.dst] = 1;
        return true;
    }
    return false;
}

std::int64_t Machine::found_array(std::uint64_t address, std::uint32_t bytes) {
    const auto start = signed_of(argument_base(kFirstFound + found_++));
    memory_[address] = {start, bytes};
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
    for (std::uint64_t at = address - 15; at < address + bytes; ++at)
        if (const auto old = memory_.find(at); old != memory_.end() && at + old->second.bytes > address)
            memory_.erase(old);
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
    if (program_.memory_needed)
        doubt(Doubt::Kind::general, "integers are copied in bulk; the copies' values are not followed",
              i.line);
}

std::vector<Doubt> Trace::doubts_at(std::uint64_t granularity) const {
    auto kept = doubts;
    if (granularity > 1)
        std::erase_if(kept, [](const Doubt& d) { return d.kind == Doubt::Kind::bulk; });
    return kept;
}

}  // namespace revisit::predict
