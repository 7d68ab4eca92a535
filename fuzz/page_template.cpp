// A page that is nothing but its data, for fuzz/profile.cpp to read.
#include "report/page.h"

namespace revisit {

std::string_view page_template() {
    return "/*data*/";
}

}  // namespace revisit
