// zstd, xz, gzip and zip, recognized by their first bytes when reading and by the file's ending when
// writing.
//
// The three libraries share one shape (feed input, drain output, repeat), so each is a small codec and
// one source and one sink serve them all. Concatenated members are read through, as zcat does.
#include "formats/compress.h"

#include <fmt/format.h>
#include <zstd.h>
#ifdef REVISIT_HAVE_LZMA
#include <lzma.h>
#endif
#ifdef REVISIT_HAVE_ZLIB
#include <zlib.h>
#endif

#include <cstring>
#include <vector>

#include "core/try.h"
#include "formats/byte_stream.h"
#include "formats/unpack_ahead.h"
#include "formats/zip.h"

namespace revisit {
namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;
constexpr std::size_t kFrame = std::size_t{4} << 20;  // of zstd, unpacked bytes

struct Cursor {
    std::uint8_t* at;
    std::size_t left;
};

enum class Step { more, member_ended, broken };

// One direction of one library. `step` consumes from `in`, produces into `out`.
class Codec {
 public:
    virtual ~Codec() = default;
    virtual Step step(Cursor& in, Cursor& out, bool input_ended) = 0;
    virtual bool restart() = 0;
};

class ZstdUnpacker : public Codec {
 public:
    ~ZstdUnpacker() override { ZSTD_freeDStream(stream_); }
    Step step(Cursor& in, Cursor& out, bool) override {
        ZSTD_inBuffer from{in.at, in.left, 0};
        ZSTD_outBuffer to{out.at, out.left, 0};
        std::size_t code = ZSTD_decompressStream(stream_, &to, &from);
        in = {in.at + from.pos, in.left - from.pos};
        out = {out.at + to.pos, out.left - to.pos};
        if (ZSTD_isError(code)) return Step::broken;
        return code == 0 ? Step::member_ended : Step::more;
    }
    bool restart() override { return !ZSTD_isError(ZSTD_initDStream(stream_)); }

 private:
    ZSTD_DStream* stream_ = ZSTD_createDStream();
};

class ZstdPacker : public Codec {
 public:
    ZstdPacker() {
        ZSTD_initCStream(stream_, 3);
        ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
    }
    ~ZstdPacker() override { ZSTD_freeCStream(stream_); }
    Step step(Cursor& in, Cursor& out, bool input_ended) override {
        ZSTD_inBuffer from{in.at, in.left, 0};
        ZSTD_outBuffer to{out.at, out.left, 0};
        std::size_t code =
            ZSTD_compressStream2(stream_, &to, &from, input_ended ? ZSTD_e_end : ZSTD_e_continue);
        in = {in.at + from.pos, in.left - from.pos};
        out = {out.at + to.pos, out.left - to.pos};
        if (ZSTD_isError(code)) return Step::broken;
        return input_ended && code == 0 ? Step::member_ended : Step::more;
    }
    bool restart() override { return true; }

 private:
    ZSTD_CStream* stream_ = ZSTD_createCStream();
};

#ifdef REVISIT_HAVE_LZMA
class XzCodec : public Codec {
 public:
    explicit XzCodec(bool packs) : packs_(packs) {
        if (packs_) ready_ = lzma_easy_encoder(&stream_, 1, LZMA_CHECK_CRC64) == LZMA_OK;
    }
    ~XzCodec() override { lzma_end(&stream_); }
    Step step(Cursor& in, Cursor& out, bool input_ended) override {
        if (!ready_) return Step::broken;
        stream_.next_in = in.at;
        stream_.avail_in = in.left;
        stream_.next_out = out.at;
        stream_.avail_out = out.left;
        lzma_ret code = lzma_code(&stream_, input_ended ? LZMA_FINISH : LZMA_RUN);
        in = {in.at + (in.left - stream_.avail_in), stream_.avail_in};
        out = {out.at + (out.left - stream_.avail_out), stream_.avail_out};
        if (code == LZMA_STREAM_END) return Step::member_ended;
        return code == LZMA_OK || code == LZMA_BUF_ERROR ? Step::more : Step::broken;
    }
    bool restart() override {
        // The limit keeps a hostile header from asking for gigabytes of dictionary.
        constexpr std::uint64_t kMemoryLimit = std::uint64_t{1} << 30;
        lzma_end(&stream_);
        stream_ = LZMA_STREAM_INIT;
        ready_ = lzma_stream_decoder(&stream_, kMemoryLimit, 0) == LZMA_OK;
        return ready_;
    }

 private:
    bool packs_;
    bool ready_ = false;
    lzma_stream stream_ = LZMA_STREAM_INIT;
};
#endif

#ifdef REVISIT_HAVE_ZLIB
class GzipCodec : public Codec {
 public:
    explicit GzipCodec(bool packs) : packs_(packs) {
        if (packs_)
            ready_ = deflateInit2(&stream_, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    }
    ~GzipCodec() override { end(); }
    Step step(Cursor& in, Cursor& out, bool input_ended) override {
        if (!ready_) return Step::broken;
        stream_.next_in = in.at;
        stream_.avail_in = static_cast<uInt>(in.left);
        stream_.next_out = out.at;
        stream_.avail_out = static_cast<uInt>(out.left);
        int code = packs_ ? deflate(&stream_, input_ended ? Z_FINISH : Z_NO_FLUSH)
                          : inflate(&stream_, Z_NO_FLUSH);
        in = {in.at + (in.left - stream_.avail_in), stream_.avail_in};
        out = {out.at + (out.left - stream_.avail_out), stream_.avail_out};
        if (code == Z_STREAM_END) return Step::member_ended;
        return code == Z_OK || code == Z_BUF_ERROR ? Step::more : Step::broken;
    }
    bool restart() override {
        end();
        stream_ = {};
        ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
        return ready_;
    }

 private:
    void end() {
        if (ready_) packs_ ? deflateEnd(&stream_) : inflateEnd(&stream_);
        ready_ = false;
    }
    bool packs_;
    bool ready_ = false;
    z_stream stream_ = {};
};
#endif

// Gives back the bytes that were read to recognize the source, then the source itself.
class ReplayedSource : public ByteSource {
 public:
    ReplayedSource(std::vector<std::uint8_t> head, std::unique_ptr<ByteSource> rest)
        : head_(std::move(head)), rest_(std::move(rest)) {}
    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        if (at_ == head_.size()) return rest_->read(into, size);
        std::size_t count = std::min(size, head_.size() - at_);
        std::memcpy(into, head_.data() + at_, count);
        at_ += count;
        return count;
    }

 private:
    std::vector<std::uint8_t> head_;
    std::size_t at_ = 0;
    std::unique_ptr<ByteSource> rest_;
};

class UnpackedSource : public ByteSource {
 public:
    // `begin`: of the packed bytes, in the file.
    UnpackedSource(std::unique_ptr<ByteSource> packed, std::unique_ptr<Codec> codec, std::string name,
                   const char* kind, std::uint64_t begin)
        : packed_(std::move(packed)),
          codec_(std::move(codec)),
          name_(std::move(name)),
          kind_(kind),
          buffer_(kBuffer),
          consumed_(begin) {}

    bool unpacks() const override { return true; }
    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        Cursor out{into, size};
        while (out.left == size) {
            if (in_.left == 0 && !input_ended_) {
                auto count = packed_->read(buffer_.data(), buffer_.size());
                if (!count) return count;
                in_ = {buffer_.data(), *count};
                consumed_ += *count;
                input_ended_ = *count == 0;
            }
            if (between_members_) {
                if (input_ended_ && in_.left == 0) return std::size_t{0};
                if (!codec_->restart()) return broken("broken");
                between_members_ = false;
            }
            Cursor before_in = in_, before_out = out;
            Step step = codec_->step(in_, out, false);
            if (step == Step::broken) return broken("broken");
            if (step == Step::member_ended) between_members_ = true;
            bool stuck = in_.left == before_in.left && out.left == before_out.left;
            if (stuck && step == Step::more && input_ended_) return broken("cut short");
            if (stuck && step == Step::more && in_.left > 0) return broken("broken");
        }
        return size - out.left;
    }

 private:
    unexpected<Error> broken(const char* how) const {
        return fail(name_, fmt::format("byte {}", consumed_ - in_.left),
                    fmt::format("{} data is {}", kind_, how));
    }
    std::unique_ptr<ByteSource> packed_;
    std::unique_ptr<Codec> codec_;
    std::string name_;
    const char* kind_;
    std::vector<std::uint8_t> buffer_;
    Cursor in_{nullptr, 0};
    std::uint64_t consumed_;  // and where it began
    bool input_ended_ = false;
    bool between_members_ = true;
};

class PlainSink : public ByteSink {
 public:
    explicit PlainSink(OutputFile file) : file_(std::move(file)) {}
    Result<void> write(std::string_view bytes) override { return file_.write(bytes); }
    Result<void> finish() override { return file_.commit(); }

 private:
    OutputFile file_;
};

class PackedSink : public ByteSink {
 public:
    // `frame_bytes`: after which the codec can begin another frame; 0 = it cannot.
    PackedSink(OutputFile file, std::unique_ptr<Codec> codec, std::size_t frame_bytes)
        : file_(std::move(file)),
          codec_(std::move(codec)),
          buffer_(kBuffer),
          frame_bytes_(frame_bytes) {}
    // A frame after every few MiB, so that readers unpack them side by side.
    Result<void> write(std::string_view bytes) override {
        while (frame_bytes_ != 0 && in_frame_ + bytes.size() > frame_bytes_) {
            const std::size_t take = frame_bytes_ - in_frame_;
            TRY(pump(bytes.substr(0, take), false));
            TRY(pump({}, true));
            bytes.remove_prefix(take);
            in_frame_ = 0;
        }
        in_frame_ += bytes.size();
        return pump(bytes, false);
    }
    Result<void> finish() override {
        TRY(pump({}, true));
        return file_.commit();
    }

 private:
    Result<void> pump(std::string_view bytes, bool ends) {
        Cursor in{reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())), bytes.size()};
        for (;;) {
            Cursor out{buffer_.data(), buffer_.size()};
            Step step = codec_->step(in, out, ends);
            if (step == Step::broken) return fail("the compressor failed");
            TRY(file_.write(buffer_.data(), buffer_.size() - out.left));
            if (ends ? step == Step::member_ended : in.left == 0) return {};
        }
    }
    OutputFile file_;
    std::unique_ptr<Codec> codec_;
    std::vector<std::uint8_t> buffer_;
    const std::size_t frame_bytes_;
    std::size_t in_frame_ = 0;
};

bool begins_with(const std::vector<std::uint8_t>& head, std::initializer_list<std::uint8_t> magic) {
    return head.size() >= magic.size() && std::equal(magic.begin(), magic.end(), head.begin());
}

}  // namespace

Result<std::unique_ptr<ByteSource>> unpacked(std::unique_ptr<ByteSource> packed,
                                             const std::string& name, unsigned threads) {
    std::vector<std::uint8_t> head(6);
    std::size_t filled = 0;
    while (filled < head.size()) {
        const std::size_t count = TRY(packed->read(head.data() + filled, head.size() - filled));
        if (count == 0) break;
        filled += count;
    }
    head.resize(filled);
    const bool zstd = begins_with(head, {0x28, 0xb5, 0x2f, 0xfd}),
               xz = begins_with(head, {0xfd, '7', 'z', 'X', 'Z', 0}),
               gzip = begins_with(head, {0x1f, 0x8b}), zip = begins_with(head, {'P', 'K', 3, 4});
    auto replayed = std::make_unique<ReplayedSource>(std::move(head), std::move(packed));
#ifndef REVISIT_HAVE_LZMA
    if (xz) return fail(name, {}, "is xz, and liblzma is not in this build");
#endif
#ifndef REVISIT_HAVE_ZLIB
    if (gzip || zip)
        return fail(name, {},
                    fmt::format("is {}, and zlib is not in this build", zip ? "zip" : "gzip"));
#else
    if (zip) {
        auto members = unzipped(std::move(replayed), name);
        return threads > 1 ? read_ahead(std::move(members)) : std::move(members);
    }
#endif
    if (!zstd && !xz && !gzip) return replayed;
    const MakeUnpacker unpacker = [=](std::unique_ptr<ByteSource> bytes,
                                      std::uint64_t begin) -> std::unique_ptr<ByteSource> {
        std::unique_ptr<Codec> codec;
        if (zstd) codec = std::make_unique<ZstdUnpacker>();
#ifdef REVISIT_HAVE_LZMA
        if (xz) codec = std::make_unique<XzCodec>(false);
#endif
#ifdef REVISIT_HAVE_ZLIB
        if (gzip) codec = std::make_unique<GzipCodec>(false);
#endif
        return std::make_unique<UnpackedSource>(std::move(bytes), std::move(codec), name,
                                                zstd ? "zstd"
                                                : xz ? "xz"
                                                     : "gzip",
                                                begin);
    };
    if (threads <= 1) return unpacker(std::move(replayed), 0);
    if (xz) return read_ahead(unpacker(std::move(replayed), 0));
    return unpack_frames(std::move(replayed), unpacker, zstd ? find_zstd_frames : find_bgzip_blocks,
                         threads);
}

std::string_view without_packing_suffix(std::string_view path) {
    for (std::string_view suffix : {".zst", ".gz", ".xz"})
        if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
    return path;
}

Result<std::unique_ptr<ByteSink>> create_sink(const std::string& path) {
    std::unique_ptr<Codec> codec;
    if (path.ends_with(".zst")) codec = std::make_unique<ZstdPacker>();
#ifdef REVISIT_HAVE_LZMA
    if (path.ends_with(".xz")) codec = std::make_unique<XzCodec>(true);
#endif
#ifdef REVISIT_HAVE_ZLIB
    if (path.ends_with(".gz")) codec = std::make_unique<GzipCodec>(true);
#endif
    if (!codec && without_packing_suffix(path) != path)
        return fail(path, {}, "the library that packs such files is not in this build");
    OutputFile file = TRY(OutputFile::create(path));
    if (!codec) return std::make_unique<PlainSink>(std::move(file));
    return std::make_unique<PackedSink>(std::move(file), std::move(codec),
                                        path.ends_with(".zst") ? kFrame : 0);
}

}  // namespace revisit
