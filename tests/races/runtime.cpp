// The runtime that is linked into recorded programs, under ThreadSanitizer.
//
// Threads append words as recorded code does and meet at mutexes, condition variables, barriers and
// joins; others come and go by the hundred, some detached, some cancelled. Between the meetings nothing
// orders them but the runtime itself, so that what it shares it must order itself. A thread beside them
// takes slots as the analyzer does, or wants no more of them in the middle. Each way of sampling, and
// plain recording, is a process of its own, for the runtime begins once. Every access must be told.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "record/clang/abi.h"
#include "record/slots.h"

extern "C" {
extern thread_local revisit_tls __revisit_tls __attribute__((tls_model("initial-exec")));
void __revisit_register(const revisit_unit* unit);
std::uint64_t* __revisit_full_now(std::uint64_t* cursor);
void __revisit_sync(std::uint64_t kind, void* object);
}

using namespace revisit::record;

namespace {

constexpr int kThreads = 6, kRounds = 12, kCrowd = 200;
constexpr long kTouches = 700;  // of a round: more than a page

void expect(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "%s\n", what);
    std::_Exit(1);
}

// One block of code: a read of a thread's own data and a write to everybody's.
std::uint64_t headers[1] = {REVISIT_BLOCK(0, 2)};
std::uint64_t site_base;
const std::uint64_t definitions[] = {REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 2),
                                     0,
                                     REVISIT_ACCESS(8, REVISIT_BY_SITE),
                                     0,
                                     REVISIT_ACCESS(8, REVISIT_BY_SITE | REVISIT_WRITE),
                                     0};
const revisit_unit unit = {REVISIT_ABI, nullptr, headers, 1, &site_base, 1, definitions, 6};
std::atomic<long> touched, detached_done;

bool has_bit(const std::uint64_t* cursor, int bit) {
    return reinterpret_cast<std::uintptr_t>(cursor) >> bit & 1;
}

void touch(long n, std::uint64_t own) {
    for (long i = 0; i < n; i++) {
        std::uint64_t* at = __revisit_tls.cursor;
        if (!has_bit(at, REVISIT_RECORD_BIT)) {  // as the copy that counts
            at += 2;
            __revisit_tls.cursor = has_bit(at, REVISIT_RECORD_BIT) ? __revisit_full_now(at) : at;
            continue;
        }
        at[0] = headers[0];
        at[1] = 0x100000 * (own + 1) + static_cast<std::uint64_t>(i % 50) * 64;
        at[2] = 0x90000000 + static_cast<std::uint64_t>(i % 37) * 64;
        at += 3;
        if (has_bit(at, REVISIT_FULL_BIT)) at = __revisit_full_now(at);
        __revisit_tls.cursor = at;
    }
    touched += 2 * n;
}

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
pthread_barrier_t all_here;
int turn;

void* meet(void* number) {
    const auto me = reinterpret_cast<std::uintptr_t>(number);
    for (int round = 0; round < kRounds; round++) {
        touch(kTouches, me);
        pthread_mutex_lock(&lock);
        __revisit_sync(REVISIT_SYNC_LOCK, &lock);
        touch(3, me);
        while (turn % kThreads != static_cast<int>(me)) {
            __revisit_sync(REVISIT_SYNC_UNLOCK, &turned);
            pthread_cond_wait(&turned, &lock);
            __revisit_sync(REVISIT_SYNC_WAIT, &turned);
        }
        turn++;
        __revisit_sync(REVISIT_SYNC_SIGNAL, &turned);
        pthread_cond_broadcast(&turned);
        __revisit_sync(REVISIT_SYNC_UNLOCK, &lock);
        pthread_mutex_unlock(&lock);
        __revisit_sync(REVISIT_SYNC_SIGNAL, &all_here);
        pthread_barrier_wait(&all_here);
        __revisit_sync(REVISIT_SYNC_WAIT, &all_here);
    }
    return nullptr;
}

void* pass_by(void* number) {
    touch(40, 100 + reinterpret_cast<std::uintptr_t>(number));
    return nullptr;
}
void* pass_by_detached(void* number) {
    touch(400, 400 + reinterpret_cast<std::uintptr_t>(number));
    detached_done++;
    return nullptr;
}
void* until_cancelled(void*) {
    for (;;) {
        touch(50, 99);
        pthread_testcancel();
    }
}

void join(pthread_t thread) {
    __revisit_sync(REVISIT_SYNC_REST, nullptr);
    pthread_join(thread, nullptr);
    __revisit_sync(REVISIT_SYNC_JOIN, nullptr);
}

void program() {
    pthread_t threads[kCrowd];
    pthread_barrier_init(&all_here, nullptr, kThreads);
    for (int i = 0; i < kThreads; i++)
        pthread_create(&threads[i], nullptr, meet, reinterpret_cast<void*>(std::uintptr_t(i)));
    pthread_t victim;
    pthread_create(&victim, nullptr, until_cancelled, nullptr);
    for (int i = 0; i < kThreads; i++) join(threads[i]);
    pthread_cancel(victim);
    join(victim);
    for (int i = 0; i < kCrowd / 10; i++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, pass_by_detached, reinterpret_cast<void*>(std::uintptr_t(i)));
        pthread_detach(thread);
    }
    for (int i = 0; i < kCrowd; i++)
        pthread_create(&threads[i], nullptr, pass_by, reinterpret_cast<void*>(std::uintptr_t(i)));
    for (int i = 0; i < kCrowd; i++) join(threads[i]);
    while (detached_done < kCrowd / 10) std::this_thread::yield();
    touch(10, 0);
}

// Accesses that a slot's words tell of; those of blocks where it was recorded, of SAMPLED where
// sampled.
long accesses_in(const SlotView& view) {
    long sum = 0;
    for (std::size_t i = 0; i < view.words.size();) {
        const std::uint64_t first = view.words[i];
        if (first & REVISIT_BLOCK_BIT) {
            sum += REVISIT_BLOCK_COUNT(first);
            i += 1 + REVISIT_BLOCK_COUNT(first);
            continue;
        }
        const std::uint64_t n = REVISIT_N(first), text = (n + 7) / 8;
        switch (REVISIT_TAG(first)) {
            case REVISIT_SAMPLED:
                sum += static_cast<long>(view.words[i + 1]);
                i += 4;
                break;
            case REVISIT_SAMPLE_END:
                i += 5;
                break;
            case REVISIT_SAMPLE_TAKEN:
                i += 6;
                break;
            case REVISIT_PROCESS:
                i += 3 + text;
                break;
            case REVISIT_MODULE:
                i += 4 + text;
                break;
            case REVISIT_DEFINE_BLOCK:
                i += 2 + 2 * n;
                break;
            case REVISIT_STACK:
                i += 3;
                break;
            case REVISIT_SAMPLE:
            case REVISIT_THREAD_START:
            case REVISIT_SYNC:
                i += 2;
                break;
            default:
                i += 1;
        }
    }
    return sum;
}

int run(std::uint32_t want, bool stops, bool falls) {
    auto slots = Slots::create(want);
    expect(slots.has_value(), "no shared memory");
    revisit_stream* s = slots->stream();
    s->plan = falls ? revisit_sampling_plan{1.0 / 16, 50, 0.99, 100, 1, 6}
                    : revisit_sampling_plan{0.0002, 0, 0.99, 100, 1, 6};
    setenv(REVISIT_STREAM_ENV, slots->path().c_str(), 1);
    long told = 0, taken = 0;
    std::atomic<bool> over = false;
    std::thread analyzer([&] {
        for (;;) {
            const bool last = over;
            if (auto view = slots->take(std::chrono::milliseconds(20))) {
                told += accesses_in(*view);
                slots->give_back(*view);
                if (stops && ++taken == 20) slots->stop();
            } else if (last) {
                return;
            }
        }
    });
    __revisit_register(&unit);
    program();
    // A thread's last words are handed over by a key's destructor, after its join or later.
    usleep(200000);
    over = true;
    analyzer.join();
    for (const SlotView& left : slots->salvage(1)) told += accesses_in(left);
    const long missing = touched - told;
    std::printf("want %u%s%s: %ld accesses, %ld told\n", want, stops ? ", stopped" : "",
                falls ? ", falling rate" : "", touched.load(), told);
    // The page of the thread that ends the program is at its exit.
    expect(missing >= 0 && (stops || missing <= 2 * 512), "accesses were lost");
    return 0;
}

}  // namespace

int main() {
    const std::uint32_t ways[] = {
        REVISIT_WANT_ORDER, REVISIT_WANT_ORDER | REVISIT_WANT_SAMPLES,
        REVISIT_WANT_ORDER | REVISIT_WANT_SAMPLES | REVISIT_WANT_SHARED,
        REVISIT_WANT_ORDER | REVISIT_WANT_SAMPLES | REVISIT_WANT_SHARED | REVISIT_WANT_IN_TURN};
    for (int i = 0; i < 2 * 4 + 3; i++) {
        pid_t child = fork();
        if (child == 0)
            std::exit(i < 8 ? run(ways[i / 2], i % 2, false) : run(ways[i - 7], false, true));
        int status = 0;
        waitpid(child, &status, 0);
        expect(status == 0, "see above");
    }
    std::puts("no race seen, nothing lost");
}
