// SPDX-License-Identifier: Apache-2.0
// Runs another program without a shell, and waits for it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tcast {

// Returns the path of a program; "" if no folder of PATH has it. A name with a slash is a path itself.
[[nodiscard]] std::string find_program(std::string_view name);

struct ProgramResult {
  int status = 0;  // 128 and the signal that ended it
  std::string output = {};
  std::string complaints = {};
};

// Runs the program at `path` with `input` as its standard input. Calls `waiting`, if any, some times a second. A signal
// to this process ends the program, too. Errors: io: it cannot be started; cancelled: a signal.
[[nodiscard]] tensorcast::Result<ProgramResult> run_program(const std::string& path,
                                                            std::span<const std::string> arguments,
                                                            std::string_view input = {},
                                                            const std::function<void()>& waiting = {});

}  // namespace tcast
