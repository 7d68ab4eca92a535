// Where libdw looks for a module's debug information: beside the file, in .debug, in /usr/lib/debug, by
// build id.
#pragma once

#include <elfutils/libdwfl.h>

namespace revisit {

inline char* debug_path = nullptr;  // libdw's default
inline const Dwfl_Callbacks kDebugInformation = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

}  // namespace revisit
