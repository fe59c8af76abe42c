#include "options.hpp"

#include <charconv>
#include <cmath>

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

std::optional<bool> parse_bool(const std::string& word) {
  if (word == "true" || word == "1" || word == "on" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "off" || word == "no") return false;
  return std::nullopt;
}

void add_saturate(CLI::App& app, CastOptions& options) {
  CLI::Option* saturate = app.add_option_function<std::string>(
      "--saturate", [&options](const std::string& word) { options.saturate = *parse_bool(word); },
      "float8: out-of-range values become the nearest finite value (true, default), or infinity or NaN (false)");
  saturate->option_text("true|false");
  saturate->check(CLI::Validator(
      [](std::string& word) {
        return parse_bool(word) ? std::string() : fmt::format("\"{}\" is neither true nor false", word);
      },
      ""));
  app.add_flag_callback(
         "--no-saturate", [&options] { options.saturate = false; }, "the same as --saturate false")
      ->excludes(saturate);
}

void add_scale(CLI::App& app, CastOptions& options) {
  CLI::Option* scale = app.add_option("--scale", options.scale, "multiply by X before the one rounding (default 1)");
  scale->option_text("X");
  scale->check(CLI::Validator(
      [](std::string& text) {
        text.erase(0, text.find_first_not_of(' '));  // added by prepared_arguments()
        double value = 0.0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool finite = status == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
        return finite ? std::string() : fmt::format("\"{}\" is not a finite number", text);
      },
      ""));
}

// Parses "DTYPE" or "NAME=DTYPE". Returns an error message, or "".
std::string add_source_type(const std::string& word, tensorcast::SourceTypes& types) {
  const std::size_t split = word.rfind('=');
  if (split == std::string::npos || split == 0) return dtype_complaint(word, types.all);
  types.named.emplace_back(word.substr(0, split), DType::undefined);
  return dtype_complaint(word.substr(split + 1), types.named.back().second);
}

}  // namespace

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

CLI::Option* add_cast_options(CLI::App& app, CastOptions& options, const std::string& out_of_range_help) {
  using namespace tensorcast;
  const std::string outer_group = app.option_defaults()->get_group();
  app.option_defaults()->group("Conversion options");
  add_checked_int(app, "--opset", options.opset, 1, newest_opset(),
                  fmt::format("convert as this version of ONNX Cast does (default {})", newest_opset()));
  add_saturate(app, options);
  add_choice<RoundMode>(app, "--round-mode", options.round_mode,
                        {{"up", RoundMode::up}, {"down", RoundMode::down}, {"nearest", RoundMode::nearest}},
                        "rounding to float8_e8m0fnu (default up)");
  CLI::Option* out_of_range = add_choice<OutOfRange>(app, "--out-of-range", options.out_of_range,
                                                     {{"auto", OutOfRange::automatic},
                                                      {"wrap", OutOfRange::wrap},
                                                      {"saturate", OutOfRange::saturate},
                                                      {"error", OutOfRange::error}},
                                                     out_of_range_help);
  add_choice<IntRounding>(app, "--int-rounding", options.int_rounding,
                          {{"trunc", IntRounding::trunc}, {"nearest_even", IntRounding::nearest_even}},
                          "fractions on the way to integers (default trunc)");
  add_choice<Invalid>(app, "--invalid", options.invalid,
                      {{"default", Invalid::default_value}, {"error", Invalid::error}},
                      "NaN and Inf to integers, NaN to float4, negatives to float8_e8m0fnu");
  add_choice<FnuzInf>(app, "--fnuz-inf", options.fnuz_inf, {{"spec", FnuzInf::spec}, {"flt_max", FnuzInf::flt_max}},
                      "infinity to the fnuz types at opset 19 to 23 (default spec: NaN)");
  add_choice<FloatString>(app, "--float-string", options.float_string,
                          {{"plain", FloatString::plain}, {"shortest", FloatString::shortest}, {"g8", FloatString::g8}},
                          "how floats become strings (default plain)");
  add_scale(app, options);
  app.option_defaults()->group(outer_group);
  return out_of_range;
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
