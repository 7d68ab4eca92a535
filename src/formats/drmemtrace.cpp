// drmemtrace: traces of DynamoRIO's drmemtrace, as it and Google's published workload traces store
// them: one file per thread (or per core), packed by gzip or zip, in a directory.
//
// A file is a sequence of 12-byte entries: u16 type, u16 size, u64 address. What the address means
// depends on the type; what follows an instruction belongs to it.
//
//     header 0 version │ thread 4 tid │ process 4 pid │ marker 2 microseconds │
//     instruction 4 pc │ read 8 address │ instruction 4 pc │ write 8 address │ … │ footer
//
// Reads and writes of data are accesses; the low half of the instruction's address is the site.
// Instruction fetches and prefetches are not accesses, and what the kernel does between the markers
// that begin and end a system call or a context switch is left out, as in revisit's own recordings.
// Addresses of a second and later process get a number of their own in their top bits, so that one
// trace may hold several.
//
// Threads of a directory are merged by their time stamps, which come every few thousand instructions:
// the thread whose next stretch begins first goes first.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/try.h"
#include "formats/fixed_records.h"
#include "formats/format.h"

namespace revisit {
namespace {

enum Type : std::uint16_t {
    kRead = 0,
    kStore = 1,
    kInstruction = 10,  // up to kReturn, with one kind of branch each
    kReturn = 16,
    kBundle = 17,  // several instructions: their lengths instead of an address
    kThread = 22,
    kProcess = 24,
    kHeader = 25,
    kMarker = 28,
    kNotFetched = 29,  // an instruction that repeats
    kSystemEnter = 31,
    kTakenJump = 48,
    kUntakenJump = 49,
    kTypes = 64,  // beyond those of version 7, for later ones
};

enum Marker : std::uint16_t {
    kTimeStamp = 2,
    kSystemCallBegins = 27,
    kSystemCallEnds = 28,
    kContextSwitchBegins = 34,
    kContextSwitchEnds = 35,
};

constexpr std::size_t kEntryBytes = 12;
constexpr ColumnSet kColumns{true, true, true, true};

// Small numbers for the ids of threads and processes, in the order in which they come.
class Numbering {
 public:
    std::uint64_t of(std::uint64_t id) {
        return numbers_.try_emplace(id, numbers_.size()).first->second;
    }

 private:
    std::map<std::uint64_t, std::uint64_t> numbers_;
};

struct Ids {
    Numbering threads, processes;
};

// The entries of one file, and what they have set so far.
class Entries {
 public:
    Entries(ByteStream stream, std::shared_ptr<Ids> ids)
        : stream_(std::move(stream)), ids_(std::move(ids)) {}

    std::uint64_t time() const { return time_; }
    bool ended() const { return ended_; }
    const ByteStream& stream() const { return stream_; }

    // Adds accesses up to the next time stamp, or until there are `limit`.
    Result<void> take(Columns& columns, std::size_t limit) {
        while (columns.count() < limit) {
            const auto bytes = TRY(stream_.peek(kEntryBytes));
            if (bytes.empty()) {
                ended_ = true;
                return {};
            }
            const std::size_t entries = bytes.size() / kEntryBytes;
            if (entries == 0)
                return stream_.error_here(
                    fmt::format("expected an entry of {} bytes, found the end after {}", kEntryBytes,
                                bytes.size()));
            std::size_t done = 0;
            bool stamped = false;
            while (done < entries && columns.count() < limit && !stamped) {
                const std::uint8_t* at = bytes.data() + done * kEntryBytes;
                const auto type = load<std::uint16_t>(at);
                if (type >= kTypes) {
                    stream_.consume(done * kEntryBytes);
                    return stream_.error_here(
                        fmt::format("expected an entry of drmemtrace, found type {}", type));
                }
                stamped =
                    entry(type, load<std::uint16_t>(at + 2), load<std::uint64_t>(at + 4), columns);
                ++done;
            }
            stream_.consume(done * kEntryBytes);
            if (stamped) return {};
        }
        return {};
    }

 private:
    // Whether it is a time stamp.
    bool entry(std::uint16_t type, std::uint16_t size, std::uint64_t value, Columns& columns) {
        switch (type) {
            case kRead:
            case kStore:
                if (kernel_ == 0)
                    columns.push({value ^ process_ << 57, static_cast<std::uint32_t>(instruction_),
                                  size, static_cast<std::uint16_t>(thread_),
                                  type == kStore ? kWrite : std::uint8_t{0}});
                return false;
            case kBundle:
                // The last of the bundle is the one that data belongs to.
                for (unsigned i = 0; i < std::min<unsigned>(size, 8); ++i) {
                    instruction_ += length_;
                    length_ = value >> 8 * i & 0xff;
                }
                return false;
            case kThread:
                thread_ = ids_->threads.of(value);
                return false;
            case kProcess:
                process_ = ids_->processes.of(value);
                return false;
            case kMarker:
                if (size == kSystemCallBegins || size == kContextSwitchBegins) ++kernel_;
                if ((size == kSystemCallEnds || size == kContextSwitchEnds) && kernel_ != 0) --kernel_;
                if (size != kTimeStamp) return false;
                time_ = value;
                return true;
            default:
                if ((type >= kInstruction && type <= kReturn) || type == kNotFetched ||
                    type == kSystemEnter || type == kTakenJump || type == kUntakenJump) {
                    instruction_ = value;
                    length_ = size;
                }
                return false;
        }
    }

    ByteStream stream_;
    std::shared_ptr<Ids> ids_;
    std::uint64_t instruction_ = 0, length_ = 0, thread_ = 0, process_ = 0, time_ = 0;
    std::uint32_t kernel_ = 0;  // markers that were not ended
    bool ended_ = false;
};

class DrmemtraceReader : public TraceReader {
 public:
    explicit DrmemtraceReader(std::vector<Entries> files) : files_(std::move(files)) {
        columns_.has = kColumns;
    }

    Result<AccessBatch> next() override {
        columns_.clear();
        while (columns_.count() < kReadBatch) {
            Entries* first = nullptr;
            for (Entries& file : files_)
                if (!file.ended() && (first == nullptr || file.time() < first->time())) first = &file;
            if (first == nullptr) break;
            TRY(first->take(columns_, kReadBatch));
        }
        return columns_.batch();
    }
    std::uint64_t bytes_read() const override { return sum(&ByteStream::file_bytes_read); }
    std::uint64_t bytes_total() const override { return sum(&ByteStream::file_bytes_total); }

 private:
    std::uint64_t sum(std::uint64_t (ByteStream::*of)() const) const {
        std::uint64_t total = 0;
        for (const Entries& file : files_) total += (file.stream().*of)();
        return total;
    }
    std::vector<Entries> files_;
    Columns columns_;
};

}  // namespace

bool recognize_drmemtrace(std::span<const std::uint8_t> head) {
    if (head.size() < 2 * kEntryBytes || load<std::uint16_t>(head.data()) != kHeader ||
        load<std::uint16_t>(head.data() + 2) != 0)
        return false;
    const auto version = load<std::uint64_t>(head.data() + 4);
    const auto second = load<std::uint16_t>(head.data() + kEntryBytes);
    return version >= 1 && version < 256 &&
           (second == kThread || second == kMarker || second == kProcess);
}

Result<std::unique_ptr<TraceReader>> open_drmemtrace(ByteStream stream) {
    std::vector<Entries> files;
    files.emplace_back(std::move(stream), std::make_shared<Ids>());
    return std::make_unique<DrmemtraceReader>(std::move(files));
}

// The directory itself, or the folder `trace` in it that drmemtrace makes.
Result<std::unique_ptr<TraceReader>> open_drmemtrace_directory(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path inner = fs::path(path) / "trace";
    const fs::path folder = fs::is_directory(inner, error) ? inner : fs::path(path);
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.find(".trace") != std::string::npos && entry->is_regular_file(error))
            names.push_back(entry->path().string());
    }
    if (error) return fail(ErrorCode::io, path, {}, fmt::format("cannot read: {}", error.message()));
    if (names.empty()) return fail(path, {}, "expected a trace, found a directory");
    std::ranges::sort(names);
    auto ids = std::make_shared<Ids>();
    std::vector<Entries> files;
    for (const std::string& name : names) {
        ByteStream stream = TRY(ByteStream::open(name, 1));
        stream.read_in_blocks_of(std::size_t{64} << 10);  // hundreds of threads are usual
        const auto head = TRY(stream.peek(kSniffWindow));
        if (!head.empty() && !recognize_drmemtrace(head))
            return stream.error_here("expected the header of a drmemtrace file");
        files.emplace_back(std::move(stream), ids);
    }
    return std::make_unique<DrmemtraceReader>(std::move(files));
}

}  // namespace revisit
