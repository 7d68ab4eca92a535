// Where libdw looks for a module's debug information: beside the file, in .debug, in /usr/lib/debug, by
// build id.
#pragma once

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <string>

#include "symbols/kept_files.h"

namespace revisit {

inline char* debug_path = nullptr;  // libdw's default
inline const Dwfl_Callbacks kDebugInformation = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

// The file as the program had it, where it was kept.
inline Dwfl_Module* report_file(Dwfl* dwfl, const std::string& path) {
    const int kept = open_kept(path);
    Dwfl_Module* module = dwfl_report_elf(dwfl, path.c_str(), path.c_str(), kept, 0, true);
    if (module == nullptr && kept >= 0) close(kept);
    return module;
}

}  // namespace revisit
