#include "report/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::size_t kLongestName = 60;  // characters

std::string program_of(const std::vector<std::string>& command) {
    return command.empty() ? std::string() : last_part(command[0]);
}

// One process: its programs, one after the other.
struct Node {
    std::vector<const ProcessSummary*> programs;
    std::vector<std::size_t> children;
};

// A fork has its parent's command until it runs a program of its own; as it was given, or as a path.
bool is_copy(const ProcessSummary& process, const Node* parent) {
    auto same = [&](const ProcessSummary* one) {
        return program_of(one->command) == program_of(process.command) &&
               std::ranges::equal(one->command | std::views::drop(1),
                                  process.command | std::views::drop(1));
    };
    return parent != nullptr && std::ranges::any_of(parent->programs, same);
}

std::string name_of(const Node& node, const Node* parent) {
    std::string name;
    for (std::size_t i = 0; i < node.programs.size(); i++) {
        const bool is_last = i + 1 == node.programs.size();
        const auto& command = node.programs[i]->command;
        if (i == 0 && !is_last && is_copy(*node.programs[i], parent)) continue;
        name += is_last ? fmt::format("{}", fmt::join(command, " ")) : program_of(command) + " → ";
    }
    if (name.empty()) name = "(no command)";
    if (name.size() <= kLongestName) return name;
    std::size_t end = kLongestName;
    while ((name[end] & 0xc0) == 0x80) end--;  // not within a character
    return name.substr(0, end) + "…";
}

ProcessRow row_of(const Node& node, const Node* parent, unsigned depth) {
    ProcessRow row;
    row.name = name_of(node, parent);
    row.depth = depth;
    for (const ProcessSummary* one : node.programs) {
        row.accesses += one->accesses;
        row.samples += one->samples;
        row.seconds += one->seconds;
    }
    return row;
}

void add(ProcessRow& to, const ProcessRow& from) {
    to.processes += from.processes;
    to.accesses += from.accesses;
    to.samples += from.samples;
    to.seconds += from.seconds;
}

}  // namespace

std::vector<ProcessRow> process_tree(const Profile& profile, std::size_t most) {
    std::vector<Node> nodes;
    std::map<std::uint32_t, std::size_t> by_pid;
    std::vector<std::size_t> roots;
    for (const ProcessSummary& one : profile.processes) {
        auto [found, is_new] = by_pid.try_emplace(one.pid, nodes.size());
        if (!is_new) {
            nodes[found->second].programs.push_back(&one);
            continue;
        }
        // A parent that comes later is another process of that number.
        auto parent = by_pid.find(one.parent);
        const bool is_root = parent == by_pid.end() || parent->second == nodes.size();
        (is_root ? roots : nodes[parent->second].children).push_back(nodes.size());
        nodes.push_back({{&one}, {}});
    }
    if (profile.processes.size() < 2) return {};
    struct Place {
        std::size_t node;
        const Node* parent;
        unsigned depth;
    };
    std::vector<Place> left;
    for (auto root = roots.rbegin(); root != roots.rend(); root++) left.push_back({*root, nullptr, 0});
    std::vector<ProcessRow> rows;
    // Of processes with the same parent, those with one program and no children are counted by it.
    std::map<std::pair<const Node*, std::string>, std::size_t> alike;
    while (!left.empty()) {
        const Place place = left.back();
        left.pop_back();
        Node& node = nodes[place.node];
        // A recorder may hear of the program that a process executed before it hears of the fork.
        std::ranges::stable_partition(node.programs,
                                      [&](const auto* one) { return is_copy(*one, place.parent); });
        ProcessRow row = row_of(node, place.parent, place.depth);
        if (node.children.empty()) {
            auto [found, is_new] = alike.try_emplace(
                {place.parent, program_of(node.programs.back()->command)}, rows.size());
            if (!is_new) {
                add(rows[found->second], row);
                continue;
            }
        }
        rows.push_back(std::move(row));
        for (auto child = node.children.rbegin(); child != node.children.rend(); child++)
            left.push_back({*child, &node, place.depth + 1});
    }
    if (most > 0 && rows.size() > most) {
        ProcessRow rest = std::move(rows[most - 1]);
        for (std::size_t i = most; i < rows.size(); i++) add(rest, rows[i]);
        rows.resize(most);
        rest.name = "others";
        rest.depth = 0;
        rows[most - 1] = std::move(rest);
    }
    return rows;
}

std::string process_text(const ProcessRow& row) {
    std::string out = format_count(row.accesses) + " accesses";
    if (row.samples > 0) out += fmt::format(", {} samples", format_count(row.samples));
    if (row.seconds > 0) out += fmt::format(", {:.3g} s of CPU time", row.seconds);
    return out;
}

}  // namespace revisit
