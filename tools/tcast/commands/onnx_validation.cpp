// SPDX-License-Identifier: Apache-2.0
#include "commands/onnx_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "flags/options.hpp"
#include "process/printable.hpp"
#include "process/run_program.hpp"
#include "process/terminal.hpp"

namespace tcast {
namespace {

using nlohmann::ordered_json;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

// Python looks for packages in the current folder first, whoever's files are there.
constexpr std::string_view without_current_folder = "import sys; sys.path[:] = [p for p in sys.path if p]; ";
constexpr std::string_view test_packages = "import onnx, onnxruntime; from tensorcast.onnx import validate";
constexpr std::string_view run_package = "from tensorcast.onnx.__main__ import main; sys.exit(main())";
constexpr std::string_view error_mark = "tensorcast: error: ";

// What Python said last, on one line; of tensorcast's own errors all of it.
std::string complaint_of(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  const std::size_t mark = text.rfind(error_mark);
  text.remove_prefix(mark != std::string_view::npos ? mark + error_mark.size() : text.rfind('\n') + 1);
  std::string line;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

Error no_python(std::string message) {
  return tensorcast::unsupported(
      std::move(message),
      "pip install tensorcast[validate]; the environment variable TCAST_PYTHON names another Python");
}

bool is_dims(std::string_view list) {
  return std::ranges::all_of(tensorcast::split(list, ','), [](std::string_view entry) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view length = entry.substr(std::min(equals + 1, entry.size()));
    return equals > 0 && !length.empty() && length.find_first_not_of("0123456789") == length.npos;
  });
}

// A line on a terminal while Python works, from the second second on.
class WaitingLine {
 public:
  explicit WaitingLine(bool enabled) : enabled_(enabled && stderr_is_terminal()) {}
  ~WaitingLine() {
    if (shown_ > 0) std::fputs("\r\x1b[K", stderr);
  }
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

  void show() {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_).count();
    if (!enabled_ || seconds <= shown_) return;
    shown_ = seconds;
    std::fputs(
        fmt::format("\r\x1b[Kvalidating in ONNX Runtime, {}", duration_text(static_cast<double>(seconds))).c_str(),
        stderr);
  }

 private:
  bool enabled_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t shown_ = 0;
};

bool is_output(const ordered_json& output) {
  const auto named = output.is_object() ? output.find("name") : output.end();
  return named != output.end() && named->is_string();
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).string();
}

}  // namespace

void add_validation(CLI::App& command, ValidationArguments& arguments) {
  CLI::Option* validate = command.add_flag(
      "--validate", arguments.wanted,
      "check the new model, and run it beside the old one in ONNX Runtime; needs pip install tensorcast[validate]");
  const auto add = [&](const char* name, auto& target, const char* help, const char* text) {
    return command.add_option(name, target, help)->needs(validate)->option_text(text);
  };
  repeatable(add("--inputs", arguments.inputs,
                 "an npz file with an array for each input; repeatable (default: random ones, masks 1)", "NPZ"));
  add("--dims", arguments.dims, "lengths of symbolic dimensions: batch=1,sequence=16 (default 2)", "LENGTHS")
      ->check(check([](const std::string& given) {
        return is_dims(given)
                   ? std::string()
                   : fmt::format("\"{}\" is not a list of lengths; write batch=1,sequence=16", printable(given));
      }));
  add("--seed", arguments.seed, "of random inputs (default 0)", "NUMBER");
  const char* rtol =
      "relative error that passes (default by the type: 0.02 for float16, 0.12 for bfloat16, 1 for codes, else 1e-4)";
  add("--rtol", arguments.rtol, rtol, "NUMBER")->check(not_negative());
  add("--atol", arguments.atol, "absolute error that passes (default as --rtol)", "NUMBER")->check(not_negative());
  add("--cosine", arguments.cosine, "the least cosine between old and new outputs (default 0.99)", "NUMBER")
      ->check(CLI::Range(-1.0, 1.0));
}

Result<Validator> Validator::find(const ValidationArguments& arguments, bool quiet) {
  Validator validator;
  validator.quiet_ = quiet;
  const char* named = std::getenv("TCAST_PYTHON");
  const std::string program = named != nullptr && *named != '\0' ? named : "python3";
  validator.python_ = find_program(program);
  if (validator.python_.empty()) {
    return no_python(fmt::format("--validate needs Python, and there is no program {}", program));
  }
  for (const std::string& inputs : arguments.inputs) {
    if (std::ifstream(inputs)) continue;
    return Error{.code = ErrorCode::io, .message = "cannot open the inputs", .file = inputs};
  }
  const std::string test[] = {"-c", fmt::format("{}{}", without_current_folder, test_packages)};
  const ProgramResult found = TRY(run_program(validator.python_, test));
  if (found.status != 0) {
    return no_python(
        fmt::format("--validate needs packages that {} lacks: {}", validator.python_, complaint_of(found.complaints)));
  }
  const auto add = [&](std::string_view option, const auto& value) {
    validator.options_.push_back(fmt::format("--{}={}", option, value));
  };
  for (const std::string& inputs : arguments.inputs) add("inputs", inputs);
  if (!arguments.dims.empty()) add("dims", arguments.dims);
  if (arguments.seed) add("seed", *arguments.seed);
  if (arguments.rtol) add("rtol", *arguments.rtol);
  if (arguments.atol) add("atol", *arguments.atol);
  if (arguments.cosine) add("cosine", *arguments.cosine);
  return validator;
}

Result<ordered_json> Validator::compare(const std::string& old_model, const std::string& new_model,
                                        tensorcast::DType to) const {
  std::vector<std::string> words = {"-c",
                                    fmt::format("{}{}", without_current_folder, run_package),
                                    "validate",
                                    absolute(old_model),
                                    absolute(new_model),
                                    fmt::format("--to={}", name(to)),
                                    "--json"};
  words.insert(words.end(), options_.begin(), options_.end());
  WaitingLine line(!quiet_);
  const ProgramResult done = TRY(run_program(python_, words, {}, [&] { line.show(); }));
  if (done.status != 0) {
    const std::string complaint = complaint_of(done.complaints);
    return tensorcast::invalid(
        complaint.empty() ? fmt::format("{} ended with status {}", python_, done.status) : complaint,
        "nothing was written");
  }
  const ordered_json result = ordered_json::parse(done.output, nullptr, false);
  const auto outputs = result.is_object() ? result.find("outputs") : result.end();
  if (outputs == result.end() || !outputs->is_array() || !std::all_of(outputs->begin(), outputs->end(), is_output)) {
    return Error{.code = ErrorCode::internal, .message = fmt::format("the answer of {} is not understood", python_)};
  }
  return *outputs;
}

std::string validation_text(const ordered_json& outputs) {
  const auto number = [](const ordered_json& output, const char* key) {
    const auto found = output.find(key);
    return found != output.end() && found->is_number() ? short_number(found->get<double>()) : "?";
  };
  std::string text;
  for (const ordered_json& output : outputs) {
    text += fmt::format("  {}: error {}, relative {}, cosine {}\n", printable(output.at("name").get<std::string>()),
                        number(output, "max_abs_error"), number(output, "max_rel_error"), number(output, "cosine"));
  }
  return text;
}

}  // namespace tcast
