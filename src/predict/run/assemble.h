// Puts a profile together from what each (reference, source) contributed.
#pragma once

#include <string>
#include <vector>

#include "predict/run/interpret.h"
#include "revisit/profile.h"

namespace revisit::predict {

class Assembly {
 public:
    Assembly(const Program& program, std::uint64_t granularity, Binning bins)
        : program_(program), bins_(bins) {
        profile_.granularity = granularity;
        profile_.method = "predict";
        total_.emplace_back(bins);
    }

    void add_reference(std::uint32_t function, std::uint32_t reference);
    void add_stream(std::int32_t reference, std::int32_t source, const DistanceCounter& count);
    Profile finish();
    // What an engine measured, sites being numbered as they were added, from 1.
    Profile finish(Profile measured);

 private:
    Profile describe();

    const Program& program_;
    Binning bins_;
    Profile profile_;
    std::vector<DistanceCounter> total_;  // one
    std::vector<DistanceCounter> by_site_;
    std::vector<std::string> array_of_;
    std::vector<bool> writes_;
};

}  // namespace revisit::predict
