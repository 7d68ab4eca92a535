// Stands in for what no fuzzer runs (src/CMakeLists.txt) and the rest names: other engines, and the
// ways to predict that fuzz/predict.cpp does not ask for. One that is called all the same ends the
// fuzzer.
#include <cstdlib>

#include "engines/phases.h"
#include "predict/estimate/estimate.h"
#include "predict/input/data.h"
#include "predict/input/record_data.h"
#include "predict/run/parallel.h"
#include "predict/run/simulate.h"

namespace revisit {

using Made = Result<std::unique_ptr<Engine>>;
Made make_hprda(const EngineOptions&) {
    std::abort();
}
Made make_sample(const EngineOptions&) {
    std::abort();
}
Made make_shards(const EngineOptions&) {
    std::abort();
}
Made make_time(const EngineOptions&) {
    std::abort();
}
Made make_phased(std::unique_ptr<Engine>, const EngineOptions&) {
    std::abort();
}

namespace predict {

Result<std::vector<Program>> compile(const Source&, const std::vector<Parameters>&) {
    std::abort();
}
Result<Table> read_table(const DataSource&, const Program&) {
    std::abort();
}
Result<RecordedData> record_data(const Request&, const Program&, const std::vector<std::string>&) {
    std::abort();
}
Result<Estimate> estimate(const Reduction&, const Request&, const Deadline&) {
    std::abort();
}

Result<std::vector<ParallelLoop>> parallel_loops(const Program&, const std::string&,
                                                 const std::string&) {
    std::abort();
}
Result<Simulation> simulate_threads(const Program&, const Parameters&, const Request&,
                                    const std::vector<ParallelLoop>&, std::uint64_t) {
    std::abort();
}

Result<std::optional<Repetition>> simulate_repeating(const Program&, const Parameters&, const Request&,
                                                     const Deadline&, std::uint64_t,
                                                     std::optional<std::uint64_t>) {
    std::abort();
}
Result<Replay::Show> Replay::arrive(std::uint32_t, std::uint32_t, Analysis&) {
    std::abort();
}
Result<Profile> Replay::whole(const Profile&) const {
    std::abort();
}
void Replay::record(const BlockBatch&) {
    std::abort();
}

}  // namespace predict
}  // namespace revisit
