// SPDX-License-Identifier: Apache-2.0
// The interface of the subcommands. Each has its own file and one function here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;  // its header is large, and users of the exit statuses do not need it
}

namespace tcast {

// Promised exit statuses.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;  // an error of the input, the data, or input/output
inline constexpr int exit_usage = 2;   // the command line itself is wrong
// A comparison has statuses of its own, as those of diff and cmp.
inline constexpr int exit_differs = 1;
inline constexpr int exit_not_compared = 2;
inline constexpr int exit_signal = 128;  // and the number of the signal that ended the work: 130 for Ctrl-C

// The work of the parsed command line; returns the exit status.
using Work = std::function<int()>;

// Each function adds its subcommand to `app`; parsing that subcommand sets `work`.
void add_convert(CLI::App& app, Work& work);
void add_plan(CLI::App& app, Work& work);
void add_run_shard(CLI::App& app, Work& work);
void add_finish(CLI::App& app, Work& work);
void add_verify(CLI::App& app, Work& work);
void add_diff(CLI::App& app, Work& work);
void add_inspect(CLI::App& app, Work& work);
void add_explain(CLI::App& app, Work& work);
void add_promote(CLI::App& app, Work& work);
void add_run(CLI::App& app, Work& work);
void add_onnx(CLI::App& app, Work& work);
void add_bench(CLI::App& app, Work& work);
void add_types(CLI::App& app, Work& work);
void add_schemes(CLI::App& app, Work& work);
void add_recipes(CLI::App& app, Work& work);
void add_info(CLI::App& app, Work& work);
void add_completion(CLI::App& app, Work& work);

// The names that options for schemes and recipes take.
[[nodiscard]] std::vector<std::string> scheme_words();
[[nodiscard]] std::vector<std::string> recipe_words();

// Prints what may stand in the place of the last word, a line each: the word, a tab, what it means.
int print_candidates(const CLI::App& app, const std::vector<std::string>& words);

// Sets `work`, which writes a manual page for the command and each of its subcommands into the folder that `words`
// name; or prints an error and returns the exit status.
[[nodiscard]] std::optional<int> add_manual(const CLI::App& app, const std::vector<std::string>& words, Work& work);

// Sets `work`, or prints the help or an error and returns the exit status.
[[nodiscard]] std::optional<int> parse_command_line(std::vector<std::string> arguments, Work& work);

}  // namespace tcast
