// The command line before it is parsed.
#pragma once

#include <string>
#include <vector>

namespace tcast {

// Lets `explain -0.1 -inf` mean numbers, where the parser would see options, and option names be written as in C++ and
// Python (--round_mode).
[[nodiscard]] std::vector<std::string> prepared_arguments(int argc, char** argv);

}  // namespace tcast
