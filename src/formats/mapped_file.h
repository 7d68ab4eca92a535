// A file's bytes where the kernel keeps them.
//
// Problem. Copying a record of 16 bytes out of the page cache takes 0.9 to 1.2 ns (Neoverse V1), two
// thirds of what reading and cutting it takes. A mapping costs 0.13 ns. But a mapped file that becomes
// shorter raises SIGBUS, and a library must not take that signal away from its program.
// Idea. Files are mapped only in programs that ask for it: their handler puts zeros where the file
// ended, and the reader asks after each piece whether the bytes it used were there. Pages that were
// passed are given back, so a process takes no more memory than when it reads.
#pragma once

#include <cstdint>
#include <memory>

#include "formats/byte_stream.h"
#include "revisit/error.h"

namespace revisit {

// For a program, which owns its signals: takes SIGBUS, and files are mapped from now on.
void allow_mapped_files();

// Read by one thread from front to back, or anyhow with more memory.
class MappedFile {
 public:
    // Null where mapping is not allowed or does not work: the file is to be read.
    static std::unique_ptr<MappedFile> of(std::shared_ptr<const PlainFile> file);
    MappedFile(const MappedFile&) = delete;
    ~MappedFile();

    // Bytes [from, from + size); zeros where the file has ended.
    const std::uint8_t* get(std::uint64_t from, std::size_t size) const;
    // Call after they were used: an error where they were not all there.
    Result<void> used(std::uint64_t from, std::size_t size) const;

 private:
    struct Slot;  // what the handler knows of a mapping
    static Slot slots[];
    friend void allow_mapped_files();

    // Pages of the mapping from the window that holds byte `low` up to the one that holds `high`.
    void advise(std::uint64_t low, std::uint64_t high, int advice) const;

    MappedFile(std::shared_ptr<const PlainFile> file, Slot& slot, const std::uint8_t* bytes)
        : file_(std::move(file)), slot_(slot), bytes_(bytes) {}

    std::shared_ptr<const PlainFile> file_;
    Slot& slot_;
    const std::uint8_t* bytes_;  // the first that is read, on any byte of a page
};

}  // namespace revisit
