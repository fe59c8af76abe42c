// SPDX-License-Identifier: Apache-2.0
#include "flags/options.hpp"

#include <algorithm>
#include <cmath>

#include "dtype/text_parts.hpp"
#include "flags/option_flags.hpp"
#include "options/cast_options.hpp"
#include "process/failure.hpp"
#include "process/printable.hpp"

namespace tcast {
namespace {

using tensorcast::CastOptions;
using tensorcast::DType;

// Returns the message of a parse error, or "".
std::string dtype_complaint(const std::string& spelling, DType& parsed) {
  const auto dtype = tensorcast::parse_dtype(spelling);
  if (dtype) parsed = *dtype;
  return complaint_of(dtype);
}

std::optional<bool> parse_bool(const std::string& word) {
  if (word == "true" || word == "1" || word == "on" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "off" || word == "no") return false;
  return std::nullopt;
}

// Parses "DTYPE" or "NAME=DTYPE". Returns an error message, or "".
std::string add_source_type(const std::string& word, tensorcast::SourceTypes& types) {
  const std::size_t split = word.rfind('=');
  if (split == std::string::npos || split == 0) return dtype_complaint(word, types.all);
  types.named.emplace_back(word.substr(0, split), DType::undefined);
  return dtype_complaint(word.substr(split + 1), types.named.back().second);
}

}  // namespace

std::string option_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return (name.find(',') == 1 ? "-" : "--") + name;  // "f,--force"
}

CLI::Validator check(std::function<std::string(const std::string&)> complaint) {
  return CLI::Validator(std::move(complaint), "");
}

CLI::Option* add_checked_int(CLI::App& app, const std::string& name, int& target, int low, int high,
                             const std::string& help) {
  const auto read = [low, high](const std::string& text, int& value) {
    const std::optional<int> number = tensorcast::parse_whole<int>(text);
    if (!number || *number < low || *number > high) {
      return fmt::format("\"{}\" is not a number from {} to {}", text, low, high);
    }
    value = *number;
    return std::string();
  };
  return add_read(app, name, target, help, read)->option_text("N");
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help) {
  return add_read(app, name, target, help, [](const std::string& text, std::uint64_t& value) {
    const std::optional<std::uint64_t> number = tensorcast::parse_whole<std::uint64_t>(text);
    value = number.value_or(value);
    return number ? std::string() : fmt::format("\"{}\" is not a whole number from 0 to {}", text, UINT64_MAX);
  });
}

CLI::Option* add_truth(CLI::App& app, const std::string& name, bool& target, const std::string& help) {
  const auto read = [](const std::string& word, bool& value) {
    const std::optional<bool> parsed = parse_bool(word);
    value = parsed.value_or(value);
    return parsed ? std::string() : fmt::format("\"{}\" is neither true nor false", word);
  };
  CLI::Option* option = add_read(app, name, target, help, read)->option_text("true|false");
  app.add_flag_callback(
         "--no-" + name.substr(2), [&target] { target = false; }, fmt::format("the same as {} false", name))
      ->excludes(option);
  return option;
}

CLI::Option* add_finite(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  const auto read = [](std::string text, double& value) {
    text.erase(0, text.find_first_not_of(' '));  // added by prepared_arguments()
    const std::optional<double> number = tensorcast::parse_whole<double>(text);
    if (!number || !std::isfinite(*number)) return fmt::format("\"{}\" is not a finite number", text);
    value = *number;
    return std::string();
  };
  return add_read(app, name, target, help, read)->option_text("X");
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_dtype(CLI::App& app, const std::string& names, DType& target, const std::string& help) {
  return add_read(app, names, target, help, dtype_complaint)->option_text("DTYPE");
}

CLI::Option* add_dtypes(CLI::App& app, const std::string& names, std::vector<DType>& target, const std::string& help) {
  const auto read = [](const std::string& spelling, std::vector<DType>& types) {
    if (spelling != "all") return dtype_complaint(spelling, types.emplace_back());
    types.insert(types.end(), tensorcast::all_dtypes().begin(), tensorcast::all_dtypes().end());
    return std::string();
  };
  return add_read_all(app, names, target, help, read)->delimiter(',')->option_text("DTYPE,...|all");
}

void warn_of_namesake(std::span<const DType> targets) {
  if (std::find(targets.begin(), targets.end(), DType::float8_e4m3) == targets.end()) return;
  warn("float8_e4m3 is IEEE's type, with infinities; PyTorch's and safetensors' is float8_e4m3fn");
}

void add_cast_options(CLI::App& app, CastOptions& options, bool converts_files) {
  const std::string outer_group = app.option_defaults()->get_group();
  app.option_defaults()->group("Conversion options");
  tensorcast::options::for_each(tensorcast::options::cast_options, [&](const auto& option) {
    const bool differs = converts_files && *option.convert_help != '\0';
    add_listed(app, option, options.*option.member, differs ? option.convert_help : help_text(option));
  });
  app.option_defaults()->group(outer_group);
}

void add_threads(CLI::App& app, int& threads) {
  constexpr int most = 4096;
  add_checked_int(app, "--threads", threads, 0, most,
                  threads == 0 ? "how many threads convert (default 0: all cores)"
                               : fmt::format("how many threads convert; 0: all cores (default {})", threads));
}

void add_input_layout(CLI::App& app, InputLayout& layout) {
  add_read_all(app, "--from", layout.from,
               "type of raw input, or of npy and npz arrays that do not say, such as |V1; NAME=DTYPE for one of them; "
               "repeatable",
               add_source_type)
      ->option_text("[NAME=]DTYPE");
  CLI::Option* shape = app.add_option("--shape", layout.shape, "sizes of raw input; \"scalar\" for one element");
  shape->option_text("N,M,...");
  app.add_flag("--raw", layout.raw, "the input is raw little-endian elements; needs --from and --shape");
}

std::optional<tensorcast::RawLayout> InputLayout::raw_layout() const {
  if (!raw) {
    if (shape) throw CLI::ValidationError("--shape", "only means something together with --raw");
    return std::nullopt;
  }
  if (from.all == DType::undefined) throw CLI::ValidationError("--raw", "needs --from DTYPE");
  if (!shape) throw CLI::ValidationError("--raw", "needs --shape N,M,... or --shape scalar");

  tensorcast::RawLayout layout{.dtype = from.all, .shape = {}};
  if (*shape == "scalar") return layout;
  const std::string list = *shape + ",";  // so that nothing behind a comma is a size, too
  for (const std::string_view item : tensorcast::split(list, ',')) {
    const std::optional<std::int64_t> size = tensorcast::parse_whole<std::int64_t>(item);
    if (!size || *size < 0) {
      throw CLI::ValidationError("--shape", fmt::format("\"{}\" is not a list of sizes such as 2,3", *shape));
    }
    layout.shape.push_back(*size);
  }
  return layout;
}

std::string format_names() { return fmt::format("{}", fmt::join(tensorcast::file_formats(), ", ")); }

CLI::Validator not_negative() {
  return check([](const std::string& given) {
    const std::optional<double> number = tensorcast::parse_whole<double>(given);
    const bool fits = number && *number >= 0.0 && std::isfinite(*number);
    return fits ? std::string() : fmt::format("\"{}\" is not a number of 0 or more", printable(given));
  });
}

void add_json(CLI::App& app, bool& json) { app.add_flag("--json", json, "print the result as JSON"); }

void add_quiet(CLI::App& app, bool& quiet) { app.add_flag("-q,--quiet", quiet, "print nothing but errors"); }

}  // namespace tcast
