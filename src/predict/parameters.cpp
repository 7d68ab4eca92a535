// Sizes that the user gives: read from main's command line, and compared with what the program takes.
#include "predict/parameters.h"

#include <algorithm>
#include <charconv>

namespace revisit::predict {
namespace {

std::string known_names(const Session& session) {
    std::string names;
    for (const Argument& a : session.target.functions.front().arguments)
        if (a.kind == Kind::integer) names += (names.empty() ? "" : ", ") + a.name;
    return names.empty() ? "" : "; arguments are " + names;
}

}  // namespace

Result<void> take_command_line(Session& session) {
    for (const Argument& a : session.target.functions.front().arguments) {
        if (a.name == "argc" && a.kind == Kind::integer)
            session.sizes["argc"] = static_cast<std::int64_t>(session.request.argv.size()) + 1;
        if (!a.inside || !a.name.starts_with("argv[")) continue;
        const auto number = static_cast<std::size_t>(std::atoll(a.name.c_str() + 5));
        if (number == 0 || number > session.request.argv.size())
            return fail(ErrorCode::option, session.request.source.path, "argv",
                        "the program reads " + a.name + ", and " +
                            std::to_string(session.request.argv.size()) + " are given");
        const auto& text = session.request.argv[number - 1];
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size())
            return fail(ErrorCode::option, "", "argv " + text, a.name + " is read as a whole number");
        session.sizes[a.name] = value;
    }
    return {};
}

Result<void> check_parameters(const Session& session) {
    const Program& program = session.target;
    for (const auto& [name, value] : session.request.parameters) {
        const auto& arguments = program.functions.front().arguments;
        auto a = std::find_if(arguments.begin(), arguments.end(), [&](const Argument& x) {
            return x.name == name && x.kind == Kind::integer;
        });
        if (a == arguments.end())
            a = std::find_if(arguments.begin(), arguments.end(),
                             [&](const Argument& x) { return x.name == name; });
        const auto refuse = [&](const std::string& why) {
            return fail(ErrorCode::option, session.request.source.path,
                        "parameter " + name + "=" + std::to_string(value), why);
        };
        if (a == arguments.end()) {
            if (std::none_of(program.globals.begin(), program.globals.end(),
                             [&](const Global& g) { return g.name == name; }))
                return refuse("no argument or global of that name decides anything here" +
                              known_names(session));
        } else if (a->kind != Kind::integer) {
            return refuse("is no whole number there");
        } else if (a->is_signed && a->width < 64 && value >= std::int64_t{1} << (a->width - 1)) {
            return refuse("more than a signed number of " + std::to_string(a->width) + " bits holds");
        } else if (a->width < 64 && (value < -(std::int64_t{1} << (a->width - 1)) ||
                                     value >= std::int64_t{1} << a->width)) {
            return refuse("more than its " + std::to_string(a->width) + " bits hold");
        }
    }
    return {};
}

}  // namespace revisit::predict
