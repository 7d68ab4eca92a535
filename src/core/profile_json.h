// A profile's JSON with more beside it: what a command has found about the same run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace revisit {

struct Profile;

// Members of the object `more` come last. Not named to_json: the library has functions of that name, and
// version 3.11.3 does not compile where one of them is considered for a Profile.
std::string profile_json(const Profile& profile, const nlohmann::ordered_json& more);

}  // namespace revisit
