// SPDX-License-Identifier: Apache-2.0
// tcast explain: shows one value in every type, bit by bit.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "dtype/try.hpp"
#include "flags/option_flags.hpp"
#include "flags/options.hpp"
#include "options/cast_options.hpp"
#include "print/decimal_text.hpp"
#include "print/report_json.hpp"
#include "print/rounding_text.hpp"
#include "print/value_text.hpp"
#include "process/failure.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/explain.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::Explanation;
using tensorcast::Result;

struct ExplainArguments {
  std::vector<std::string> literals;
  DType from = DType::undefined;
  std::vector<DType> to;
  tensorcast::CastOptions options;
  ColorChoice color = ColorChoice::automatic;
  bool full = false;
  bool json = false;
  bool quiet = false;
  std::optional<tensorcast::Rounding> rounding = tensorcast::Rounding::automatic;  // none: every word
};

struct ExplainedValue {
  std::string literal;
  std::optional<Explanation> source;  // the value as `from` has it
  std::vector<Explanation> targets;
  std::vector<EveryRounding> roundings;  // in place of `targets`, with --rounding all
};

constexpr const char* explain_examples = R"(Examples:
  tcast explain 0.1
  tcast explain 0.1 --to float8_e4m3fn
      one type at length
  tcast explain -0.1 1e5 nan --to f16,bf16,e4m3fn,e5m2
  tcast explain 0x7E --from float8_e4m3fn --to all
      a code instead of a number: what float8's largest value becomes in every type
  tcast explain 300 --to uint8 --out-of-range saturate
  tcast explain 0.1 --to float8_e4m3fn --rounding all
      both neighbours, and which word gives which
  tcast explain 1e-310 --to float64 --full
VALUE is a decimal number, inf or nan, or, with --from, a code such as 0x3C or 0b0111.)";

Result<ExplainedValue> explain_value(const ExplainArguments& arguments, const std::string& literal) {
  const auto first = literal.find_first_not_of(' ');
  ExplainedValue value{.literal = first == std::string::npos ? literal : literal.substr(first),
                       .source = {},
                       .targets = {},
                       .roundings = {}};
  if (arguments.from != DType::undefined) {
    tensorcast::CastOptions unscaled = arguments.options;
    unscaled.scale = 1.0;
    unscaled.rounding = tensorcast::Rounding::automatic;
    unscaled.seed = 0;
    unscaled.inexact = tensorcast::Inexact::automatic;
    value.source = TRY(tensorcast::explain(literal, arguments.from, arguments.from, unscaled));
  }
  for (const DType to : arguments.to) {
    if (!arguments.rounding) {
      value.roundings.push_back(TRY(by_every_word(literal, arguments.from, to, arguments.options)));
      continue;
    }
    value.targets.push_back(TRY(tensorcast::explain(literal, arguments.from, to, arguments.options)));
  }
  return value;
}

// "0.1, as float32 0x3DCCCCCD = 0.100000001490116119384765625, times 0.5"
std::string heading(const ExplainedValue& value, const ExplainArguments& arguments, const Drawing& drawing) {
  constexpr std::size_t longest_value = 60;
  std::string text = printable(value.literal);
  if (value.source) {
    const Explanation& source = *value.source;
    text += fmt::format(", as {} {}", tensorcast::name(source.dtype), code_text(source));
    if (source.exact_value != value.literal) {
      text += fmt::format(" = {}",
                          drawing.full ? source.exact_value : shortened_decimal(source.exact_value, longest_value));
    }
  }
  if (arguments.options.scale != 1.0) text += fmt::format(", times {}", arguments.options.scale);
  if (arguments.to.size() == 1) text += fmt::format(" -> {}", tensorcast::name(arguments.to[0]));
  return drawing.color ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : text + "\n";
}

Json explanation_json(const Explanation& explanation) {
  Json json = {{"dtype", tensorcast::name(explanation.dtype)}};
  if (!explanation.error.empty()) {
    json["error"] = explanation.error;
    return json;
  }
  if (explanation.dtype != DType::string) {
    json["code"] = code_text(explanation);
    json["sign_bits"] = explanation.sign_bits;
    json["exponent_bits"] = explanation.exponent_bits;
    json["mantissa_bits"] = explanation.mantissa_bits;
  }
  json["exact_value"] = explanation.exact_value;
  json["shortest_value"] = explanation.shortest_value;
  json["exact_error"] = explanation.exact_error;
  // Infinity and NaN are at no distance from a number.
  json["relative_error"] = explanation.exact_error.empty() ? Json() : finite_or_null(explanation.relative_error);
  json["events"] = explanation.events;
  return json;
}

Json value_json(const ExplainedValue& value) {
  Json json = {{"value", value.literal}};
  if (value.source) json["source"] = explanation_json(*value.source);
  json["results"] = Json::array();
  for (const Explanation& target : value.targets) json["results"].push_back(explanation_json(target));
  for (const EveryRounding& target : value.roundings) json["results"].push_back(rounding_json(target));
  return json;
}

int explain(const ExplainArguments& arguments) {
  std::vector<ExplainedValue> values;
  for (const std::string& literal : arguments.literals) {
    Result<ExplainedValue> value = explain_value(arguments, literal);
    if (!value) return fail(value.error());
    values.push_back(*std::move(value));
  }
  const bool names_types = arguments.to.size() < tensorcast::all_dtypes().size();
  if (names_types && !arguments.quiet) warn_of_namesake(arguments.to);
  if (arguments.json) {
    Json list = Json::array();
    for (const ExplainedValue& value : values) list.push_back(value_json(value));
    print(json_text(list));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;

  const Drawing drawing{
      .color = use_color(arguments.color), .full = arguments.full, .columns = stdout_columns(Drawing{}.columns)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) print("\n");
    print(heading(values[i], arguments, drawing));
    if (!arguments.rounding) {
      print(rounding_table(values[i].roundings, arguments.full));
      continue;
    }
    print(arguments.to.size() == 1 ? draw_card(values[i].targets[0], drawing) : draw_table(values[i].targets, drawing));
  }
  return exit_done;
}

// The words of `rounding`, and "all".
void add_rounding_or_all(CLI::App& command, ExplainArguments& arguments) {
  CLI::Option* const listed = command.get_option("--rounding");
  const std::string help = listed->get_description(), group = listed->get_group();
  command.remove_option(listed);
  using Word = std::optional<tensorcast::Rounding>;
  auto [words, synonyms] = choices_of<Word, tensorcast::Rounding>(tensorcast::options::roundings);
  words.emplace_back("all", std::nullopt);
  add_choice<Word>(command, "--rounding", arguments.rounding, std::move(words),
                   help + "; all shows both neighbours, and which word gives which", std::move(synonyms))
      ->option_text("WORD|all")
      ->group(group);
}

}  // namespace

void add_explain(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("explain", "Show a value in every type: bits, exact value, error");
  command.footer(explain_examples);
  const auto arguments = std::make_shared<ExplainArguments>();
  const auto all = tensorcast::all_dtypes();
  arguments->to.assign(all.begin(), all.end());

  command.add_option("VALUE", arguments->literals, "numbers, or codes of --from")->required();
  add_dtype(command, "--from", arguments->from, "round the value to this type first; needed for codes");
  add_dtypes(command, "--to", arguments->to, "types to show (default all)");
  add_choice<ColorChoice>(
      command, "--color", arguments->color,
      {{"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}},
      "colours (default auto: on a terminal, unless NO_COLOR is set)");
  command.add_flag("--full", arguments->full, "all digits and bits, however long");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->options);
  add_rounding_or_all(command, *arguments);

  command.callback([arguments, &work] {
    arguments->options.rounding = arguments->rounding.value_or(tensorcast::Rounding::automatic);
    work = [arguments] { return explain(*arguments); };
  });
}

}  // namespace tcast
