// revisit merge: one profile from many. Profiles are read one after the other and summed, so thousands
// take the memory of two.
#include "cli/command.h"
#include "cli/progress.h"
#include "core/try.h"

namespace revisit {
namespace {

class MergeCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", inputs_, "profiles of the same granularity and model")
            ->required()
            ->expected(-1);
        output_.declare(app, "write the sum to this file");
        app.footer(
            "Examples:\n"
            "  revisit merge rank-*.json -o all.json\n"
            "  revisit merge monday.json tuesday.json -o week.json --quiet\n"
            "  revisit merge --json monday.json tuesday.json | revisit report -");
    }

    Result<int> run() override {
        if (output_.output.empty() && !output_.json)
            return fail("expected -o FILE or --json: where the sum goes");
        Progress progress("merging", output_.quiet);
        ProfileMerger merger(TRY(load_profile(inputs_[0])));
        for (std::size_t i = 1; i < inputs_.size(); i++) {
            if (Result<void> merged = merger.add(TRY(load_profile(inputs_[i]))); !merged) {
                merged.error().file = inputs_[i];
                return unexpected(merged.error());
            }
            progress.update(i, inputs_.size(), static_cast<std::uint64_t>(merger.sum().accesses));
        }
        const Profile& sum = merger.sum();
        if (!output_.output.empty()) TRY(save_profile(sum, output_.output));
        if (output_.json) TRY(print(to_json(sum)));
        if (!output_.json && !output_.quiet)
            TRY(print(fmt::format("{} profiles, {} accesses, merged into {}. Next: revisit report {}\n",
                                  inputs_.size(), format_count(sum.accesses), output_.output,
                                  output_.output)));
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
