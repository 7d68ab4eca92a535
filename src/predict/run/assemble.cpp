// Puts a profile together: sites are references, pairs are streams, objects are arrays.
#include "predict/run/assemble.h"

#include <algorithm>
#include <map>

namespace revisit::predict {

namespace {

// The innermost loop of the function around a reference, as a place in the source.
Frame loop_around(const Function& f, std::uint32_t reference) {
    std::int32_t loop = -1;
    for (const Block& b : f.blocks)
        for (const Instruction& i : b.code) {
            const bool touches = i.op == Op::load || i.op == Op::store || i.op == Op::fill;
            const auto first = static_cast<std::uint32_t>(i.imm);
            if ((touches && first == reference) ||
                (i.op == Op::move && (first == reference || first + 1 == reference)))
                loop = b.loop;
        }
    if (loop < 0) return {};
    // What was moved out of a loop has lost its own line, and file.
    std::string file = f.references[reference].file;
    for (const Reference& r : f.references)
        if (file.empty()) file = r.file;
    return {f.name, file, f.loops[static_cast<std::size_t>(loop)].line};
}

}  // namespace

void Assembly::add_reference(std::uint32_t function, std::uint32_t reference) {
    const Function& f = program_.functions[function];
    const Reference& r = f.references[reference];
    Site site;
    site.id = static_cast<std::uint32_t>(profile_.sites.size()) + 1;
    site.module = r.expression;
    site.offset = r.column;
    site.frame = {r.inlined.empty() ? f.name : r.inlined, r.file, r.line};
    site.loop = loop_around(f, reference);
    if (!r.inlined.empty()) site.inlined.push_back({f.name, r.file, 0});
    profile_.sites.push_back(std::move(site));
    by_site_.emplace_back(bins_);
    array_of_.push_back(r.array);
    writes_.push_back(r.write);
}

void Assembly::add_stream(std::int32_t reference, std::int32_t source, const DistanceCounter& count) {
    total_.front().merge(count);
    by_site_[static_cast<std::size_t>(reference)].merge(count);
    if (source == kCold) return;
    Pair pair;
    pair.use = profile_.sites[static_cast<std::size_t>(source)].id;
    pair.reuse = profile_.sites[static_cast<std::size_t>(reference)].id;
    pair.distances = count.histogram();
    pair.count = pair.distances.total();
    if (pair.count > 0) profile_.pairs.push_back(std::move(pair));
}

Profile Assembly::finish() {
    profile_.reuse = total_.front().histogram();
    for (std::size_t i = 0; i < profile_.sites.size(); ++i)
        profile_.sites[i].reuse = by_site_[i].histogram();
    return describe();
}

Profile Assembly::finish(Profile measured) {
    profile_.reuse = std::move(measured.reuse);
    for (Site& s : measured.sites)
        if (s.id >= 1 && s.id <= profile_.sites.size())
            profile_.sites[s.id - 1].reuse = std::move(s.reuse);
    profile_.pairs = std::move(measured.pairs);
    return describe();
}

Profile Assembly::describe() {
    profile_.accesses = profile_.reuse.total();
    profile_.distinct = profile_.reuse.cold;
    std::map<std::string, Object> objects;
    for (std::size_t i = 0; i < profile_.sites.size(); ++i) {
        Site& s = profile_.sites[i];
        s.accesses = s.reuse.total();
        s.writes = writes_[i] ? s.accesses : 0;
        Object& o = objects[array_of_[i]];
        o.kind = "array";
        o.name = array_of_[i];
        o.accesses += s.accesses;
        o.reuse.merge(s.reuse);
    }
    for (auto& [name, o] : objects) {
        for (const Global& g : program_.globals)
            if (g.name == name) {
                o.bytes = g.size;
                o.kind = "global";
            }
        profile_.objects.push_back(std::move(o));
    }
    std::sort(profile_.pairs.begin(), profile_.pairs.end(),
              [](const Pair& a, const Pair& b) { return a.count > b.count; });
    return std::move(profile_);
}

}  // namespace revisit::predict
