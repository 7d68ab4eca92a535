// Stands in for the bundled page where node was missing at build time.
#include "report/page.h"

namespace revisit {

std::string_view page_template() {
    return {};
}

}  // namespace revisit
