// What allocations say about types, and members out of debug information of a program compiled here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "symbols/types.h"

namespace revisit {
namespace {

AllocatedName first_of(const std::string& text) {
    const auto names = allocated_names(text);
    return names.empty() ? AllocatedName{} : names[0];
}

TEST(AllocatedNames, are_those_that_the_line_has) {
    EXPECT_EQ(first_of("p = new Particle[n];"), (AllocatedName{"Particle", true}));
    EXPECT_EQ(first_of("auto* p = new geo::Point{1, 2};"), (AllocatedName{"geo::Point", true}));
    EXPECT_EQ(first_of("s = calloc(n, sizeof(struct particle));"), (AllocatedName{"particle", true}));
    EXPECT_EQ(first_of("w->nodes = malloc(n * sizeof *w->nodes);"), (AllocatedName{"nodes", false}));
    EXPECT_EQ(first_of("x = malloc(n * sizeof(x[0]));"), (AllocatedName{"x", false}));
    EXPECT_EQ(first_of("t = (struct node *)malloc(size);"), (AllocatedName{"node", true}));
    EXPECT_EQ(first_of("auto t = std::make_unique<Tree>(3);"), (AllocatedName{"Tree", true}));
    EXPECT_EQ(first_of("table = malloc(n * sizeof(double));"), (AllocatedName{"table", false}));
    EXPECT_EQ(first_of("return malloc(n);"), (AllocatedName{}));
}

TEST(AllocatorType, is_what_a_container_holds) {
    EXPECT_EQ(allocator_type("std::__new_allocator<Particle>::allocate(unsigned long, void const*)"),
              "Particle");
    EXPECT_EQ(allocator_type("std::allocator<std::pair<int, long> >::allocate(unsigned long)"),
              "std::pair<int, long>");
    EXPECT_EQ(allocator_type("std::allocator<char*>::allocate"), "");
    EXPECT_EQ(allocator_type("main"), "");
}

TEST(TypeFinder, names_members_of_globals_and_allocations) {
    if (!REVISIT_HAVE_LIBDW) GTEST_SKIP() << "built without libdw";
    if (std::system("command -v cc >/dev/null") != 0) GTEST_SKIP() << "no C compiler";
    std::string folder = (std::filesystem::temp_directory_path() / "revisit-types-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string source = folder + "/particles.c", program = folder + "/particles";
    std::ofstream(source)
        << "#include <stdlib.h>\n"
           "struct vec { double x, y; };\n"
           "typedef struct { struct vec pos, vel; double mass; char name[24]; } particle;\n"
           "struct { long hits, misses; } stats[4];\n"
           "int main(void) {\n"
           "    particle *all = calloc(100, sizeof *all);\n"
           "    stats[0].hits = all[3].pos.x > 0;\n"
           "    return 0;\n"
           "}\n";
    ASSERT_EQ(std::system(("cc -g -O1 " + source + " -o " + program).c_str()), 0);
    Symbolizer files;
    TypeFinder& finder = files.types();
    const DataType* stats = finder.of_variable(program, "stats");
    ASSERT_NE(stats, nullptr);
    EXPECT_EQ(stats->bytes, 16u);
    ASSERT_NE(stats->at(24), nullptr);
    EXPECT_EQ(stats->at(24)->name, "misses");
    const DataType* particle = finder.of_allocation(program, {{"main", source, 6}});
    ASSERT_NE(particle, nullptr);
    EXPECT_EQ(particle->bytes, 64u);
    EXPECT_EQ(particle->at(64 * 5 + 24)->name, "vel.y");
    EXPECT_EQ(particle->at(32)->name, "mass");
    EXPECT_EQ(particle->at(45)->name, "name[]");
    EXPECT_EQ(finder.of_variable(program, "main"), nullptr);
    EXPECT_EQ(finder.of_allocation(program, {{"main", source, 7}}), nullptr);
    EXPECT_EQ(finder.of_variable("/no/such/file", "stats"), nullptr);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace revisit
