// SPDX-License-Identifier: Apache-2.0
// Properties of the terminal behind stdout and stderr.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tcast {

[[nodiscard]] bool stdout_is_terminal();
[[nodiscard]] bool stderr_is_terminal();

// Returns the columns of the terminal behind stdout or stderr, or `otherwise`.
[[nodiscard]] std::size_t stdout_columns(std::size_t otherwise);
[[nodiscard]] std::size_t stderr_columns(std::size_t otherwise);

enum class ColorChoice { automatic, always, never };
// `automatic` means on for a terminal that is not dumb, unless the environment variable NO_COLOR is set and not empty.
[[nodiscard]] bool use_color(ColorChoice choice);
[[nodiscard]] bool stderr_has_color();  // as `automatic` decides for stdout

// Returns `text` in red if `color`: what a conversion destroyed.
[[nodiscard]] std::string in_red(std::string text, bool color = use_color(ColorChoice::automatic));

// Writes results to stdout.
void print(std::string_view text);
// Returns false if text written to stdout was lost, for example on a full disk.
[[nodiscard]] bool flush_stdout();

}  // namespace tcast
