// Problem. A trace that is unpacked and parsed on one thread keeps the other cores waiting.
// Idea. Several zstd frames in one file (pzstd, `zstd` of parts joined by cat, our own) and the blocks
// of bgzip stand alone and say where they end, so they are unpacked side by side and handed out in
// order. A single long frame cannot be split; it is unpacked on one thread while another one parses.
//
//     file:     │ frame 0 │ frame 1 │ frame 2 │ …        at most a few in flight
//     threads:    unpack    unpack    unpack
//     reader:     ────────► plain 0 ► plain 1 ► …
//
// Memory is bounded by the frames in flight, each of up to kMostPlain bytes; longer ones are unpacked
// bit by bit by the reader.
#include "formats/unpack_ahead.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{256} << 10;
constexpr std::size_t kMostPacked = std::size_t{4} << 20;  // of frames that are unpacked together
constexpr std::size_t kMostPlain = std::size_t{8} << 20;
constexpr std::size_t kBlock = std::size_t{1} << 20;  // that is read ahead

using Bytes = std::vector<std::uint8_t>;

// Bytes in memory, then perhaps a source that goes on.
class BytesThenSource final : public ByteSource {
 public:
    explicit BytesThenSource(Bytes bytes, std::unique_ptr<ByteSource> rest = nullptr)
        : bytes_(std::move(bytes)), rest_(std::move(rest)) {}
    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        if (at_ == bytes_.size()) return rest_ ? rest_->read(into, size) : std::size_t{0};
        const std::size_t count = std::min(size, bytes_.size() - at_);
        std::memcpy(into, bytes_.data() + at_, count);
        at_ += count;
        return count;
    }

 private:
    Bytes bytes_;
    std::size_t at_ = 0;
    std::unique_ptr<ByteSource> rest_;
};

class FramedSource final : public ByteSource {
 public:
    FramedSource(std::unique_ptr<ByteSource> packed, MakeUnpacker unpacker, FindFrames find,
                 unsigned threads)
        : packed_(std::move(packed)),
          unpacker_(std::move(unpacker)),
          find_(find),
          most_in_flight_(threads + 1) {}
    bool unpacks() const override { return true; }

    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        for (;;) {
            if (at_ < plain_.size()) {
                const std::size_t count = std::min(size, plain_.size() - at_);
                std::memcpy(into, plain_.data() + at_, count);
                at_ += count;
                return count;
            }
            if (current_) {
                if (const std::size_t count = TRY(current_->read(into, size)); count != 0) return count;
                current_.reset();
            }
            TRY(start_ahead());
            if (in_flight_.empty()) {
                if (!rest_) return std::size_t{0};
                current_ = std::move(rest_);
                continue;
            }
            Frames frames = std::move(in_flight_.front());
            in_flight_.pop_front();
            std::optional<Bytes> plain = TRY(frames.plain.get());
            if (plain)
                plain_ = std::move(*plain);
            else
                current_ = unpacker_(std::make_unique<BytesThenSource>(*frames.packed), frames.begin);
            at_ = plain ? 0 : plain_.size();
        }
    }

 private:
    struct Frames {
        std::shared_ptr<const Bytes> packed;
        std::uint64_t begin = 0;
        std::future<Result<std::optional<Bytes>>> plain;  // nothing: it is too long
    };

    Result<void> start_ahead() {
        while (!ended_ && in_flight_.size() < most_in_flight_) {
            const std::size_t length = TRY(next_frames());
            if (length == 0) break;
            auto packed = std::make_shared<const Bytes>(
                buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(length));
            buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(length));
            auto job = [packed, begin = position_, unpacker = unpacker_]() {
                return unpack(*unpacker(std::make_unique<BytesThenSource>(*packed), begin));
            };
            in_flight_.push_back({packed, position_, std::async(std::launch::async, job)});
            position_ += length;
        }
        return {};
    }

    // Bytes at the front of the buffer that are whole frames; 0 after the last one, or where the rest
    // has to be read as it comes.
    Result<std::size_t> next_frames() {
        for (bool at_end = false;;) {
            if (!buffer_.empty()) {
                const std::optional<std::size_t> length = find_(buffer_);
                if (length && *length != 0) return *length;
                if (!length || at_end || buffer_.size() >= kMostPacked) {
                    ended_ = true;
                    rest_ = read_ahead(unpacker_(
                        std::make_unique<BytesThenSource>(std::move(buffer_), std::move(packed_)),
                        position_));
                    return std::size_t{0};
                }
            } else if (at_end) {
                ended_ = true;
                return std::size_t{0};
            }
            const std::size_t had = buffer_.size();
            buffer_.resize(had + kReadAtOnce);
            const std::size_t count = TRY(packed_->read(buffer_.data() + had, kReadAtOnce));
            buffer_.resize(had + count);
            at_end = count == 0;
        }
    }

    static Result<std::optional<Bytes>> unpack(ByteSource& source) {
        Bytes plain(kBlock);
        for (std::size_t filled = 0;;) {
            const std::size_t count = TRY(source.read(plain.data() + filled, plain.size() - filled));
            filled += count;
            if (count == 0) {
                plain.resize(filled);
                return plain;
            }
            if (filled < plain.size()) continue;
            if (filled >= kMostPlain) return std::optional<Bytes>{};
            plain.resize(2 * filled);
        }
    }

    std::unique_ptr<ByteSource> packed_;
    MakeUnpacker unpacker_;
    FindFrames find_;
    const std::size_t most_in_flight_;
    Bytes buffer_;                // packed, from position_ on
    std::uint64_t position_ = 0;  // in the file
    bool ended_ = false;
    std::deque<Frames> in_flight_;
    Bytes plain_;  // handed out up to at_
    std::size_t at_ = 0;
    std::unique_ptr<ByteSource> current_, rest_;  // unpacked as they are read: now, and at last
};

// Blocks of the source, read on another thread once the source turns out to be long.
class ReadAheadSource final : public ByteSource {
 public:
    explicit ReadAheadSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
    ~ReadAheadSource() override {
        std::lock_guard lock(guard_);
        stopping_ = true;
        changed_.notify_all();
    }
    bool unpacks() const override { return source_->unpacks(); }

    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        if (read_here_ < kBlock) {
            const std::size_t count = TRY(source_->read(into, size));
            read_here_ += count;
            return count;
        }
        if (!thread_.joinable()) thread_ = std::jthread([this] { fill(); });
        if (at_ == current_.size()) {
            std::unique_lock lock(guard_);
            changed_.wait(lock, [&] { return !ready_.empty(); });
            if (!ready_.front()) return unexpected(ready_.front().error());
            if (ready_.front()->empty()) return std::size_t{0};  // stays there: the end
            current_ = std::move(*ready_.front());
            ready_.pop_front();
            at_ = 0;
            changed_.notify_all();
        }
        const std::size_t count = std::min(size, current_.size() - at_);
        std::memcpy(into, current_.data() + at_, count);
        at_ += count;
        return count;
    }

 private:
    static constexpr std::size_t kMostReady = 4;

    // Up to the end, an empty block, or an error.
    void fill() {
        for (;;) {
            {
                std::unique_lock lock(guard_);
                changed_.wait(lock, [&] { return stopping_ || ready_.size() < kMostReady; });
                if (stopping_) return;
            }
            Result<Bytes> block = next_block();
            const bool is_last = !block || block->empty();
            std::lock_guard lock(guard_);
            ready_.push_back(std::move(block));
            changed_.notify_all();
            if (is_last) return;
        }
    }
    Result<Bytes> next_block() {
        Bytes block(kBlock);
        std::size_t filled = 0;
        while (filled < block.size()) {
            const std::size_t count = TRY(source_->read(block.data() + filled, block.size() - filled));
            if (count == 0) break;
            filled += count;
        }
        block.resize(filled);
        return block;
    }

    std::unique_ptr<ByteSource> source_;
    std::size_t read_here_ = 0;
    Bytes current_;  // handed out up to at_
    std::size_t at_ = 0;
    std::mutex guard_;  // of ready_ and stopping_
    std::condition_variable changed_;
    std::deque<Result<Bytes>> ready_;
    bool stopping_ = false;
    std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace

std::optional<std::size_t> find_zstd_frames(std::span<const std::uint8_t> packed) {
    std::size_t length = 0;
    while (length < packed.size() && length < kBlock) {
        const auto rest = packed.subspan(length);
        const std::size_t frame = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
        if (!ZSTD_isError(frame)) {
            length += frame;
            continue;
        }
        if (length == 0 && ZSTD_getErrorCode(frame) != ZSTD_error_srcSize_wrong) return std::nullopt;
        break;
    }
    return length;
}

// A gzip member whose first extra field, "BC", has the member's size less one. Blocks hold at most 64
// KiB.
std::optional<std::size_t> find_bgzip_blocks(std::span<const std::uint8_t> packed) {
    constexpr std::size_t kHeader = 18;
    constexpr std::uint8_t kBegin[] = {0x1f, 0x8b, 8, 4};
    std::size_t length = 0;
    while (packed.size() - length >= kHeader && length < kReadAtOnce) {
        const std::uint8_t* const block = packed.data() + length;
        const bool is_block = std::equal(std::begin(kBegin), std::end(kBegin), block) &&
                              block[12] == 'B' && block[13] == 'C' && block[14] == 2 && block[15] == 0;
        if (!is_block && length == 0) return std::nullopt;
        const std::size_t size = std::size_t{block[16]} + (std::size_t{block[17]} << 8) + 1;
        if (!is_block || size < kHeader || size > packed.size() - length) break;
        length += size;
    }
    return length;
}

std::unique_ptr<ByteSource> unpack_frames(std::unique_ptr<ByteSource> packed, MakeUnpacker unpacker,
                                          FindFrames find, unsigned threads) {
    return std::make_unique<FramedSource>(std::move(packed), std::move(unpacker), find, threads);
}

std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source) {
    return std::make_unique<ReadAheadSource>(std::move(source));
}

}  // namespace revisit
