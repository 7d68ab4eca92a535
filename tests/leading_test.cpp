// Which program a report is about.
#include "record/leading.h"

#include <gtest/gtest.h>

namespace revisit::record {
namespace {

using Processes = std::vector<RanAs<std::string>>;

std::string leading(const Processes& processes) {
    const auto claims = claims_to_lead(processes);
    return std::ranges::max_element(claims, {}, [](const auto& one) { return one.second; })->first;
}

TEST(Leading, is_what_a_wrapper_starts_though_it_does_less) {
    EXPECT_EQ(leading({{7, "env", {"/usr/bin/env", "A=1", "./short", "x"}, 667000},
                       {7, "short", {"./short", "x"}, 48000}}),
              "short");
    EXPECT_EQ(leading({{7, "nice", {"nice", "-n", "5", "xz", "-k", "a"}, 900},
                       {7, "xz", {"/usr/bin/xz", "-k", "a"}, 800}}),
              "xz");
}

TEST(Leading, is_what_did_most_where_nothing_wraps) {
    // Another process, other arguments, or the same command.
    EXPECT_EQ(leading({{7, "make", {"make", "cc", "a.c"}, 500}, {8, "cc", {"cc", "a.c"}, 400}}),
              "make");
    EXPECT_EQ(leading({{7, "sh", {"sh", "work.sh"}, 500}, {7, "true", {"true"}, 400}}), "sh");
    EXPECT_EQ(leading({{7, "sh", {"sh"}, 300}, {7, "ash", {"ash"}, 200}, {8, "ash", {"ash"}, 200}}),
              "ash");
    EXPECT_EQ(leading({{7, "a", {}, 2}, {7, "b", {}, 1}}), "a");
}

TEST(Leading, note_of_one_process_speaks_of_its_programs) {
    EXPECT_NE(leading_note("app", 1, 1).find("of the programs that the process executed, "),
              std::string::npos);
    EXPECT_NE(leading_note("app", 1, 2).find("of 2 processes, "), std::string::npos);
}

}  // namespace
}  // namespace revisit::record
