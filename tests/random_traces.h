// Random and adversarial block sequences for property tests. Everything is seeded.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace revisit::testing {

struct NamedTrace {
    std::string name;
    std::vector<std::uint64_t> blocks;
};

// Small enough for the naive engine, varied enough to reach every branch of the others.
inline std::vector<NamedTrace> small_traces(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<NamedTrace> out = {
        {"empty", {}}, {"one", {7}}, {"equal", std::vector<std::uint64_t>(200, 3)}};
    auto make = [&](std::string name, std::size_t count, auto next) {
        std::vector<std::uint64_t> blocks(count);
        for (std::size_t i = 0; i < count; ++i) blocks[i] = next(i);
        out.push_back({std::move(name), std::move(blocks)});
    };
    make("all different", 1000, [](std::size_t i) { return i; });
    make("ends of 64 bits", 500,
         [&](std::size_t) { return (random() % 2 != 0 ? ~std::uint64_t{0} : 0) ^ (random() % 8); });
    make("uniform", 3000, [&](std::size_t) { return random() % 300; });
    make("few blocks", 3000, [&](std::size_t) { return random() % 5; });
    make("scrambled", 3000, [&](std::size_t) { return (random() % 400) * 0x9e3779b97f4a7c15u; });
    for (std::size_t period : {1, 2, 63, 64, 65, 127, 128, 129, 500})
        make("cycle of " + std::to_string(period), 1500, [&](std::size_t i) { return i % period; });
    make("runs", 3000, [&, current = std::uint64_t{0}](std::size_t) mutable {
        if (random() % 4 == 0) current = random() % 200;
        return current;
    });
    make("sawtooth", 2000, [](std::size_t i) { return i % 200 < 100 ? i % 100 : 99 - i % 100; });
    make("growing", 3000, [&](std::size_t i) { return random() % (i / 3 + 1); });
    return out;
}

}  // namespace revisit::testing
