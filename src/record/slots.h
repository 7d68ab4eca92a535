// The analyzer's end of the stream: makes the shared memory, takes slots in the order they were handed
// over, gives them back, and after a process has died takes what it left behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/stream.h"
#include "revisit/error.h"

namespace revisit::record {

// One slot's words, valid until it is given back.
struct SlotView {
    std::uint32_t slot = 0;
    std::uint32_t producer = 0;
    std::uint32_t thread = 0;
    bool salvaged = false;  // its producer died while filling it: the last record may be incomplete
    std::span<const std::uint64_t> words;
    std::uint64_t began = 0, ended = 0;  // when it was opened and handed over, in the machine's ticks
};

class Slots {
 public:
    static Result<Slots> create(std::uint32_t want);
    Slots(Slots&& other) noexcept;
    Slots& operator=(Slots&&) = delete;
    ~Slots();

    // What a recorded program opens: /proc/PID/fd/N, which works for every descendant and leaves no
    // descriptor in any of them.
    std::string path() const;

    // The next slot in order of hand-over; nothing when none came within `patience`.
    std::optional<SlotView> take(std::chrono::milliseconds patience);
    void give_back(const SlotView& view);
    // The same in two steps, the first for any thread.
    void clean(const SlotView& view) const;
    void give_back_clean(const SlotView& view);

    // Slots that `producer` held when it died, oldest first. Call when its process is gone and `take`
    // finds nothing. They are given back like any other.
    std::vector<SlotView> salvage(std::uint32_t producer);

    // What every slot in use begins with, with its producer, which may be writing it: words that are
    // not yet there are 0.
    struct Opening {
        std::uint32_t producer;
        std::uint64_t words[3];
    };
    std::vector<Opening> openings() const;
    // Whether a child may not have said yet whose it is.
    bool forks_under_way() const { return __atomic_load_n(&stream_->forks, __ATOMIC_SEQ_CST) != 0; }

    void stop();  // producers record nothing from now on
    bool stopped() const;
    std::uint32_t threads_unrecorded() const;
    std::uint32_t out_of_reach() const;  // processes and programs that are not recorded

    // Handed over by producers, and taken here; nothing was lost unless the first is larger.
    std::uint64_t words_handed_over() const;
    std::uint64_t words_taken() const { return words_taken_; }

    std::uint32_t producers() const { return __atomic_load_n(&stream_->producers, __ATOMIC_RELAXED); }
    // Slots handed over so far, and whether so many have been taken.
    std::uint64_t handed_over() const { return __atomic_load_n(&stream_->head, __ATOMIC_ACQUIRE); }
    bool taken_up_to(std::uint64_t count) const { return next_ >= count; }
    bool drained() const { return __atomic_load_n(&stream_->head, __ATOMIC_ACQUIRE) == next_; }

    revisit_stream* stream() { return stream_; }

 private:
    Slots(int fd, revisit_stream* stream) : fd_(fd), stream_(stream) {}
    int fd_;
    revisit_stream* stream_;
    std::uint64_t next_ = 0;         // ticket taken next
    std::uint64_t words_taken_ = 0;  // of slots handed over
    int stalls_ = 0;
};

}  // namespace revisit::record
