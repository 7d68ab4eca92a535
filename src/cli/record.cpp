// revisit record: runs a program and stores its access trace.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/recording.h"
#include "core/try.h"
#include "record/sinks.h"
#include "record/stream.h"

namespace revisit {
namespace {

class RecordCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        recording_.declare(app);
        app.add_option("-o,--output", output_,
                       "write the trace to this file (default: revisit-PROGRAM-PID.rvt)")
            ->type_name("FILE")
            ->group("Output");
        app.add_flag("--quiet", quiet_, "no messages")->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit record -o ls.rvt -- ls -l && revisit analyze ls.rvt\n"
            "  revisit record --function multiply -o kernel.rvt -- ./matmul ijk 300\n"
            "  revisit record --max-accesses 100M -o gzip.rvt -- gzip -k big.tar");
    }

    Result<int> run() override {
        recording_.output_to_error = output_ == "-";
        record::RunOptions run = TRY(recording_.run_options());
        TRY(check_output(output_, recording_.command[0]));
        run.want |= REVISIT_WANT_ORDER;  // a trace may be analyzed in any model
        run.decode.extents = true;
        std::vector<std::string> written;
        record::RunOutcome outcome = TRY(record::run(
            run,
            [&](const record::StartedProcess& process) -> Result<std::unique_ptr<record::ProcessSink>> {
                if (output_.empty())
                    output_ = default_output(recording_.command[0], process.pid, ".rvt");
                written.push_back(
                    process.is_first ? output_ : child_output(output_, "child", process.pid, ".rvt"));
                return record::make_trace_sink(written.back());
            }));
        if (written.empty())
            return fail(
                run.program.path, "",
                fmt::format("ended with status {} before it could be recorded", outcome.exit_status));
        if (!quiet_) {
            say(fmt::format("\nrevisit: {} accesses recorded\n",
                            format_count(static_cast<double>(outcome.accesses))));
            for (const std::string& note : notes_of(outcome, recording_))
                say(fmt::format("note: {}\n", note));
            for (const std::string& path : written)
                say(fmt::format("Trace written to {}. Next: revisit analyze {}\n", path,
                                shell_word(path)));
        }
        return outcome.exit_status;
    }

 private:
    RecordingOptions recording_;
    std::string output_;
    bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_record_command() {
    return std::make_unique<RecordCommand>();
}

}  // namespace revisit
