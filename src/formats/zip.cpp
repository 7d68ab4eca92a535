// A zip archive read from front to back, so that it may come through a pipe: each member has a header
// of its own before its data. The directory at the end, which other readers start from, is passed over.
//
//     PK\3\4 flags method crc sizes name extra │ data │ [PK\7\8] crc sizes │ PK\3\4 … │ PK\1\2 …
//
// Where bit 3 of the flags is set, sizes and checksum come after the data; deflated data says itself
// where it ends, stored data does not and is refused then. Sizes of 64 bits change only how long that
// trailer is.
#include "formats/zip.h"

#include <fmt/format.h>

#include "core/try.h"
#include "formats/fixed_records.h"
#ifdef REVISIT_HAVE_ZLIB
#include <zlib.h>
#endif

namespace revisit {
#ifdef REVISIT_HAVE_ZLIB
namespace {

constexpr std::size_t kZipBuffer = std::size_t{256} << 10;
constexpr std::uint32_t kMember = 0x04034b50, kTrailer = 0x08074b50;
constexpr std::uint32_t kDirectory = 0x02014b50, kEmpty = 0x06054b50, kExtra = 0x08064b50;
constexpr std::size_t kHeaderBytes = 30;

class ZipSource : public ByteSource {
 public:
    ZipSource(std::unique_ptr<ByteSource> packed, std::string name)
        : packed_(std::move(packed)), name_(std::move(name)), buffer_(kZipBuffer) {}
    ~ZipSource() override { end_inflating(); }
    bool unpacks() const override { return true; }

    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        while (size != 0) {
            if (!within_ && !TRY(enter_member())) return std::size_t{0};
            const std::size_t count = deflated_ ? TRY(inflate_some(into, size)) : TRY(copy(into, size));
            if (count == 0) {
                TRY(leave_member());
                continue;
            }
            crc_ = static_cast<std::uint32_t>(crc32(crc_, into, static_cast<uInt>(count)));
            return count;
        }
        return std::size_t{0};
    }

 private:
    // At least `want` bytes from begin_ on, unless the end comes first.
    Result<void> fill(std::size_t want) {
        if (end_ - begin_ >= want) return {};
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        while (end_ < want) {
            const std::size_t count = TRY(packed_->read(buffer_.data() + end_, buffer_.size() - end_));
            if (count == 0) break;
            end_ += count;
        }
        return {};
    }
    std::size_t left() const { return end_ - begin_; }
    const std::uint8_t* at() const { return buffer_.data() + begin_; }
    void skip(std::size_t count) {
        begin_ += count;
        position_ += count;
    }
    unexpected<Error> broken(const std::string& what) const {
        return fail(name_, fmt::format("byte {}", position_), what);
    }
    void end_inflating() {
        if (inflating_) inflateEnd(&stream_);
        inflating_ = false;
    }

    // False where the members end.
    Result<bool> enter_member() {
        TRY(fill(kHeaderBytes));
        const std::uint32_t magic = left() >= 4 ? load<std::uint32_t>(at()) : 0;
        if (magic == kDirectory || magic == kEmpty || magic == kExtra || (left() == 0 && ended_))
            return pass_over_rest();
        if (left() < kHeaderBytes || magic != kMember)
            return broken(left() == 0 ? "zip data is cut short" : "expected a member of the zip file");
        const auto flags = load<std::uint16_t>(at() + 6), method = load<std::uint16_t>(at() + 8);
        crc_expected_ = load<std::uint32_t>(at() + 14);
        stored_left_ = load<std::uint32_t>(at() + 18);
        const auto size = load<std::uint32_t>(at() + 22);
        std::size_t name_bytes = load<std::uint16_t>(at() + 26);
        std::size_t extra_bytes = load<std::uint16_t>(at() + 28);
        trailer_ = (flags & 8) != 0;
        deflated_ = method == 8;
        if ((flags & 1) != 0) return broken("expected a zip file without a password");
        if (!deflated_ && method != 0)
            return broken(fmt::format("expected stored or deflated data, found method {}", method));
        if (!deflated_ && (trailer_ || (stored_left_ == 0xffffffff && size == 0xffffffff)))
            return broken("expected a stored member that gives its size");
        skip(kHeaderBytes);
        TRY(fill(name_bytes + extra_bytes));
        if (left() < name_bytes + extra_bytes) return broken("zip data is cut short");
        skip(name_bytes + extra_bytes);
        crc_ = 0;
        within_ = true;
        if (deflated_) {
            stream_ = {};
            if (inflateInit2(&stream_, -15) != Z_OK) return broken("zlib failed");
            inflating_ = true;
        }
        return true;
    }

    Result<bool> pass_over_rest() {
        for (;;) {
            skip(left());
            TRY(fill(1));
            if (left() == 0) break;
        }
        ended_ = true;
        return false;
    }

    Result<std::size_t> copy(std::uint8_t* into, std::size_t size) {
        size = std::min<std::size_t>(size, stored_left_);
        if (size == 0) return size;
        TRY(fill(1));
        if (left() == 0) return broken("zip data is cut short");
        size = std::min(size, left());
        std::memcpy(into, at(), size);
        skip(size);
        stored_left_ -= static_cast<std::uint32_t>(size);
        return size;
    }

    Result<std::size_t> inflate_some(std::uint8_t* into, std::size_t size) {
        size = std::min(size, kZipBuffer);
        stream_.next_out = into;
        stream_.avail_out = static_cast<uInt>(size);
        while (inflating_ && stream_.avail_out == size) {
            TRY(fill(1));
            if (left() == 0) return broken("zip data is cut short");
            stream_.next_in = const_cast<std::uint8_t*>(at());
            stream_.avail_in = static_cast<uInt>(left());
            const int code = inflate(&stream_, Z_NO_FLUSH);
            skip(left() - stream_.avail_in);
            if (code == Z_STREAM_END) {
                end_inflating();
            } else if (code != Z_OK && code != Z_BUF_ERROR) {
                return broken("zip data is broken");
            }
        }
        return size - stream_.avail_out;
    }

    Result<void> leave_member() {
        within_ = false;
        if (trailer_) {
            TRY(fill(28));
            const std::size_t mark = left() >= 4 && load<std::uint32_t>(at()) == kTrailer ? 4 : 0;
            if (left() < mark + 12) return broken("zip data is cut short");
            crc_expected_ = load<std::uint32_t>(at() + mark);
            // Sizes of 4 or of 8 bytes: whichever is followed by what may follow a member.
            const auto may_follow = [&](std::size_t from) {
                if (left() < from + 4) return false;
                const auto magic = load<std::uint32_t>(at() + from);
                return magic == kMember || magic == kDirectory || magic == kExtra;
            };
            skip(may_follow(mark + 12) || !may_follow(mark + 20) ? mark + 12 : mark + 20);
        }
        if (crc_ != crc_expected_) return broken("zip data is broken: its checksum is another one");
        return {};
    }

    std::unique_ptr<ByteSource> packed_;
    std::string name_;
    std::vector<std::uint8_t> buffer_;
    std::size_t begin_ = 0, end_ = 0;
    std::uint64_t position_ = 0;
    bool within_ = false, deflated_ = false, trailer_ = false, ended_ = false, inflating_ = false;
    std::uint32_t crc_ = 0, crc_expected_ = 0, stored_left_ = 0;
    z_stream stream_ = {};
};

}  // namespace

std::unique_ptr<ByteSource> unzipped(std::unique_ptr<ByteSource> packed, std::string name) {
    return std::make_unique<ZipSource>(std::move(packed), std::move(name));
}
#endif

}  // namespace revisit
