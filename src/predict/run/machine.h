// The interpreter of slices and what it knows while it runs (machine.cpp, striding.cpp).
#pragma once

#include <array>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "predict/run/address_space.h"
#include "predict/run/affine_path.h"
#include "predict/run/interpret.h"

namespace revisit::predict {

inline constexpr std::size_t kBatch = 1 << 14;  // accesses handed on at once

// Thrown where a run ends early.
struct Stop {
    enum class Why { budget, failed } why;
    std::string message;
    std::uint32_t line = 0;
    ErrorCode code = ErrorCode::invalid_input;
};

// One run of a program.
class Machine {
 public:
    Machine(const Program& program, const Parameters& parameters, const RunOptions& options);

    Result<Trace> run();

 private:
    struct Image {
        std::vector<std::int64_t> values;
        std::vector<std::uint8_t> known;
    };
    struct Context {
        std::uint64_t key;
        std::uint64_t path;  // of the functions alone, not of the places they are called at
    };
    struct Active {
        std::int32_t loop;  // in the function
        std::int32_t run;   // index into trace_.runs, -1 when not kept
        std::uint32_t place;
        std::uint32_t iteration;
        std::int64_t first, last, step;
    };
    struct Frame {
        std::uint32_t function = 0;
        std::uint32_t context = 0;
        std::vector<std::int64_t> values;
        std::vector<std::uint8_t> known;
        std::vector<Active> loops;  // of this function, outermost first
        std::int32_t outer_run = -1;
        std::uint32_t outer_iteration = 0;
        std::int32_t outer_place = -1;
        std::int64_t result = 0;
        bool result_known = true;
        std::vector<std::int32_t>* places = nullptr;  // of this context's references
        // Of the innermost loop: blocks since its header, and registers when it was there last.
        std::vector<std::int32_t> path;
        std::vector<std::int64_t> before;
        bool whole = false;     // nothing but this loop since its header
        bool observed = false;  // `before` is from one round ago
    };

    // What is known of a loop place's ways round.
    struct Known {
        std::optional<LoopPath> path;
        int misses = 0;
        int rest = 0;  // entries for which nothing is tried
    };

    Frame enter(std::uint32_t function, std::uint32_t context, std::int32_t run,
                std::uint32_t iteration);
    [[noreturn]] void stop(const std::string& message, std::uint32_t line,
                           ErrorCode code = ErrorCode::invalid_input);
    void doubt(Doubt::Kind kind, const std::string& what, std::uint32_t line);

    // Places: a loop or a reference under one path of calls.
    std::uint32_t loop_place(Frame& f, std::int32_t loop);
    std::uint32_t reference_place(Frame& f, std::uint32_t reference);
    void access(Frame& f, std::uint32_t reference, std::uint64_t address, std::uint32_t size);
    void flush();

    // At a header: rounds that are known to repeat are taken at once.
    void stride(Frame& f);
    bool advance(Frame& f, Known& known);
    // The accesses of so many rounds.
    void emit(Frame& f, std::int64_t rounds);
    void hand_on(std::int64_t rounds);
    void hand_on_crossing(std::int64_t rounds);
    void hand_on_round();

    // Whether what lies on the stack at a place is the same as ever.
    bool same_on_stack(std::uint64_t address, std::uint64_t size, std::uint64_t owner);

    std::uint64_t address_in(Frame& f, std::int32_t reg, std::uint32_t line);
    void leave_loops(Frame& f, std::int32_t target);
    void close(const Active& a);
    // Whether what an outermost loop does next is wanted.
    void ask(std::uint32_t loop, std::uint32_t iteration);
    bool is_reported(const Frame& f, std::int32_t loop) const {
        return options_.reported && options_.reported->contains({f.function, loop});
    }
    void report(const Frame& f, std::int32_t loop, std::uint32_t iteration);
    void leap(Frame& f, Active& a);
    // Control arrives at the header of a loop.
    void arrive(Frame& f, std::int32_t loop, bool again);

    void follow(Frame& f, const Edge& edge, std::int32_t& block);
    void execute(Frame& f);
    void call(Frame& f, const Instruction& i);
    void step(Frame& f, const Instruction& i);
    void watch(const Frame& f, const Instruction& i);
    void choose(Frame& f, const Instruction& i);
    void divide(Frame& f, const Instruction& i);
    void load(Frame& f, const Instruction& i);
    void note_entry(std::uint64_t address);
    bool load_given(Frame& f, const Instruction& i, std::uint64_t address);
    void load_end(Frame& f, const Instruction& i, std::uint64_t address);
    std::int64_t found_array(std::uint64_t address, std::uint32_t bytes);
    void overwrite_given(std::uint64_t address, std::uint32_t bytes);
    void store(Frame& f, const Instruction& i);
    // What a store covers, in part or whole, is no longer what it was.
    void forget(std::uint64_t address, std::uint32_t bytes);
    // A block of memory filled or moved is one access, or a read and a write.
    void transfer(Frame& f, const Instruction& i);
    void fill_values(std::uint64_t start, std::uint64_t length, int byte);
    void move_values(std::uint64_t to, std::uint64_t from, std::uint64_t length);
    bool in_filled(std::uint64_t address, std::uint32_t bytes, std::int64_t& value, bool& known);
    void touch_filled(std::uint64_t address, std::uint32_t bytes);

    const Program& program_;
    const Parameters& parameters_;
    const RunOptions& options_;
    std::mt19937_64 random_;
    Trace trace_;
    std::vector<std::uint64_t> globals_;
    std::vector<Image> images_;
    // Integers in memory, by address. A value is known as far as one store put it there.
    struct Stored {
        std::int64_t value;
        std::uint32_t bytes;
    };
    std::unordered_map<std::uint64_t, Stored> memory_;
    // Where `memory_` ever had an entry, by line and byte; lines share words. A store that may cut into
    // others would ask it for each of some twenty addresses.
    std::array<std::uint64_t, 4096> held_{};
    std::uint64_t& held(std::uint64_t address) { return held_[address / 64 % held_.size()]; }
    void hold(std::uint64_t address, Stored what) {
        held(address) |= std::uint64_t{1} << address % 64;
        memory_[address] = what;
    }
    // Ranges filled with one byte (-1: with something unknown), and what was stored into them since, by
    // address: its bytes, eight at most.
    struct Filled {
        std::uint64_t end;
        int byte;
    };
    std::map<std::uint64_t, Filled> filled_;
    std::unordered_map<std::uint64_t, std::uint32_t> touched_;
    // Arrays whose contents are given, where they lie, and what of them was overwritten since.
    struct Given {
        std::uint64_t address, end;
        const Table* table;
    };
    std::vector<Given> given_;
    std::unordered_set<std::uint64_t> overwritten_;
    std::uint64_t found_ = 0;               // pointers that were read and not written
    const std::string* unknown_ = nullptr;  // the array that an unknown value was read from last
    bool mixed_ = false;                    // accesses of several sizes: one may cut into another
    std::vector<std::size_t> tables_;       // globals whose entries differ, where that is watched
    std::vector<Context> contexts_;
    std::unordered_map<std::uint64_t, std::uint32_t> call_contexts_;
    std::unordered_map<std::uint64_t, std::uint32_t> loop_places_;
    std::unordered_map<std::uint32_t, std::vector<std::int32_t>> reference_places_;
    std::vector<std::pair<std::int64_t, std::uint8_t>> buffer_;
    std::vector<int> on_stack_;
    std::vector<std::uint32_t> first_context_;  // of a function that is on the stack
    std::set<Doubt> doubts_;
    std::uint64_t stack_ = kStackBase;
    std::uint64_t heap_ = 0;
    struct OnStack {
        std::uint64_t end, owner;
    };
    std::map<std::uint64_t, OnStack> locals_;  // ever, by address
    bool stack_shared_ = false;                // different ones at one place
    std::uint64_t steps_ = 0;
    std::uint64_t ticks_ = 0;
    int depth_ = 0;
    bool muted_ = false;            // accesses are not shown
    std::vector<Known> knowledge_;  // by loop place
    PathRunner strider_;
    std::vector<Stretch> progressions_;  // of one emit(), moved on round by round
    std::vector<std::int64_t> staying_;  // beside them: rounds until the next crossing
    std::vector<std::uint64_t> out_addresses_;
    std::vector<std::uint32_t> out_references_, out_sizes_;
};

}  // namespace revisit::predict
