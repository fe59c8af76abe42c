#include "options.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "failure.hpp"
#include "option_flags.hpp"
#include "options/cast_options.hpp"
#include "printable.hpp"

namespace tcast {
namespace {

using tensorcast::CastOptions;
using tensorcast::DType;

// Returns the message of a parse error, or "".
std::string dtype_complaint(const std::string& spelling, DType& parsed) {
  const auto dtype = tensorcast::parse_dtype(spelling);
  if (!dtype) return fmt::format("{}; {}", dtype.error().message, dtype.error().hint);
  parsed = *dtype;
  return {};
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

CLI::Option* add_checked_int(CLI::App& app, const std::string& name, int& target, int low, int high,
                             const std::string& help) {
  CLI::Option* option = app.add_option(name, target, help)->option_text("N");
  option->check(CLI::Validator(
      [low, high](std::string& text) {
        int value = 0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool fits = status == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
        return fits ? std::string() : fmt::format("\"{}\" is not a number from {} to {}", text, low, high);
      },
      ""));
  return option;
}

CLI::Option* add_truth(CLI::App& app, const std::string& name, bool& target, const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      name, [&target](const std::string& word) { target = *parse_bool(word); }, help);
  option->option_text("true|false");
  option->check(CLI::Validator(
      [](std::string& word) {
        return parse_bool(word) ? std::string() : fmt::format("\"{}\" is neither true nor false", word);
      },
      ""));
  app.add_flag_callback(
         "--no-" + name.substr(2), [&target] { target = false; }, fmt::format("the same as {} false", name))
      ->excludes(option);
  return option;
}

CLI::Option* add_finite(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  CLI::Option* option = app.add_option(name, target, help)->option_text("X");
  option->check(CLI::Validator(
      [](std::string& text) {
        text.erase(0, text.find_first_not_of(' '));  // added by prepared_arguments()
        double value = 0.0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool finite = status == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
        return finite ? std::string() : fmt::format("\"{}\" is not a finite number", text);
      },
      ""));
  return option;
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_dtype(CLI::App& app, const std::string& names, DType& target, const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      names, [&target](const std::string& spelling) { dtype_complaint(spelling, target); }, help);
  option->check(CLI::Validator(
      [](std::string& spelling) {
        DType parsed = DType::undefined;
        return dtype_complaint(spelling, parsed);
      },
      ""));
  return option->option_text("DTYPE");
}

CLI::Option* add_dtypes(CLI::App& app, const std::string& names, std::vector<DType>& target, const std::string& help) {
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      names,
      [&target](const std::vector<std::string>& spellings) {
        target.clear();
        for (const std::string& spelling : spellings) {
          if (spelling == "all") {
            const auto all = tensorcast::all_dtypes();
            target.insert(target.end(), all.begin(), all.end());
          } else {
            target.emplace_back();
            dtype_complaint(spelling, target.back());
          }
        }
      },
      help);
  repeatable(option)->delimiter(',');
  option->check(CLI::Validator(
      [](std::string& spelling) {
        DType parsed = DType::undefined;
        return spelling == "all" ? std::string() : dtype_complaint(spelling, parsed);
      },
      ""));
  return option->option_text("DTYPE,...|all");
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
  CLI::Option* from = app.add_option_function<std::vector<std::string>>(
      "--from",
      [&layout](const std::vector<std::string>& words) {
        for (const std::string& word : words) add_source_type(word, layout.from);
      },
      "type of raw input, or of npy and npz arrays that do not say, such as |V1; NAME=DTYPE for one of them; "
      "repeatable");
  repeatable(from)->option_text("[NAME=]DTYPE");
  from->check(CLI::Validator(
      [](std::string& word) {
        tensorcast::SourceTypes ignored;
        return add_source_type(word, ignored);
      },
      ""));
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
  std::string_view rest = *shape;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    std::int64_t size = 0;
    const auto [end, status] = std::from_chars(item.data(), item.data() + item.size(), size);
    if (status != std::errc{} || end != item.data() + item.size() || size < 0) {
      throw CLI::ValidationError("--shape", fmt::format("\"{}\" is not a list of sizes such as 2,3", *shape));
    }
    layout.shape.push_back(size);
    if (item.size() == rest.size()) return layout;
    rest.remove_prefix(item.size() + 1);
  }
}

std::string format_names() { return fmt::format("{}", fmt::join(tensorcast::file_formats(), ", ")); }

CLI::Validator not_negative() {
  return CLI::Validator(
      [](std::string& given) {
        double number = 0.0;
        const auto [end, problem] = std::from_chars(given.data(), given.data() + given.size(), number);
        const bool is_number = problem == std::errc() && end == given.data() + given.size();
        return is_number && number >= 0.0 && std::isfinite(number)
                   ? std::string()
                   : fmt::format("\"{}\" is not a number of 0 or more", printable(given));
      },
      "");
}

void add_json(CLI::App& app, bool& json) { app.add_flag("--json", json, "print the result as JSON"); }

void add_quiet(CLI::App& app, bool& quiet) { app.add_flag("-q,--quiet", quiet, "print nothing but errors"); }

}  // namespace tcast
