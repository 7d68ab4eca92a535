// Without capstone there is no disassembly.
#include "symbols/listing.h"

namespace revisit {

Result<std::vector<Instruction>> listing_of(const std::string&, std::vector<std::uint64_t>) {
    return fail("this build has no disassembler; install libcapstone-dev and build again");
}

}  // namespace revisit
