// Transfers between accounts under locks, std::thread.
//
// A transaction locks two accounts in order, moves money and appends to its thread's own log. A few
// accounts are favourites: their lines travel from core to core with their locks, whatever the cache's
// size. The sum of all accounts never changes.
//
// usage: bank [accounts] [transfers a thread] [threads]       default: 4000 20000 4
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct alignas(64) Account {
    std::mutex lock;
    long money = 100;
};

struct Entry {
    unsigned from, to;
    long amount;
};

void work(std::vector<Account>& accounts, std::vector<Entry>& log, unsigned long seed, long transfers) {
    auto next = [&seed] {
        return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 33;
    };
    for (long i = 0; i < transfers; i++) {
        // One in four goes to one of 16 favourites.
        unsigned from = static_cast<unsigned>(next() % accounts.size());
        unsigned to = static_cast<unsigned>(next() % (next() % 4 == 0 ? 16 : accounts.size()));
        if (from == to) continue;
        std::lock_guard first(accounts[from < to ? from : to].lock);
        std::lock_guard second(accounts[from < to ? to : from].lock);
        long amount = static_cast<long>(next() % 50);
        if (accounts[from].money < amount) continue;
        accounts[from].money -= amount;
        accounts[to].money += amount;
        log.push_back({from, to, amount});
    }
}

}  // namespace

int main(int argc, char** argv) {
    long count = argc > 1 ? std::atol(argv[1]) : 4000,
         transfers = argc > 2 ? std::atol(argv[2]) : 20000;
    int threads = argc > 3 ? std::atoi(argv[3]) : 4;
    if (count < 16 || transfers < 1 || threads < 1)
        return std::fprintf(stderr, "usage: bank [accounts] [transfers a thread] [threads]\n"), 2;
    std::vector<Account> accounts(static_cast<std::size_t>(count));
    std::vector<std::vector<Entry>> logs(static_cast<std::size_t>(threads));
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < logs.size(); t++)
        running.emplace_back([&, t] { work(accounts, logs[t], t + 1, transfers); });
    for (std::thread& thread : running) thread.join();
    long sum = 0;
    for (const Account& account : accounts) sum += account.money;
    std::printf("bank: %ld in all\n", sum);
    return sum == 100 * count ? 0 : 1;
}
