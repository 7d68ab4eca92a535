// revisit predict in a build without LLVM: it stays among the commands and says what is missing.
#include "cli/command.h"

namespace revisit {
namespace {

class PredictCommand : public Command {
 public:
    void declare(CLI::App& app) override { app.allow_extras(); }
    Result<int> run() override {
        return fail(
            "predict is not in this build; install clang and LLVM's headers, 19 or later, and build "
            "again");
    }
};

}  // namespace

std::unique_ptr<Command> make_predict_command() {
    return std::make_unique<PredictCommand>();
}

}  // namespace revisit
