// What calls can look like: variable arguments, arguments by value, coroutines, tail calls that must
// be, std::thread, callbacks out of libc and the standard library.
#include <algorithm>
#include <coroutine>
#include <cstdarg>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "touch.h"

namespace {

long touched;

void touch_counted(long n) {
    touch(n);
    touched += n;
}

struct Big {
    long values[20];
};

__attribute__((noinline)) long take(Big big, int count, ...) {
    va_list list;
    va_start(list, count);
    long sum = 0;
    for (int i = 0; i < count; ++i) sum += va_arg(list, int);
    va_end(list);
    touch_counted(3);
    return sum + big.values[count];
}

struct Numbers {
    struct promise_type {
        int value;
        Numbers get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
        std::suspend_always yield_value(int next) {
            value = next;
            return {};
        }
    };
    std::coroutine_handle<promise_type> handle;
};

Numbers count_to(int n) {
    for (int i = 0; i < n; ++i) {
        touch_counted(2);
        co_yield i;
    }
}

__attribute__((noinline)) long odd(long n, long sum);
__attribute__((noinline)) long even(long n, long sum) {
    area[n & 15] = static_cast<int>(n);
    if (n == 0) return sum;
    [[clang::musttail]] return odd(n - 1, sum + 1);
}
__attribute__((noinline)) long odd(long n, long sum) {
    area[n & 15] = static_cast<int>(n);
    if (n == 0) return sum;
    [[clang::musttail]] return even(n - 1, sum + 2);
}

int compare(const void* a, const void* b) {
    touch_counted(1);
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

}  // namespace

int main() {
    Big big{};
    long sum = 0;
    for (int i = 0; i < 1000; ++i) sum += take(big, 5, 1, 2, 3, 4, i);
    for (int i = 0; i < 100; ++i) {
        Numbers numbers = count_to(50);
        while (numbers.handle.resume(), !numbers.handle.done()) sum += numbers.handle.promise().value;
        numbers.handle.destroy();
    }
    sum += even(1000000, 0);

    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 100; ++k) {
                std::lock_guard lock(mutex);
                touch_counted(20 + i);
            }
        });
    for (std::thread& thread : threads) thread.join();

    std::map<int, std::unique_ptr<std::vector<int>>> lists;
    for (int i = 0; i < 2000; ++i)
        lists[i * 7919 % 5003] = std::make_unique<std::vector<int>>(i % 50, i);
    for (auto& [key, list] : lists)
        std::sort(list->begin(), list->end(), [](int a, int b) { return a > b; });
    std::vector<int> numbers(500);
    for (int i = 0; i < 500; ++i) numbers[i] = i * 7919 % 503;
    std::qsort(numbers.data(), numbers.size(), sizeof(int), compare);
    std::printf("touched %ld\n", touched);
    return sum == 0;
}
