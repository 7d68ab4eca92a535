// What decides, from one run of the user's program.
#pragma once

#include <string>
#include <vector>

#include "predict/input/request.h"

namespace revisit::predict {

struct RecordedData {
    Parameters numbers;  // sizes, by name
    std::vector<Table> tables;
};

// Builds the sources with notes (slice/llvm/instrument.cpp), runs them with `arguments` and reads what
// the first call of the function read. A number that the call changes, or reads with several values, is
// none.
Result<RecordedData> record_data(const Request& request, const Program& program,
                                 const std::vector<std::string>& arguments);

}  // namespace revisit::predict
