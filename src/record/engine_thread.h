// An engine on a thread of its own, fed through a short queue.
//
// Decoding a stream takes about as long as looking blocks up, so the two overlap where there are two
// cores: the recorded program itself needs a tenth of one. Buffers go round: at most kMostWaiting of
// them are filled and not yet counted, about 1 MiB, then the decoder waits, and so in the end does the
// program.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/relay.h"
#include "revisit/engine.h"

namespace revisit::record {

class EngineThread : public Engine {
 public:
    explicit EngineThread(std::unique_ptr<Engine> engine);

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
        std::vector<std::uint16_t> parts;
    };
    void count(Job& job);

    std::unique_ptr<Engine> engine_;
    std::optional<Error> failure_;  // written before failed_ is set, read after
    std::atomic<bool> failed_ = false;
    Relay<Job> relay_;  // last: its thread uses the others
};

}  // namespace revisit::record
