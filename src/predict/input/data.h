// What an array holds that decides addresses or branches: from a file, or by chance.
#pragma once

#include <string>

#include "predict/slice/slice.h"

namespace revisit::predict {

// NAME=FILE (text, raw integers as wide as the program reads them, or .npy), or NAME=uniform:LOW..HIGH.
struct DataSource {
    std::string name, from;
};

// The array as the program reads it. An error where there is no such array, or nothing of it matters.
Result<Table> read_table(const DataSource& source, const Program& program);

}  // namespace revisit::predict
