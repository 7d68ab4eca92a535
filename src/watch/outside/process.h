// A sampled process, and the program that it and others run.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "watch/outside/heap_blocks.h"
#include "watch/outside/machine.h"
#include "watch/outside/maps.h"
#include "watch/outside/places.h"
#include "watch/samples/samples.h"
#include "watch/samples/word_choice.h"

namespace revisit::watch::outside {

// All processes of one executable: their samples are of one kind and are estimated together.
struct Program {
    std::string path;
    Samples samples;
    Places places;
    WordHabits habits;
    std::uint32_t threads = 0;   // numbers given out
    bool traces_others = false;  // a debugger: its children are left to it
    std::uint64_t time = 0;      // nanoseconds of processor time

    Program() {
        samples.slow_start = Machine::kSlowStart;
        samples.without_stop = Machine::kWithoutStop;
    }
};

// The program of an executable, among those that are known; a new one is added.
Program* program_at(const std::string& path, std::vector<std::unique_ptr<Program>>& known);

std::vector<std::string> command_of(pid_t process);
// The thread is on a processor, or wants to be.
bool is_running(pid_t process, pid_t thread);

// From one exec to the next.
class Process {
 public:
    pid_t pid = 0, parent = 0;
    std::vector<std::string> command;
    Program* program = nullptr;
    std::vector<std::uint16_t> threads;  // numbers of those that were sampled
    std::uint64_t time = 0;              // nanoseconds of processor time
    std::uint64_t began = 0;             // wall time
    bool has_children = false;           // that are known
    struct Forks {                       // see unseized.h
        unsigned ended_young = 0;        // children, one after the other
        bool often = false;
        void are_few() { ended_young = 0, often = false; }
        std::uint64_t known = 0;  // processor time of ended children that is in their own account
    } forks;
    std::unique_ptr<Machine::Kept> kept;  // from its first sample on

    // What is reported of it, for a copy of its program.
    std::unique_ptr<Process> summary(Program* copy) const;
    // A child of the same program of which no more is known.
    std::unique_ptr<Process> make_child(pid_t number) const;

    // Which thread's number shows its memory: that of the process does, until its first thread ends.
    // The others may go on for hours.
    pid_t shown_by() const { return shown_by_ != 0 ? shown_by_ : pid; }
    // It has ended, and so much memory was resident at its peak or at that of one of its children.
    void was_resident(std::uint64_t bytes);
    // This thread was stopped there; if another that shows the memory has ended, this one does.
    void stands(pid_t thread, std::uint64_t pc);

    const Maps& maps() const { return maps_; }
    void maps_have_changed() { maps_changed_ = true; }
    // Reads what is mapped if that has changed, or if no code is known at `pc`. Code that is in no file
    // would have it read at every sample: the waits get longer. Whether it was read.
    bool know_code(std::uint64_t pc);

    std::uint32_t place(std::uint64_t address);
    // … of a call that returns there
    std::uint32_t call_place(std::uint64_t back);
    std::uint32_t label(const Path& path, std::uint64_t pc, const DataTouched& data);
    DataTouched data_at(std::uint64_t address, std::uint64_t stack_pointer);
    // What is loaded into the program costs it time, too.
    bool is_in_heap_library(std::uint64_t pc) const { return heap_.is_code(pc); }
    // .eh_frame_hdr of the module that holds a place; 0 = none.
    std::uint64_t find_unwind_table(std::uint64_t pc);

 private:
    pid_t shown_by_ = 0;
    Maps maps_;
    HeapBlocks heap_;
    bool maps_changed_ = true;
    std::uint32_t code_wait_ = 0, code_patience_ = 0;         // samples until code is looked for again
    std::uint32_t data_wait_ = 0, data_patience_ = 0;         // likewise where no data is known
    std::unordered_map<std::uint64_t, std::uint32_t> known_;  // address → place, as it is mapped now
    std::unordered_map<std::uint64_t, std::uint64_t> unwind_tables_;  // by where a file is mapped
};

}  // namespace revisit::watch::outside
