#include "record/slots.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace revisit::record {
namespace {

pthread_mutex_t* guard_of(revisit_stream* stream) {
    static_assert(sizeof(pthread_mutex_t) <= sizeof stream->guard);
    return reinterpret_cast<pthread_mutex_t*>(stream->guard);
}

// Locks it for as long as this thread lives. Which of its words is the one that the kernel marks is the
// C library's matter; it has the thread's number in it. 0: there are no such mutexes here.
std::uint32_t hold_guard(revisit_stream* stream) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    const bool is_made = pthread_mutex_init(guard_of(stream), &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    if (!is_made || pthread_mutex_lock(guard_of(stream)) != 0) return 0;
    std::uint32_t words[sizeof stream->guard / (sizeof(std::uint32_t))];
    std::memcpy(words, stream->guard, sizeof words);
    const auto* found = std::ranges::find(words, static_cast<std::uint32_t>(gettid()));
    if (found != std::end(words)) return static_cast<std::uint32_t>(found - words) + 1;
    pthread_mutex_unlock(guard_of(stream));
    return 0;
}

}  // namespace

Result<Slots> Slots::create(std::uint32_t want) {
    int fd = memfd_create("revisit-stream", MFD_CLOEXEC);
    if (fd < 0) return fail(std::string("cannot make shared memory: ") + std::strerror(errno));
    if (ftruncate(fd, REVISIT_STREAM_BYTES) != 0) {
        int reason = errno;
        close(fd);
        return fail(std::string("cannot size shared memory: ") + std::strerror(reason));
    }
    void* base = mmap(nullptr, REVISIT_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        int reason = errno;
        close(fd);
        return fail(std::string("cannot map shared memory: ") + std::strerror(reason));
    }
    auto* stream = static_cast<revisit_stream*>(base);
    stream->slots = REVISIT_SLOTS;
    stream->slot_words = REVISIT_SLOT_WORDS;
    stream->slots_full = REVISIT_SLOTS_FULL;
    stream->want = want;
    stream->data_offset = REVISIT_STREAM_DATA;
    stream->analyzer = static_cast<std::uint32_t>(getpid());
    stream->guard_at = hold_guard(stream);
    stream->magic = REVISIT_STREAM_MAGIC;
    return Slots(fd, stream);
}

Slots::Slots(Slots&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      stream_(std::exchange(other.stream_, nullptr)),
      next_(other.next_),
      words_taken_(other.words_taken_),
      stalls_(other.stalls_) {}

Slots::~Slots() {
    // A thread's list of robust mutexes leads through this memory as long as it holds one.
    if (stream_ && (!stream_->guard_at || pthread_mutex_unlock(guard_of(stream_)) == 0))
        munmap(stream_, REVISIT_STREAM_BYTES);
    if (fd_ >= 0) close(fd_);
}

std::string Slots::path() const {
    return "/proc/" + std::to_string(stream_->analyzer) + "/fd/" + std::to_string(fd_);
}

std::optional<SlotView> Slots::take(std::chrono::milliseconds patience) {
    revisit_stream* s = stream_;
    std::uint32_t& entry = s->queue[next_ % REVISIT_SLOTS];
    std::uint32_t found = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);
    if (!found && patience.count() > 0) {
        std::uint64_t seen = __atomic_load_n(&s->published, __ATOMIC_SEQ_CST);
        __atomic_store_n(&s->analyzer_sleeps, 1, __ATOMIC_SEQ_CST);
        found = __atomic_load_n(&entry, __ATOMIC_SEQ_CST);
        if (!found) {
            revisit_futex_wait(&s->published, seen, static_cast<std::uint32_t>(patience.count()));
            found = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);
        }
        __atomic_store_n(&s->analyzer_sleeps, 0, __ATOMIC_RELAXED);
    }
    if (!found) {
        // A producer killed between its ticket and its queue entry leaves a hole that would hold up all
        // others. Living ones fill theirs in nanoseconds.
        bool hole = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) > next_;
        if (!hole || ++stalls_ < 20) return std::nullopt;
        stalls_ = 0;
        next_++;
        __atomic_add_fetch(&s->tail, 1, __ATOMIC_SEQ_CST);  // its slot, still marked full, is salvaged
        return std::nullopt;
    }
    stalls_ = 0;
    __atomic_store_n(&entry, 0, __ATOMIC_RELAXED);
    next_++;
    std::uint32_t slot = found - 1;
    const revisit_slot& header = s->slot[slot];
    std::uint32_t words = std::min(header.words, REVISIT_SLOT_WORDS);
    words_taken_ += words;
    return SlotView{
        slot,         header.producer, header.thread, false, {revisit_slot_data(s, slot), words},
        header.began, header.ended};
}

void Slots::give_back(const SlotView& view) {
    clean(view);
    give_back_clean(view);
}

void Slots::clean(const SlotView& view) const {
    // Zeros are what salvage stops at. A block left in the middle may have written past the last word.
    std::size_t dirty =
        std::min<std::size_t>(view.words.size() + REVISIT_BLOCK_MAX + 1, REVISIT_SLOT_WORDS);
    std::memset(revisit_slot_data(stream_, view.slot), 0, dirty * 8);
}

void Slots::give_back_clean(const SlotView& view) {
    revisit_stream* s = stream_;
    s->slot[view.slot].producer = 0;
    __atomic_store_n(&s->slot[view.slot].state, REVISIT_SLOT_FREE, __ATOMIC_RELEASE);
    if (view.salvaged) return;
    __atomic_add_fetch(&s->tail, 1, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&s->producers_sleep, 0, __ATOMIC_SEQ_CST)) revisit_futex_wake(&s->tail);
}

std::vector<SlotView> Slots::salvage(std::uint32_t producer) {
    revisit_stream* s = stream_;
    std::vector<SlotView> left;
    for (std::uint32_t i = 0; i < REVISIT_SLOTS; i++) {
        const revisit_slot& header = s->slot[i];
        std::uint32_t state = __atomic_load_n(&header.state, __ATOMIC_ACQUIRE);
        if (state == REVISIT_SLOT_FREE || header.producer != producer) continue;
        const std::uint64_t* data = revisit_slot_data(s, i);
        std::uint32_t words = REVISIT_SLOT_WORDS;
        if (state == REVISIT_SLOT_FULL) {
            words = std::min(header.words, words);
            words_taken_ += words;
        }
        left.push_back({i, producer, header.thread, true, {data, words}});
    }
    std::ranges::sort(left, {}, [&](const SlotView& v) { return s->slot[v.slot].opened; });
    return left;
}

// Other processes write these words while we read them, in part by code that a compiler or valgrind
// makes: aligned words, zero before (clean) and written once, so each is there or zero. ThreadSanitizer
// knows that of no plain write.
[[gnu::no_sanitize_thread]] std::vector<Slots::Opening> Slots::openings() const {
    std::vector<Opening> all;
    for (std::uint32_t i = 0; i < REVISIT_SLOTS; i++) {
        const revisit_slot& header = stream_->slot[i];
        if (__atomic_load_n(&header.state, __ATOMIC_ACQUIRE) == REVISIT_SLOT_FREE) continue;
        const std::uint64_t* data = revisit_slot_data(stream_, i);
        Opening& opening = all.emplace_back(__atomic_load_n(&header.producer, __ATOMIC_ACQUIRE));
        for (std::size_t word = 0; word < std::size(opening.words); word++)
            opening.words[word] = __atomic_load_n(data + word, __ATOMIC_ACQUIRE);
    }
    return all;
}

void Slots::stop() {
    __atomic_store_n(&stream_->stop, 1, __ATOMIC_RELEASE);
}
bool Slots::stopped() const {
    return __atomic_load_n(&stream_->stop, __ATOMIC_RELAXED);
}
std::uint32_t Slots::threads_unrecorded() const {
    return __atomic_load_n(&stream_->unrecorded, __ATOMIC_RELAXED);
}
std::uint32_t Slots::out_of_reach() const {
    return __atomic_load_n(&stream_->out_of_reach, __ATOMIC_RELAXED);
}
std::uint64_t Slots::words_handed_over() const {
    return __atomic_load_n(&stream_->words, __ATOMIC_ACQUIRE);
}

}  // namespace revisit::record
