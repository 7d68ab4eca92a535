// revisit: our own trace format.
//
// A magic number, then chunks (revisit_chunk.h), each a fixed header and zstd-packed bytes: any number
// of access chunks, one info chunk (modules, sites, command, the recorder's attribution as JSON), one
// index chunk (where each access chunk lies and how many accesses it holds), and a trailer that points
// to the index. A reader of a pipe goes chunk by chunk; a reader of a file may start anywhere the index
// says. A file without its trailer was cut short and is refused.
//
// Chunks of a file are decoded by whoever analyzes it (AccessChunks). Read as a stream, the next chunks
// unpack on other threads while this one is used, in memory bounded by the number of chunks in flight.
#include <algorithm>
#include <deque>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/try.h"
#include "formats/fixed_records.h"
#include "formats/format.h"
#include "formats/mapped_file.h"
#include "formats/revisit_chunk.h"

namespace revisit {
namespace {

constexpr std::string_view kMagic = "revisit\x01";
constexpr std::string_view kEndMagic = "RVSTEND\x01";

using Json = nlohmann::json;

std::string info_to_json(const TraceInfo& info) {
    Json json = {{"command", info.command}, {"sites", info.site_addresses}, {"extra", info.extra_json}};
    if (info.natural_granularity != 0) json["granularity"] = info.natural_granularity;
    json["modules"] = Json::array();
    for (const Module& module : info.modules)
        json["modules"].push_back({{"low", module.low},
                                   {"high", module.high},
                                   {"file_offset", module.file_offset},
                                   {"path", module.path},
                                   {"build_id", module.build_id}});
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TraceInfo> info_from_json(const std::string& text) {
    TraceInfo info;
    try {
        Json json = Json::parse(text);
        info.command = json.at("command").get<std::vector<std::string>>();
        info.site_addresses = json.at("sites").get<std::vector<std::uint64_t>>();
        info.extra_json = json.at("extra").get<std::string>();
        info.natural_granularity = json.value("granularity", std::uint64_t{0});
        for (const Json& module : json.at("modules"))
            info.modules.push_back({module.at("low"), module.at("high"), module.at("file_offset"),
                                    module.at("path"), module.at("build_id")});
    } catch (const Json::exception&) {
        return fail("the chunk with modules and sites is broken");
    }
    return info;
}

unexpected<Error> broken_at(const std::string& file, std::uint64_t place, const Error& error) {
    return fail(file, fmt::format("byte {}", place), error.message);
}

// The access chunks of a plain file, by its index, and what else the trace knows.
class IndexedChunks final : public AccessChunks {
 public:
    // Null where the file has no index that holds together: a stream finds out what is wrong with it.
    static std::unique_ptr<IndexedChunks> of(const ByteStream& stream) {
        if (!stream.file() || stream.packed()) return nullptr;
        auto chunks = std::make_unique<IndexedChunks>(
            stream.file(), stream.threads() == 1 ? MappedFile::of(stream.file()) : nullptr);
        return chunks->read_index() ? std::move(chunks) : nullptr;
    }
    IndexedChunks(std::shared_ptr<const PlainFile> file, std::unique_ptr<MappedFile> mapped)
        : file_(std::move(file)), mapped_(std::move(mapped)) {}

    std::size_t count() const override { return places_.size(); }
    std::uint64_t accesses() const override { return accesses_; }
    Result<AccessBatch> decode(std::size_t chunk, Columns& into) const override {
        const std::uint64_t place = places_[chunk];
        ChunkHeader header;
        TRY(file_->read(place, &header, sizeof header));
        const std::uint64_t end = chunk + 1 < places_.size() ? places_[chunk + 1] : end_;
        if (!header.holds_accesses() || !header.plausible() ||
            header.packed_bytes != end - place - sizeof header)
            return fail(file_->name(), fmt::format("byte {}", place),
                        "expected a chunk of a revisit trace");
        const std::uint64_t from = place + sizeof header;
        Result<void> done;
        if (mapped_) {
            done = decode_accesses(
                header, {mapped_->get(from, header.packed_bytes), header.packed_bytes}, into);
            TRY(mapped_->used(from, header.packed_bytes));
        } else {
            into.raw.resize(header.packed_bytes);
            TRY(file_->read(from, into.raw.data(), into.raw.size()));
            done = decode_accesses(header, into.raw, into);
        }
        if (!done) return broken_at(file_->name(), place, done.error());
        return into.batch();
    }
    const TraceInfo& info() const { return info_; }

 private:
    Result<std::string> read_text(std::uint64_t place, std::uint64_t end, std::uint32_t magic) const {
        ChunkHeader header;
        if (end > file_->size() || end - place < sizeof header) return fail("no such chunk");
        TRY(file_->read(place, &header, sizeof header));
        if (header.magic != magic || !header.plausible() ||
            header.packed_bytes != end - place - sizeof header)
            return fail("no such chunk");
        std::vector<std::uint8_t> packed(header.packed_bytes);
        TRY(file_->read(place + sizeof header, packed.data(), packed.size()));
        return decode_text(header, packed);
    }

    Result<void> read_index() {
        const std::uint64_t size = file_->size();
        std::uint8_t trailer[16];
        if (size < kMagic.size() + sizeof trailer) return fail("too short");
        TRY(file_->read(size - sizeof trailer, trailer, sizeof trailer));
        const auto index_at = load<std::uint64_t>(trailer);
        if (std::memcmp(trailer + 8, kEndMagic.data(), kEndMagic.size()) != 0 ||
            index_at > size - sizeof trailer)
            return fail("no trailer");
        const std::string index = TRY(read_text(index_at, size - sizeof trailer, kIndexChunk));
        std::uint64_t least = kMagic.size();
        for (std::size_t at = 0; at + 16 <= index.size(); at += 16) {
            std::uint64_t place;
            std::memcpy(&place, index.data() + at, sizeof place);
            if (place < least || place > index_at - sizeof(ChunkHeader) || (at == 0 && place != least))
                return fail("places that do not rise");
            least = place + sizeof(ChunkHeader);
            places_.push_back(place);
            std::uint64_t accesses;
            std::memcpy(&accesses, index.data() + at + sizeof place, sizeof accesses);
            accesses_ += std::min<std::uint64_t>(accesses, kChunkAccesses);
        }
        // The other chunk lies after the last one of accesses.
        end_ = kMagic.size();
        if (!places_.empty()) {
            ChunkHeader header;
            TRY(file_->read(places_.back(), &header, sizeof header));
            end_ = places_.back() + sizeof header + header.packed_bytes;
        }
        if (end_ > index_at) return fail("chunks that overlap");
        info_ = TRY(info_from_json(TRY(read_text(end_, index_at, kInfoChunk))));
        return {};
    }

    std::shared_ptr<const PlainFile> file_;
    std::unique_ptr<MappedFile> mapped_;  // perhaps
    std::vector<std::uint64_t> places_;   // of access chunks
    std::uint64_t accesses_ = 0;          // in them, by the index
    std::uint64_t end_ = 0;               // of the last one
    TraceInfo info_;
};

class RevisitReader : public TraceReader {
 public:
    explicit RevisitReader(ByteStream stream)
        : stream_(std::move(stream)),
          decoding_(stream_.threads() > 1 ? std::launch::async : std::launch::deferred),
          most_in_flight_(stream_.threads() > 1 ? stream_.threads() + 1 : 1),
          chunks_(IndexedChunks::of(stream_)) {
        if (chunks_) info_ = chunks_->info();
    }

    Result<AccessBatch> next() override {
        TRY(read_ahead());
        if (in_flight_.empty()) return AccessBatch{};
        std::uint64_t place = in_flight_.front().place;
        auto columns = in_flight_.front().columns.get();
        in_flight_.pop_front();
        if (!columns) return broken_at(stream_.name(), place, columns.error());
        current_ = std::move(*columns);
        return current_.batch();
    }
    const AccessChunks* chunks() const override { return chunks_.get(); }
    TraceInfo info() const override { return info_; }
    Result<bool> tells_places() override {
        if (chunks_) {
            if (chunks_->count() == 0) return false;
            Columns first;
            return !TRY(chunks_->decode(0, first)).sites.empty();
        }
        TRY(read_ahead());
        if (in_flight_.empty()) return false;
        // Put back as it came.
        Result<Columns> columns = in_flight_.front().columns.get();
        const bool has_sites = columns && columns->has.sites;
        std::promise<Result<Columns>> again;
        again.set_value(std::move(columns));
        in_flight_.front().columns = again.get_future();
        return has_sites;
    }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    struct InFlight {
        std::uint64_t place;
        std::future<Result<Columns>> columns;
    };

    Result<void> read_ahead() {
        while (!ended_ && in_flight_.size() < most_in_flight_) TRY(read_chunk());
        return {};
    }

    Result<void> read_chunk() {
        const auto head = TRY(stream_.peek(sizeof(ChunkHeader)));
        if (head.size() < sizeof(ChunkHeader))
            return stream_.error_here("expected another chunk, found the end: the trace was cut short");
        ChunkHeader header;
        std::memcpy(&header, head.data(), sizeof header);
        bool known =
            header.holds_accesses() || header.magic == kInfoChunk || header.magic == kIndexChunk;
        if (!known || !header.plausible())
            return stream_.error_here("expected a chunk of a revisit trace");
        std::uint64_t place = stream_.position();
        stream_.consume(sizeof header);
        auto packed = TRY(take(header.packed_bytes));
        if (header.holds_accesses()) {
            in_flight_.push_back(
                {place, std::async(decoding_, [header, bytes = std::move(packed)]() -> Result<Columns> {
                     Columns columns;
                     TRY(decode_accesses(header, bytes, columns));
                     return columns;
                 })});
            return {};
        }
        auto text = decode_text(header, packed);
        if (!text) return broken_at(stream_.name(), place, text.error());
        if (header.magic == kInfoChunk) {
            auto info = info_from_json(*text);
            if (!info) return broken_at(stream_.name(), place, info.error());
            info_ = std::move(*info);
            return {};
        }
        const auto trailer = TRY(stream_.peek(16));
        if (trailer.size() != 16 || std::memcmp(trailer.data() + 8, kEndMagic.data(), 8) != 0)
            return stream_.error_here("expected the trailer of a revisit trace and the end");
        ended_ = true;
        return {};
    }

    // Grows as bytes arrive, so that a length field alone allocates nothing.
    Result<std::vector<std::uint8_t>> take(std::size_t size) {
        constexpr std::size_t kStep = std::size_t{1} << 20;
        std::vector<std::uint8_t> out;
        while (out.size() < size) {
            std::size_t want = std::min(kStep, size - out.size());
            const auto bytes = TRY(stream_.peek(want));
            if (bytes.size() < want)
                return stream_.error_here(
                    "expected the rest of a chunk, found the end: the trace was cut short");
            out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(want));
            stream_.consume(want);
        }
        return out;
    }

    ByteStream stream_;
    std::launch decoding_;
    std::size_t most_in_flight_;
    std::deque<InFlight> in_flight_;
    std::unique_ptr<IndexedChunks> chunks_;
    Columns current_;
    TraceInfo info_;
    bool ended_ = false;
};

class RevisitWriter : public TraceWriter {
 public:
    explicit RevisitWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)), out_(kMagic) {}

    Result<void> write(const AccessBatch& batch) override {
        if (batch.count() == 0) return {};
        if (!(columns_of(batch) == pending_.has)) {  // chunks hold one set of columns
            TRY(flush());
            pending_.has = columns_of(batch);
        }
        for (std::size_t i = 0; i < batch.count();) {
            std::size_t take = std::min(batch.count() - i, kChunkAccesses - pending_.count());
            auto append = [&](auto& column, auto span) {
                if (!span.empty())
                    column.insert(column.end(), span.begin() + static_cast<std::ptrdiff_t>(i),
                                  span.begin() + static_cast<std::ptrdiff_t>(i + take));
            };
            append(pending_.addresses, batch.addresses);
            append(pending_.sites, batch.sites);
            append(pending_.sizes, batch.sizes);
            append(pending_.threads, batch.threads);
            append(pending_.flags, batch.flags);
            i += take;
            if (pending_.count() == kChunkAccesses) TRY(flush());
        }
        return {};
    }

    Result<void> finish(const TraceInfo& info) override {
        TRY(flush());
        encode_text(kInfoChunk, info_to_json(info), out_);
        std::uint64_t index_at = written_ + out_.size();
        encode_text(kIndexChunk, index_, out_);
        out_.append(reinterpret_cast<const char*>(&index_at), sizeof index_at);
        out_ += kEndMagic;
        TRY(sink_->write(out_));
        return sink_->finish();
    }

 private:
    Result<void> flush() {
        if (pending_.count() > 0) {
            std::uint64_t place = written_ + out_.size();
            auto accesses = static_cast<std::uint64_t>(pending_.count());
            index_.append(reinterpret_cast<const char*>(&place), sizeof place);
            index_.append(reinterpret_cast<const char*>(&accesses), sizeof accesses);
            encode_accesses(pending_.batch(), out_);
            pending_.clear();
        }
        auto done = sink_->write(out_);
        written_ += out_.size();
        out_.clear();
        return done;
    }

    std::unique_ptr<ByteSink> sink_;
    std::string out_;
    std::string index_;
    std::uint64_t written_ = 0;
    Columns pending_;
};

}  // namespace

bool recognize_revisit(std::span<const std::uint8_t> head) {
    return head.size() >= kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<std::unique_ptr<TraceReader>> open_revisit(ByteStream stream) {
    const auto head = TRY(stream.peek(kMagic.size()));
    if (!recognize_revisit(head)) return stream.error_here("expected a revisit trace");
    stream.consume(kMagic.size());
    return std::make_unique<RevisitReader>(std::move(stream));
}
Result<std::unique_ptr<TraceWriter>> create_revisit(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<RevisitWriter>(std::move(sink));
}

}  // namespace revisit
