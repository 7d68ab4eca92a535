// Profiles for other people's tools.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct ExportOptions {
    std::vector<CacheSpec> caches;  // whose misses are shown
    std::string value;              // of formats that hold one: "accesses" or a metric "l2.misses"
};

struct ExportEntry {
    std::string_view name;
    std::string_view summary;
    std::vector<std::string_view> endings;  // file names that mean this format
    Result<std::string> (*write)(const Profile&, const ExportOptions&);
};
std::span<const ExportEntry> exports();

// By name, or by the file's ending (a packing suffix left aside) when the name is empty.
Result<const ExportEntry*> find_export(std::string_view name, std::string_view path);

// Accesses at the end of a call path. What has no pair and so no path (first touches, above all) has
// context 0.
struct StackSample {
    const Site* site = nullptr;
    std::uint32_t context = 0;
    double accesses = 0;
    double cold = 0;
    std::vector<double> misses;  // one a cache
};
std::vector<StackSample> stack_samples(const Profile& profile, const std::vector<CacheSpec>& caches);

Result<std::string> export_pprof(const Profile& profile, const ExportOptions& options);
Result<std::string> export_callgrind(const Profile& profile, const ExportOptions& options);
Result<std::string> export_folded(const Profile& profile, const ExportOptions& options);
Result<std::string> export_csv(const Profile& profile, const ExportOptions& options);
Result<std::string> export_prometheus(const Profile& profile, const ExportOptions& options);
Result<std::string> export_sarif(const Profile& profile, const ExportOptions& options);
Result<std::string> export_perfetto(const Profile& profile, const ExportOptions& options);

}  // namespace revisit
