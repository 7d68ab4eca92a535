// An engine on a thread of its own, fed through a short queue.
//
// Decoding a stream takes about as long as looking blocks up, so the two overlap where there are two
// cores: the recorded program itself needs a tenth of one. Buffers go round: at most kMostWaiting of
// them are filled and not yet counted, about 1 MiB, then the decoder waits, and so in the end does the
// program.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "revisit/engine.h"

namespace revisit::record {

class EngineThread : public Engine {
 public:
    explicit EngineThread(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
    ~EngineThread() override { stop(); }

    // Errors of the engine come out of a later call.
    Result<void> add(const BlockBatch& batch) override;
    Result<Profile> finish() override;

 private:
    static constexpr std::size_t kMostWaiting = 4;
    struct Job {
        std::vector<std::uint64_t> blocks;
        std::vector<std::uint32_t> sites;
        std::vector<std::uint16_t> threads;
        std::vector<std::uint8_t> flags;
    };
    void work();
    void stop();

    std::unique_ptr<Engine> engine_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::deque<Job> waiting_;
    std::vector<Job> spare_;
    std::optional<Error> failure_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace revisit::record
