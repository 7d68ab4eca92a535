// Call paths: who called, where the paths of a use and its reuse meet, and which frames are the user's.
//
// A context is a call, so the function that a call enters shows only in the frame below it. Two paths
// that share the calls
//
//     _start › __libc_start_call_main:58 › main:30 › fill     (use)
//     _start › __libc_start_call_main:58 › main:34 › sum      (reuse)
//
// up to __libc_start_call_main:58 meet in main, where they take different calls: the function of the
// first frames that differ, not the last frame that is equal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "revisit/profile.h"

namespace revisit {

// Contexts from the outermost call inwards; a profile's numbers may point anywhere.
std::vector<std::uint32_t> call_path(const Profile& profile, std::uint32_t context);

// Sites by id.
class SiteIndex {
 public:
    explicit SiteIndex(const Profile& profile);
    const Site* find(std::uint32_t id) const;  // null: a pair names a site that is not listed

 private:
    std::unordered_map<std::uint32_t, const Site*> sites_;
};

struct PathFrame {
    std::string module;
    std::uint64_t offset = 0;
    Frame frame;
};
std::string frame_name(const PathFrame& frame);   // "multiply", "libc.so.6+0x9a1c0"
std::string frame_place(const PathFrame& frame);  // "multiply (matmul.c:14)"
std::string place_text(const PathFrame& frame);   // "matmul.c:14 multiply"

// Where one changes code: not the C library or a language's headers, not what starts programs and
// threads.
bool is_own_code(const PathFrame& frame);
bool starts_program_or_thread(std::string_view function);  // _start, start_thread

struct Meeting {
    std::size_t shared = 0;       // calls that both paths begin with
    std::optional<PathFrame> at;  // in the user's own code; none: not known
};
Meeting meeting_of(const Profile& profile, const Pair& pair, const Site* use, const Site* reuse);

// The site itself, or, in a library's code (memcpy, operator[]), the innermost frame around it that is
// the user's.
PathFrame own_place(const Profile& profile, const Site& site, std::uint32_t context);

}  // namespace revisit
