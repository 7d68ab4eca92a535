// revisit merge: one profile from many. Profiles are read one after the other and summed, so 10^5 of
// them take the memory of two.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "core/files.h"
#include "core/try.h"

namespace revisit {
namespace {

class MergeCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", inputs_, "profiles of the same granularity and model")->expected(-1);
        app.add_option("--list", list_,
                       "a file that names further profiles, one per line: more than a command line "
                       "holds; - is standard input")
            ->type_name("FILE");
        app.add_flag("--runs", runs_,
                     "the profiles are runs of one program: keep in 16 groups what differs between "
                     "them, which diff takes as noise");
        output_.declare(app, "write the sum to this file");
        app.footer(
            "Examples:\n"
            "  revisit merge rank-*.json -o all.json\n"
            "  find profiles -name '*.json' | revisit merge --runs --list - -o release.json\n"
            "  revisit merge --json monday.json tuesday.json | revisit report -");
    }

    Result<int> run() override {
        if (output_.output.empty() && !output_.json)
            return fail("expected -o FILE or --json: where the sum goes");
        if (!list_.empty()) TRY(read_list());
        if (inputs_.empty()) return fail("expected profiles to merge");
        TRY(check_inputs(inputs_));
        Progress progress("merging", output_.quiet);
        ProfileMerger merger(TRY(load_profile(inputs_[0])), runs_);
        for (std::size_t i = 1; i < inputs_.size(); i++) {
            if (Result<void> merged = merger.add(TRY(load_profile(inputs_[i]))); !merged) {
                merged.error().file = inputs_[i];
                return unexpected(merged.error());
            }
            progress.update(i + 1, inputs_.size(), static_cast<std::uint64_t>(merger.sum().accesses));
        }
        progress.clear();
        const Profile& sum = merger.sum();
        const bool to_standard_output = output_.json || output_.output == "-";
        if (!output_.output.empty() && output_.output != "-") TRY(save_profile(sum, output_.output));
        if (to_standard_output) TRY(print(to_json(sum)));
        if (!to_standard_output && !output_.quiet)
            TRY(print(fmt::format("{} profiles, {} accesses, merged into {}. Next: revisit report {}\n",
                                  inputs_.size(), format_count(sum.accesses), output_.output,
                                  shell_word(output_.output))));
        return 0;
    }

 private:
    Result<void> read_list() {
        const std::string text = TRY(read_file(list_));
        for (std::string_view rest = text; !rest.empty();) {
            std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(rest.size(), line.size() + 1));
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (!line.empty()) inputs_.emplace_back(line);
        }
        return {};
    }

    std::vector<std::string> inputs_;
    std::string list_;
    bool runs_ = false;
    OutputOptions output_;
};

}  // namespace

std::unique_ptr<Command> make_merge_command() {
    return std::make_unique<MergeCommand>();
}

}  // namespace revisit
