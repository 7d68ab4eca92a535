#include "symbols/origins.h"

#include <nlohmann/json.hpp>

namespace revisit {
namespace {

using Json = nlohmann::json;

}  // namespace

bool Origins::operator==(const Origins& other) const {
    return to_trace_info(*this).extra_json == to_trace_info(other).extra_json &&
           modules == other.modules;
}

TraceInfo to_trace_info(const Origins& a) {
    TraceInfo info;
    info.modules = a.modules;
    info.command = a.command;
    for (const Label& label : a.labels) {
        const CodePlace& place = a.places[label.place];
        std::uint64_t address = place.offset;
        if (place.module != kNowhere)
            address += a.modules[place.module].low - a.modules[place.module].file_offset;
        info.site_addresses.push_back(address);
    }
    Json json;
    for (Json& list : {std::ref(json["literals"]), std::ref(json["places"]), std::ref(json["contexts"]),
                       std::ref(json["objects"]), std::ref(json["labels"])})
        list = Json::array();
    for (const auto& frames : a.literals) {
        Json list = Json::array();
        for (const Frame& f : frames) list.push_back({f.function, f.file, f.line});
        json["literals"].push_back(std::move(list));
    }
    for (const CodePlace& p : a.places) json["places"].push_back({p.module, p.offset, p.literal});
    for (const ContextNode& c : a.contexts) json["contexts"].push_back({c.parent, c.place});
    for (const DataObject& o : a.objects)
        json["objects"].push_back({o.kind, o.name, o.bytes, o.place, o.context});
    for (const Label& l : a.labels) {
        json["labels"].push_back({l.place, l.context, l.object});
        if (l.offset != kNoOffset) json["labels"].back().push_back(l.offset);
    }
    if (!a.extents.empty()) json["extents"] = Json::array();
    for (const Extent& e : a.extents) json["extents"].push_back({e.low, e.high, e.object});
    info.extra_json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return info;
}

Result<Origins> origins_from(const TraceInfo& info) {
    Origins a;
    a.modules = info.modules;
    a.command = info.command;
    try {
        Json json = Json::parse(info.extra_json);
        for (const Json& frames : json.at("literals")) {
            auto& to = a.literals.emplace_back();
            for (const Json& f : frames) to.push_back({f.at(0), f.at(1), f.at(2)});
        }
        for (const Json& p : json.at("places")) a.places.push_back({p.at(0), p.at(1), p.at(2)});
        a.contexts.clear();
        for (const Json& c : json.at("contexts")) a.contexts.push_back({c.at(0), c.at(1)});
        for (const Json& o : json.at("objects"))
            a.objects.push_back({o.at(0), o.at(1), o.at(2), o.at(3), o.at(4)});
        for (const Json& l : json.at("labels")) {
            a.labels.push_back({l.at(0), l.at(1), l.at(2)});
            if (l.size() > 3) a.labels.back().offset = l.at(3);
        }
        if (auto extents = json.find("extents"); extents != json.end())
            for (const Json& e : *extents) a.extents.push_back({e.at(0), e.at(1), e.at(2)});
    } catch (const Json::exception&) {
        return fail("the trace's attribution is broken");
    }
    // Indices come from a file: none may point outside.
    auto within = [](std::uint32_t index, const auto& list, bool may_be_nowhere) {
        return index < list.size() || (may_be_nowhere && index == kNowhere);
    };
    bool sound = !a.contexts.empty();
    for (const CodePlace& p : a.places)
        sound = sound && within(p.module, a.modules, true) && within(p.literal, a.literals, true);
    for (std::size_t i = 1; i < a.contexts.size(); i++)
        sound = sound && a.contexts[i].parent < i &&
                (within(a.contexts[i].place, a.places, false) || begins_thread(a.contexts[i].place));
    for (const DataObject& o : a.objects)
        sound = sound && within(o.place, a.places, true) && within(o.context, a.contexts, false);
    for (std::size_t i = 0; i < a.extents.size(); i++)
        sound = sound && within(a.extents[i].object, a.objects, false) &&
                a.extents[i].low < a.extents[i].high &&
                (i == 0 || a.extents[i - 1].high <= a.extents[i].low);
    for (const Label& l : a.labels)
        sound = sound && within(l.place, a.places, false) && within(l.context, a.contexts, false) &&
                within(l.object, a.objects, true);
    if (!sound) return fail("the trace's attribution points outside of its tables");
    return a;
}

}  // namespace revisit
