// SPDX-License-Identifier: Apache-2.0
// Prepares the command line for the parser.
#pragma once

#include <string>
#include <vector>

namespace tcast {

// Makes `explain -0.1 -inf` mean numbers, which the parser would read as options, and accepts option names as in C++
// and Python (--round_mode).
[[nodiscard]] std::vector<std::string> prepared_arguments(int argc, char** argv);

}  // namespace tcast
