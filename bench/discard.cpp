// Runs a recorded program with an analyzer that looks at nothing: what is left is the cost of
// recording.
//
//     bench_discard [--count] PROGRAM ARGS…
//
// Slots are taken in order and given back. With --count the blocks in them are walked and their
// accesses counted (the time is then of no interest). One line of JSON on standard error at the end:
// CPU seconds of the program alone, wall seconds, words and accesses.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "record/slots.h"

using namespace revisit::record;

namespace {

// Records other than blocks and bulk accesses lie in slots of their own or between blocks; their
// lengths are told by tag and n.
std::size_t record_words(std::uint64_t first) {
    std::uint64_t text = (REVISIT_N(first) + 7) / 8;
    switch (REVISIT_TAG(first)) {
        case REVISIT_PROCESS:
            return 3 + text;
        case REVISIT_MODULE:
            return 4 + text;
        case REVISIT_DEFINE_BLOCK:
            return 2 + 2 * REVISIT_N(first);
        case REVISIT_DEFINE_SITE:
            return 2 + text;
        case REVISIT_REGION_BEGIN:
        case REVISIT_REGION_END:
            return 1 + text;
        case REVISIT_BULK:
            return 4;
        case REVISIT_UNLOAD:
        case REVISIT_ALLOC:
        case REVISIT_ALLOC_SITE:
        case REVISIT_STACK:
            return 3;
        case REVISIT_THREAD:
        case REVISIT_THREAD_EXIT:
        case REVISIT_LEAVE:
        case REVISIT_FREE:
            return 1;
        default:
            return 2;
    }
}

std::uint64_t count_accesses(const SlotView& slot) {
    static std::unordered_map<std::uint64_t, std::uint64_t> accesses_of;  // a block
    std::uint64_t accesses = 0;
    for (std::size_t i = 0; i < slot.words.size() && slot.words[i] != 0;) {
        std::uint64_t first = slot.words[i];
        if (first & REVISIT_BLOCK_BIT) {
            accesses += accesses_of[REVISIT_BLOCK_ID(first)];
            i += 1 + REVISIT_BLOCK_COUNT(first);
        } else {
            accesses += REVISIT_TAG(first) == REVISIT_BULK;
            if (REVISIT_TAG(first) == REVISIT_DEFINE_BLOCK)
                accesses_of[slot.words[i + 1]] = REVISIT_N(first);
            i += record_words(first);
        }
    }
    return accesses;
}

}  // namespace

int main(int argc, char** argv) {
    bool count = argc > 1 && std::strcmp(argv[1], "--count") == 0;
    char** command = argv + 1 + count;
    auto slots = Slots::create(0);
    if (argc < 2 + count || !slots) return 2;
    // How many slots may wait: fewer stay in a cache, more let the program run on.
    if (const char* full = std::getenv("BENCH_SLOTS_FULL"))
        slots->stream()->slots_full = static_cast<std::uint32_t>(std::atoi(full));
    setenv(REVISIT_STREAM_ENV, slots->path().c_str(), 1);
    auto begin = std::chrono::steady_clock::now();
    pid_t program = fork();
    if (program == 0) {
        execv(command[0], command);
        _exit(127);
    }
    std::uint64_t words = 0, accesses = 0;
    auto take = [&](const SlotView& slot) {
        words += slot.words.size();
        if (count) accesses += count_accesses(slot);
        slots->give_back(slot);
    };
    int status = 0;
    rusage used{};
    for (bool runs = true; runs || !slots->drained();) {
        if (auto slot = slots->take(std::chrono::milliseconds(runs ? 5 : 0)))
            take(*slot);
        else if (runs)
            runs = wait4(program, &status, WNOHANG, &used) == 0;
    }
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    for (std::uint32_t producer = 1; producer <= slots->producers(); producer++)
        for (const SlotView& slot : slots->salvage(producer)) take(slot);
    auto seconds = [](timeval t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    std::fprintf(stderr, "{\"cpu\": %.6f, \"wall\": %.6f, \"words\": %llu, \"accesses\": %llu}\n",
                 seconds(used.ru_utime) + seconds(used.ru_stime), wall.count(),
                 static_cast<unsigned long long>(words), static_cast<unsigned long long>(accesses));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
