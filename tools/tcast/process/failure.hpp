// SPDX-License-Identifier: Apache-2.0
// The only place that prints errors to stderr and chooses an exit status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/error.hpp"

namespace tcast {

// Lets fail() and misuse() also print {"error": {...}} to stdout, for programs that asked for JSON.
void print_errors_as_json();

// Prints `tcast: error: FILE: tensor "NAME": element 17: MESSAGE`, and a second line with the hint, if any.
// Returns exit_failed, or what set_failed_status() chose.
int fail(const tensorcast::Error& error);
int fail(std::string_view message, std::string_view hint = {});

// For commands whose exit status 1 means something else.
void set_failed_status(int status);

// Prints the error of one of several files to stderr; the work goes on.
void report_error(const tensorcast::Error& error);

struct CommandOptions {
  std::string command;               // "onnx convert"
  std::vector<std::string> options;  // long names: "--to"
};

// Tells with_options() what there is: all commands, and the one that runs.
void know_options(std::vector<CommandOptions> commands, std::string running);

// Returns `text` with the library's fields replaced by options of the command that runs: `raw_codes` becomes
// --raw-codes, or "--raw-codes of `tcast convert`" if only that command has it. Other words stay.
[[nodiscard]] std::string with_options(std::string_view text);

// Prints `tcast: warning: MESSAGE` and the hint. The work was done.
void warn(std::string_view message, std::string_view hint = {});

// The same of numbers that were destroyed: in red on a terminal.
void warn_of_loss(std::string_view message, std::string_view hint = {});

// Like fail(), for a wrong command line. Returns exit_usage.
int misuse(std::string_view message, std::string_view hint = {});
int misuse(const tensorcast::Error& error);

}  // namespace tcast
