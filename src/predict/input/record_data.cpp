// What decides, from one run of the user's program.
//
// Problem. The index arrays of a sparse product are not in the source, and a file of each is work.
// Idea. The program has them: built with notes at every load that decides, it runs once, and the first
// value read at each address is what was there before. Addresses become entries of the array that
// starts last before them. Example. spmv(n, ptr, idx, val, x, y) notes n, where ptr and idx are, and 2
// n + nnz loads; val and x decide nothing and are not noted. Cost. One run, and 18 bytes of file for
// each such load.
#include "predict/input/record_data.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/errors.h"
#include "core/files.h"
#include "core/try.h"

namespace revisit::predict {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 28;

struct Notes {
    struct Load {
        std::uint64_t address;
        std::int64_t value;
        std::uint8_t bytes;
    };
    std::map<std::string, std::set<std::int64_t>> numbers;
    std::map<std::uint64_t, std::string> arrays;  // by address
    std::vector<Load> loads;
};

Result<Notes> parse(const std::string& path, const std::string& bytes) {
    Notes notes;
    std::size_t at = 0;
    const auto number = [&](auto& to) {
        if (bytes.size() - at < 8) return false;
        std::memcpy(&to, bytes.data() + at, 8);
        at += 8;
        return true;
    };
    while (bytes.size() - at >= 2) {
        const auto kind = bytes[at];
        const auto length = static_cast<unsigned char>(bytes[at + 1]);
        at += 2;
        std::int64_t value = 0;
        if (kind == 'l') {
            Notes::Load load{0, 0, length};
            if (!number(load.address) || !number(load.value)) break;
            notes.loads.push_back(load);
            continue;
        }
        if (bytes.size() - at < length) break;
        const auto name = bytes.substr(at, length);
        at += length;
        if (!number(value)) break;
        if (kind == 'n')
            notes.numbers[name].insert(value);
        else if (kind == 'p')
            notes.arrays.try_emplace(static_cast<std::uint64_t>(value), name);
        else
            return fail(ErrorCode::option, path, "recorded data",
                        "not what the program should have noted");
    }
    if (at != bytes.size())
        return fail(ErrorCode::option, path, "recorded data", "the notes of the run are cut off");
    return notes;
}

Result<std::vector<Table>> tables_of(const Notes& notes) {
    struct Entries {
        std::map<std::uint64_t, std::int64_t> first;  // by offset
        std::set<std::uint8_t> bytes;
    };
    std::map<std::string, Entries> arrays;
    for (const auto& load : notes.loads) {
        auto start = notes.arrays.upper_bound(load.address);
        if (start == notes.arrays.begin()) continue;
        --start;
        Entries& e = arrays[start->second];
        e.first.try_emplace(load.address - start->first, load.value);
        e.bytes.insert(load.bytes);
    }
    std::vector<Table> tables;
    for (const auto& [name, e] : arrays) {
        // Read in several widths, or from somewhere else (the heap behind the last array): unknown.
        const auto bytes = *e.bytes.begin();
        const auto last = e.first.rbegin()->first;
        if (e.bytes.size() != 1 || last / bytes >= kMostEntries) continue;
        Table t;
        t.name = name;
        t.element = bytes;
        t.values.assign(last / bytes + 1, 0);
        t.known.assign(t.values.size(), false);
        for (const auto& [offset, value] : e.first)
            if (offset % bytes == 0) {
                t.values[offset / bytes] = value;
                t.known[offset / bytes] = true;
            }
        tables.push_back(std::move(t));
    }
    return tables;
}

}  // namespace

Result<RecordedData> record_data(const Request& request, const Program& program,
                                 const std::vector<std::string>& arguments) {
    std::string folder = (fs::temp_directory_path() / "revisit-notes.XXXXXX").string();
    if (!mkdtemp(folder.data()))
        return fail(ErrorCode::option, "", "recorded data", "cannot make a temporary folder");
    const auto clean = [&](auto&& result) {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        return std::move(result);
    };
    const auto binary = folder + "/program", file = folder + "/notes";
    if (const auto built = compile_notes(request.source, request.macros, binary); !built)
        return clean(Result<RecordedData>(about_option("recorded data", built.error())));
    std::vector<std::string> command{"env", "REVISIT_NOTES=" + file, binary};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::string out, messages;
    const auto status = run_program(std::move(command), out, messages);
    if (!status) return clean(Result<RecordedData>(unexpected(status.error())));
    const auto bytes = read_file(file);
    if (!bytes)
        return clean(
            Result<RecordedData>(fail(ErrorCode::option, request.source.path, "recorded data",
                                      "the program ended with status " + std::to_string(*status) +
                                          " and never called " + program.functions.front().name)));
    const auto notes = parse(file, *bytes);
    if (!notes) return clean(Result<RecordedData>(unexpected(notes.error())));
    RecordedData data;
    for (const Argument& a : program.functions.front().arguments)
        if (const auto at = notes->numbers.find(a.name);
            a.kind == Kind::integer && at != notes->numbers.end() && at->second.size() == 1)
            data.numbers[a.name] = *at->second.begin();
    const auto tables = tables_of(*notes);
    if (tables) data.tables = *tables;
    return clean(Result<RecordedData>(std::move(data)));
}

}  // namespace revisit::predict
