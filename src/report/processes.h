// The processes of a run as a tree: who started whom, and what each did.
#pragma once

#include <string>
#include <vector>

#include "revisit/profile.h"

namespace revisit {

// A process from its fork to its end, or several of one name with the same parent.
struct ProcessRow {
    std::string name;  // "sh -c make", "nice → xz -9 big" where programs replaced each other
    unsigned depth = 0;
    std::size_t processes = 1;
    double accesses = 0, samples = 0, seconds = 0;
};

// In the order in which they began, children behind their parents; empty = there was one process. Rows
// beyond `most` are summed in the last.
std::vector<ProcessRow> process_tree(const Profile& profile, std::size_t most);

std::string process_text(const ProcessRow& row);  // what it did: "1.37 G accesses, 87 samples, 2.6 s"

}  // namespace revisit
