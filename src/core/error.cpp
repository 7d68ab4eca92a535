#include "revisit/error.h"

namespace revisit {

std::string Error::sentence() const {
    std::string out;
    for (const std::string* part : {&file, &place, &message}) {
        if (part->empty()) continue;
        if (!out.empty()) out += ": ";
        out += *part;
    }
    return out;
}

}  // namespace revisit
