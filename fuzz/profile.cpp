// The profile reader on arbitrary bytes: an Error, or a profile that every consumer can work on and
// that reads back as it was written.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report/diff.h"
#include "report/exports.h"
#include "report/page.h"
#include "report/terminal.h"
#include "revisit/revisit.h"

using namespace revisit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto profile = profile_from_json({reinterpret_cast<const char*>(data), size});
    if (!profile) return 0;
    std::string text = to_json(*profile);
    auto again = profile_from_json(text);
    if (!again || to_json(*again) != text) std::abort();
    CacheSpec cache = CacheSpec::parse("32K:8:64").value();
    double rate = predict_cache(*profile, cache).hit_rate;
    if (!(rate >= -1e-9 && rate <= 1 + 1e-9)) std::abort();
    terminal_report(*profile, {cache}, {});
    accuracy(profile->reuse, again->reuse);
    for (const ExportEntry& entry : exports()) (void)entry.write(*profile, {{cache}, ""});
    if (auto diff = compare({*profile}, {*again}, {})) diff_json(*diff);
    auto page = html_page({{*profile, "a"}}, {{cache}, false, false, false, 100'000});
    if (!page || !nlohmann::json::accept(*page)) std::abort();
    if (merge_profile(*again, *profile)) to_json(*again);
    return 0;
}
