// Running a program and analysing what it does, at the same time: the program on one core, this on
// another.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "record/consume.h"
#include "record/launch.h"

namespace revisit::record {

struct RunOptions {
    Program program;
    LaunchOptions launch;
    DecodeOptions decode;
    std::uint32_t want = 0;        // REVISIT_WANT_…
    revisit_sampling_plan plan{};  // with REVISIT_WANT_SAMPLES
    std::optional<std::chrono::milliseconds> duration;

    bool counts_to_limit() const { return decode.most_accesses != ~std::uint64_t{0}; }
};

// What a run reports beside its result.
struct RunNote {
    std::string text;
    bool sampling_helps = false;  // the recorder is the limit, and sampling works without it
};

struct RunOutcome {
    int exit_status = 0;         // as a shell reports it: 128 + signal for a program ended by one
    int signal = 0;              // that signal, or 0
    bool limit_reached = false;  // we ended the program, after so long or so many accesses
    std::uint64_t accesses = 0;
    std::size_t processes = 0;
    std::vector<RunNote> notes;
    std::vector<std::string> regions_seen;
};

// Notes of how it ended: at a limit, by a signal, with so many children that go on.
void note_end(RunOutcome& outcome, std::size_t outlived);

Result<RunOutcome> run(const RunOptions& options, Consumer::MakeSink make_sink);

}  // namespace revisit::record
