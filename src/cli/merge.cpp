// revisit merge: one profile from many. Profiles are read one after the other and summed, so thousands
// take the memory of two.
#include "cli/command.h"

namespace revisit {
namespace {

class MergeCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", inputs_, "profiles of the same granularity and model")
            ->required()
            ->expected(-1);
        output_.declare(app, "write the sum here");
        app.footer(
            "Examples:\n"
            "  revisit merge rank-*.json -o all.json\n"
            "  revisit merge --json monday.json tuesday.json | revisit report -");
    }

    Result<int> run() override {
        if (output_.output.empty() && !output_.json)
            return fail("expected -o FILE or --json: where the sum goes");
        Result<Profile> sum = load_profile(inputs_[0]);
        if (!sum) return std::unexpected(sum.error());
        for (std::size_t i = 1; i < inputs_.size(); i++) {
            Result<Profile> next = load_profile(inputs_[i]);
            if (!next) return std::unexpected(next.error());
            if (Result<void> merged = merge_profile(*sum, *next); !merged) {
                merged.error().file = inputs_[i];
                return std::unexpected(merged.error());
            }
        }
        if (!output_.output.empty())
            if (Result<void> saved = save_profile(*sum, output_.output); !saved)
                return std::unexpected(saved.error());
        if (output_.json)
            if (Result<void> shown = print(to_json(*sum)); !shown)
                return std::unexpected(shown.error());
        if (!output_.json && !output_.quiet)
            if (Result<void> shown = print(fmt::format(
                    "{} profiles, {} accesses, merged into {}. Next: revisit report {}\n",
                    inputs_.size(), format_count(sum->accesses), output_.output, output_.output));
                !shown)
                return std::unexpected(shown.error());
        return 0;
    }

 private:
    std::vector<std::string> inputs_;
    OutputOptions output_;
};

}  // namespace

std::unique_ptr<Command> make_merge_command() {
    return std::make_unique<MergeCommand>();
}

}  // namespace revisit
