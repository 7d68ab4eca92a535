// revisit: our own trace format.
//
// A magic number, then chunks (revisit_chunk.h), each a fixed header and zstd-packed bytes: any number
// of access chunks, one info chunk (modules, sites, command, the recorder's attribution as JSON), one
// index chunk (where each access chunk lies and how many accesses it holds), and a trailer that points
// to the index. A reader of a pipe goes chunk by chunk; a reader of a file may start anywhere the index
// says. A file without its trailer was cut short and is refused.
//
// Reading overlaps: the next chunks unpack on other threads while the engine works on this one, in
// memory bounded by the number of chunks in flight.
#include <algorithm>
#include <deque>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "formats/fixed_records.h"
#include "formats/format.h"
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

class RevisitReader : public TraceReader {
 public:
    explicit RevisitReader(ByteStream stream)
        : stream_(std::move(stream)),
          most_in_flight_(std::clamp(std::thread::hardware_concurrency(), 1u, 16u) + 1) {}

    Result<AccessBatch> next() override {
        while (!ended_ && in_flight_.size() < most_in_flight_) {
            if (auto done = read_chunk(); !done) return std::unexpected(done.error());
        }
        if (in_flight_.empty()) return AccessBatch{};
        std::uint64_t place = in_flight_.front().place;
        auto columns = in_flight_.front().columns.get();
        in_flight_.pop_front();
        if (!columns)
            return fail(stream_.name(), fmt::format("byte {}", place), columns.error().message);
        current_ = std::move(*columns);
        return current_.batch();
    }
    TraceInfo info() const override { return info_; }
    bool tells_places() const override { return true; }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    struct InFlight {
        std::uint64_t place;
        std::future<Result<Columns>> columns;
    };

    Result<void> read_chunk() {
        auto head = stream_.peek(sizeof(ChunkHeader));
        if (!head) return std::unexpected(head.error());
        if (head->size() < sizeof(ChunkHeader))
            return stream_.error_here("expected another chunk, found the end: the trace was cut short");
        ChunkHeader header;
        std::memcpy(&header, head->data(), sizeof header);
        bool known =
            header.magic == kAccessChunk || header.magic == kInfoChunk || header.magic == kIndexChunk;
        if (!known || !header.plausible())
            return stream_.error_here("expected a chunk of a revisit trace");
        std::uint64_t place = stream_.position();
        stream_.consume(sizeof header);
        auto packed = take(header.packed_bytes);
        if (!packed) return std::unexpected(packed.error());
        if (header.magic == kAccessChunk) {
            in_flight_.push_back(
                {place, std::async(std::launch::async, [header, bytes = std::move(*packed)] {
                     return decode_accesses(header, bytes);
                 })});
            return {};
        }
        auto text = decode_text(header, *packed);
        if (!text) return fail(stream_.name(), fmt::format("byte {}", place), text.error().message);
        if (header.magic == kInfoChunk) {
            auto info = info_from_json(*text);
            if (!info) return fail(stream_.name(), fmt::format("byte {}", place), info.error().message);
            info_ = std::move(*info);
            return {};
        }
        auto trailer = stream_.peek(16);
        if (!trailer) return std::unexpected(trailer.error());
        if (trailer->size() != 16 || std::memcmp(trailer->data() + 8, kEndMagic.data(), 8) != 0)
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
            auto bytes = stream_.peek(want);
            if (!bytes) return std::unexpected(bytes.error());
            if (bytes->size() < want)
                return stream_.error_here(
                    "expected the rest of a chunk, found the end: the trace was cut short");
            out.insert(out.end(), bytes->begin(), bytes->begin() + static_cast<std::ptrdiff_t>(want));
            stream_.consume(want);
        }
        return out;
    }

    ByteStream stream_;
    std::size_t most_in_flight_;
    std::deque<InFlight> in_flight_;
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
            if (auto done = flush(); !done) return done;
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
            if (pending_.count() == kChunkAccesses) {
                if (auto done = flush(); !done) return done;
            }
        }
        return {};
    }

    Result<void> finish(const TraceInfo& info) override {
        if (auto done = flush(); !done) return done;
        encode_text(kInfoChunk, info_to_json(info), out_);
        std::uint64_t index_at = written_ + out_.size();
        encode_text(kIndexChunk, index_, out_);
        out_.append(reinterpret_cast<const char*>(&index_at), sizeof index_at);
        out_ += kEndMagic;
        if (auto done = sink_->write(out_); !done) return done;
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
    auto head = stream.peek(kMagic.size());
    if (!head) return std::unexpected(head.error());
    if (!recognize_revisit(*head)) return stream.error_here("expected a revisit trace");
    stream.consume(kMagic.size());
    return std::make_unique<RevisitReader>(std::move(stream));
}
Result<std::unique_ptr<TraceWriter>> create_revisit(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<RevisitWriter>(std::move(sink));
}

}  // namespace revisit
