// The HTML report: one self-contained file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct PageProfile {
    Profile profile;
    std::string label;  // how Compare calls it
};

struct PageOptions {
    std::vector<CacheSpec> caches;  // marked in the charts
    bool caches_are_hosts = false;
    bool sources = false;      // take the source files of the sites along
    bool disassembly = false;  // and the machine code of those that miss most
    std::size_t most_bytes = 12'000'000;
};

// What is too much for `most_bytes` is summed: the places and pairs with the fewest misses go first.
Result<std::string> html_page(const std::vector<PageProfile>& profiles, const PageOptions& options);

// The bundled page with a mark where the data goes; empty in a build without node.
std::string_view page_template();

}  // namespace revisit
