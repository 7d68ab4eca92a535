// Exceptions through recorded frames: destructors that run on the way, rethrows, exceptions from
// libstdc++.
#include <stdexcept>
#include <string>
#include <vector>

#include "touch.h"

namespace {

long touched;

struct Guard {
    long n;
    ~Guard() {
        touch(n);
        touched += n;
    }
};

__attribute__((noinline)) int descend(int depth, int floor) {
    Guard guard{depth % 5};
    volatile int local[4];
    local[depth & 3] = depth;
    if (depth == floor) throw std::runtime_error("at " + std::to_string(depth));
    int below = descend(depth + 1, floor);
    touch(3);
    touched += 3;
    return below + local[depth & 3];
}

}  // namespace

int main() {
    std::vector<std::string> caught;
    for (int i = 0; i < 3000; ++i) {
        try {
            descend(0, i % 30);
        } catch (const std::exception& error) {
            touch(2);
            touched += 2;
            caught.push_back(error.what());
        }
        try {
            try {
                if (i % 3 == 0) throw i;
                if (i % 3 == 1) caught.at(1u << 30);
                touch(1);
                touched += 1;
            } catch (int) {
                touch(5);
                touched += 5;
                throw;
            }
        } catch (...) {
            touch(4);
            touched += 4;
        }
    }
    std::printf("touched %ld\n", touched);
}
