// Placing connected cells on a grid by simulated annealing, std::thread, without locks.
//
// Threads swap the places of two cells anywhere at any time by atomic exchange; costs are computed from
// whatever places the neighbours have at the moment. Sharing has no structure at all: any swap takes
// two lines from whoever read them last.
//
// usage: anneal [cells] [swaps a thread] [threads]       default: 8192 15000 4
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kWires = 5;

struct Cell {
    std::atomic<unsigned> place;
    unsigned wired_to[kWires];
};

long distance(unsigned a, unsigned b) {
    return std::labs(static_cast<long>(a % 128) - static_cast<long>(b % 128)) +
           std::labs(static_cast<long>(a / 128) - static_cast<long>(b / 128));
}

long cost(const std::vector<Cell>& cells, const Cell& cell, unsigned place) {
    long sum = 0;
    for (unsigned other : cell.wired_to)
        sum += distance(place, cells[other].place.load(std::memory_order_relaxed));
    return sum;
}

void work(std::vector<Cell>& cells, unsigned long seed, long swaps) {
    auto next = [&seed] {
        return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 33;
    };
    for (long i = 0; i < swaps; i++) {
        Cell &a = cells[next() % cells.size()], &b = cells[next() % cells.size()];
        if (&a == &b) continue;
        unsigned at_a = a.place.load(), at_b = b.place.load();
        long gain =
            cost(cells, a, at_a) + cost(cells, b, at_b) - cost(cells, a, at_b) - cost(cells, b, at_a);
        if (gain < 0 && static_cast<long>(next() % 1000) > 1000 - 800 * i / swaps) continue;
        // Each place is held by one cell at a time: take both, or give the first back.
        if (a.place.compare_exchange_strong(at_a, at_b) && !b.place.compare_exchange_strong(at_b, at_a))
            a.place.store(at_a);
    }
}

}  // namespace

int main(int argc, char** argv) {
    long count = argc > 1 ? std::atol(argv[1]) : 8192, swaps = argc > 2 ? std::atol(argv[2]) : 15000;
    int threads = argc > 3 ? std::atoi(argv[3]) : 4;
    if (count < 16 || swaps < 1 || threads < 1)
        return std::fprintf(stderr, "usage: anneal [cells] [swaps a thread] [threads]\n"), 2;
    std::vector<Cell> cells(static_cast<std::size_t>(count));
    unsigned long seed = 7;
    for (std::size_t i = 0; i < cells.size(); i++) {
        cells[i].place = static_cast<unsigned>(i * 2654435761u % cells.size());
        for (unsigned& other : cells[i].wired_to) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            other = static_cast<unsigned>((i + 1 + (seed >> 33) % 100) % cells.size());
        }
    }
    auto total = [&] {
        long sum = 0;
        for (const Cell& cell : cells) sum += cost(cells, cell, cell.place);
        return sum;
    };
    long before = total();
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++)
        running.emplace_back([&, t] { work(cells, static_cast<unsigned long>(t) + 1, swaps); });
    for (std::thread& thread : running) thread.join();
    std::printf("anneal: wires %ld before, %ld after\n", before, total());
    return 0;
}
