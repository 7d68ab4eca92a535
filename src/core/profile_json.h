// A profile's JSON with more beside it: what a command has found about the same run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace revisit {

struct Profile;

// Members of the object `more` come last.
std::string to_json(const Profile& profile, const nlohmann::ordered_json& more);

}  // namespace revisit
