// revisit convert: a trace in one format to a trace in another.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "core/try.h"
#include "formats/format.h"

namespace revisit {
namespace {

class ConvertCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("IN", in_, "the trace to read; - is standard input")->required();
        app.add_option("OUT", out_,
                       "the trace to write; - is standard output; .zst, .gz and .xz compress it")
            ->required();
        app.add_option("--format", format_,
                       "format of IN (default: recognized by content, then by name)")
            ->type_name("NAME");
        app.add_option("--to", to_, "format of OUT (default: by file name, else revisit)")
            ->type_name("NAME");
        app.add_flag("--quiet", quiet_, "no progress bar, no warning about lost columns")
            ->group("Output");
        std::string known;
        for (const FormatEntry& entry : formats())
            known += fmt::format("\n  {:<10} {}{}{}", entry.name, entry.summary,
                                 entry.create == nullptr ? ", read only" : "",
                                 entry.suffixes.empty() ? "" : fmt::format(" ({})", entry.suffixes));
        app.footer("Formats:" + known +
                   "\n\nExamples:\n"
                   "  revisit convert trace.din trace.rvt\n"
                   "  revisit convert --format u64 addresses.bin addresses.csv.zst\n"
                   "  revisit convert --to lackey trace.rvt - | less");
    }

    Result<int> run() override {
        const auto reader = TRY(open_trace(in_, format_));
        const auto writer = TRY(create_trace(out_, to_));
        Progress progress("converting", quiet_);
        LostColumns lost(*writer);
        for (std::uint64_t accesses = 0;;) {
            const AccessBatch batch = TRY(reader->next());
            if (batch.count() == 0) break;
            TRY(writer->write(batch));
            lost.see(batch);
            accesses += batch.count();
            progress.update(reader->bytes_read(), reader->bytes_total(), accesses);
        }
        TRY(writer->finish(reader->info()));
        progress.clear();
        lost.report("convert", out_, quiet_);
        return 0;
    }

 private:
    std::string in_;
    std::string out_;
    std::string format_;
    std::string to_;
    bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() {
    return std::make_unique<ConvertCommand>();
}

}  // namespace revisit
