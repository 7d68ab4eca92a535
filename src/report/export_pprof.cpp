// pprof's profile.proto, written by hand: tag, length, bytes. Messages are a handful, so no generator
// and no library is needed for them.
//
// Values of a sample are accesses, first touches and the misses in each cache, all counts. A site is
// the leaf location, with the functions it was inlined into as further lines; calls follow outwards.
// The file may be gzipped or not; `-o x.pb.gz` packs.
#include <fmt/format.h>

#include <cmath>
#include <ranges>
#include <unordered_map>

#include "report/exports.h"
#include "report/paths.h"

namespace revisit {
namespace {

class Message {
 public:
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;
        varint(field << 3);
        varint(value);
    }
    void bytes(unsigned field, std::string_view content) {
        varint(field << 3 | 2);
        varint(content.size());
        out_ += content;
    }
    void numbers(unsigned field, const std::vector<std::uint64_t>& values) {  // packed
        Message inner;
        for (std::uint64_t value : values) inner.varint(value);
        bytes(field, inner.out_);
    }
    const std::string& text() const { return out_; }
    std::string take() { return std::move(out_); }

 private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
        out_ += static_cast<char>(value);
    }
    std::string out_;
};

// Tables of profile.proto: strings, functions, mappings and locations, each entry once.
class Tables {
 public:
    Tables() { text(""); }

    std::uint64_t text(const std::string& value) {
        auto [entry, is_new] = texts_.try_emplace(value, texts_.size());
        if (is_new) strings_.bytes(6, value);
        return entry->second;
    }
    std::uint64_t function(const std::string& name, const std::string& file) {
        auto [entry, is_new] = functions_.try_emplace(name + '\0' + file, functions_.size() + 1);
        if (is_new) {
            Message message;
            message.number(1, entry->second);
            message.number(2, text(name));
            message.number(3, text(name));
            message.number(4, text(file));
            rest_.bytes(5, message.text());
        }
        return entry->second;
    }
    std::uint64_t mapping(const std::string& module) {
        if (module.empty()) return 0;
        auto [entry, is_new] = mappings_.try_emplace(module, mappings_.size() + 1);
        if (is_new) {
            Message message;
            message.number(1, entry->second);
            message.number(5, text(module));
            for (unsigned has : {7u, 8u, 9u, 10u}) message.number(has, 1);  // symbols are in already
            rest_.bytes(3, message.text());
        }
        return entry->second;
    }
    std::uint64_t location(const std::string& module, std::uint64_t offset, const Frame& frame,
                           const std::vector<Frame>& inlined) {
        Message message;
        message.number(2, mapping(module));
        message.number(3, offset);
        auto line = [&](const Frame& at) {
            std::string name = !at.function.empty() ? at.function
                               : module.empty()     ? std::string("?")
                                                    : fmt::format("{}+{:#x}", module, offset);
            Message part;
            part.number(1, function(name, at.file));
            part.number(2, at.line);
            message.bytes(4, part.text());
        };
        line(frame);
        for (const Frame& outer : inlined) line(outer);
        auto [entry, is_new] = locations_.try_emplace(message.text(), locations_.size() + 1);
        if (is_new) {
            Message whole;
            whole.number(1, entry->second);
            rest_.bytes(4, whole.text() + message.text());
        }
        return entry->second;
    }

    std::string take() { return rest_.take() + strings_.take(); }

 private:
    std::unordered_map<std::string, std::uint64_t> texts_, functions_, mappings_, locations_;
    Message strings_, rest_;
};

}  // namespace

Result<std::string> export_pprof(const Profile& profile, const ExportOptions& options) {
    Tables tables;
    Message out;
    auto value_type = [&](unsigned field, const std::string& type) {
        Message message;
        message.number(1, tables.text(type));
        message.number(2, tables.text("count"));
        out.bytes(field, message.text());
    };
    value_type(1, "accesses");
    value_type(1, "first_touches");
    for (const CacheSpec& cache : options.caches) value_type(1, cache.name + "_misses");
    auto whole = [](double value) {
        return static_cast<std::uint64_t>(std::llround(std::max(0.0, value)));
    };
    for (const StackSample& sample : stack_samples(profile, options.caches)) {
        if (sample.accesses < 0.5) continue;
        const Site& site = *sample.site;
        std::vector<std::uint64_t> locations = {
            tables.location(site.module, site.offset, site.frame, site.inlined)};
        for (std::uint32_t at : call_path(profile, sample.context) | std::views::reverse) {
            const Context& context = profile.contexts[at];
            locations.push_back(tables.location(context.module, context.offset, context.frame, {}));
        }
        std::vector<std::uint64_t> values = {whole(sample.accesses), whole(sample.cold)};
        for (double misses : sample.misses) values.push_back(whole(misses));
        Message message;
        message.numbers(1, locations);
        message.numbers(2, values);
        out.bytes(2, message.text());
    }
    std::string notes = fmt::format("revisit: method {}, model {}, blocks of {} B", profile.method,
                                    profile.model, profile.granularity);
    std::uint64_t comment = tables.text(notes);
    std::size_t shown = options.caches.size() > 1 ? 3 : options.caches.size() + 1;
    std::string default_type = shown < 2 ? "accesses" : options.caches[shown - 2].name + "_misses";
    std::uint64_t default_text = tables.text(default_type);
    out.numbers(13, {comment});
    out.number(14, default_text);
    return out.take() + tables.take();
}

}  // namespace revisit
