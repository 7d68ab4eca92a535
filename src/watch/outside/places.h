// Where the accesses of a sampled program come from.
//
// While the program runs nothing is looked up that takes long: an address becomes a place in a file by
// what is mapped there at that moment, a call stack a number, and the two with the data touched a
// label. Symbols are read when all has ended; then labels that come to the same place, context and
// object become one. Places are in files, not in memory, so that all processes of one program share
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/origins.h"
#include "watch/outside/maps.h"
#include "watch/outside/path.h"
#include "watch/samples/samples.h"

namespace revisit::watch::outside {

struct DataTouched {
    // Small: of the heap, in a block that was not noted; `what` is 1 where its neighbours' is known.
    enum class Kind : std::uint8_t { none, heap, mapped, small, stack, global, file } kind = Kind::none;
    bool is_block() const { return kind == Kind::heap || kind == Kind::mapped; }
    std::uint64_t where =
        0;  // block, small: the place of the allocation; global: from the file's beginning
    std::uint64_t what = 0;  // block: its bytes; global, file: the file
    // Block, and no label depends on it: the block's address, and where in it.
    std::uint64_t low = 0, offset = 0;
};

class Places {
 public:
    std::uint32_t file(const Mapping& mapping, std::uint32_t process);
    // A file that is mapped and is no program.
    std::uint32_t data_file(const Mapping& mapping);
    // A place in a mapped file, or, where no file is, an address in that process.
    std::uint32_t place(const Mapping* mapping, std::uint64_t address, std::uint32_t process);
    // The process describes the code that it makes in this file.
    void describes_its_code(std::uint32_t process, const std::string& jitdump);
    std::uint32_t label(std::uint32_t place, std::uint32_t stack, const DataTouched& data);
    // Calls outermost first; `link` is one more where the function still has it in a register.
    std::uint32_t stack(const std::vector<std::uint32_t>& calls, std::uint32_t link);

    // Looks all up; labels of the samples become those of the result. Code in no file is named by the
    // process's own description of it, or after the program.
    Origins finish(Samples& samples, const std::string& program, bool contexts, bool objects);

 private:
    struct Raw {
        std::uint32_t place = 0, stack = 0;
        DataTouched data;
    };
    struct Stack {
        std::vector<std::uint32_t> calls;
        std::uint32_t link = kNowhere;
    };
    struct MadeCode {
        std::uint32_t place = 0, process = 0;
        std::string region;  // what the kernel calls it: "[vdso]"
    };
    void name_made_code(const std::string& program);

    Origins origins_;
    std::vector<MadeCode> made_;
    std::map<std::uint32_t, std::string> jitdumps_;  // by process
    std::unordered_map<std::string, std::uint32_t> files_, data_file_numbers_;
    std::vector<DataObject> data_files_;
    std::unordered_map<std::uint64_t, std::uint32_t> places_, stack_numbers_, raw_numbers_;  // by hash
    std::vector<Stack> stacks_;
    std::vector<Raw> raw_;
};

}  // namespace revisit::watch::outside
