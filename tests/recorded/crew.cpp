// Threads of the standard library, more than there are cores: locks, conditions, barriers, atomics,
// std::async; and one that vanishes in the middle, without a word to anybody.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "touch.h"

int main() {
    constexpr int crew = 16;
    std::mutex lock;
    std::condition_variable changed;
    std::barrier together(crew);
    std::atomic<long> touched = 0, spinning = 0;
    int turn = 0;
    std::vector<std::thread> threads;
    for (int me = 0; me < crew; me++)
        threads.emplace_back([&, me] {
            for (int round = 0; round < 5; round++) {
                touch(400);
                together.arrive_and_wait();
                std::unique_lock guard(lock);
                changed.wait(guard, [&] { return turn % crew == me; });
                turn++;
                touch(5);
                changed.notify_all();
            }
            spinning++;
            while (spinning < crew) std::this_thread::yield();
            touched += 5 * 405;
        });
    for (std::thread& thread : threads) thread.join();
    std::vector<std::future<long>> parts;
    for (long i = 0; i < 100; i++)
        parts.push_back(std::async(std::launch::async, [i] {
            touch(100 + i);
            return 100 + i;
        }));
    for (auto& part : parts) touched += part.get();
    std::thread([] {
        touch(3000);
        syscall(SYS_exit, 0);
    }).join();
    touch(20000);
    std::printf("touched %ld\n", touched + 23000);
}
