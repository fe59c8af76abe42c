// SPDX-License-Identifier: Apache-2.0
// tcast promote: prints the common type of two types.
#include "tensorcast/promote.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "command.hpp"
#include "flags/option_flags.hpp"
#include "options/promote_options.hpp"
#include "print/report_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/terminal.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::name;
using tensorcast::PromoteOperand;
using tensorcast::PromoteOptions;
using tensorcast::Result;

struct PromoteArguments {
  PromoteOperand a;
  PromoteOperand b;
  PromoteOptions options;
  bool table = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* promote_examples = R"(Examples:
  tcast promote float16 int8
  tcast promote int8 uint8 --unsafe
  tcast promote i64 u64 --unsafe --u64-target float64
  tcast promote f64 f16 --pytorch-scalar --scalar-a --unsafe
  tcast promote --table --unsafe
  tcast promote int32 float32 --rules numpy
  tcast promote --table --rules jax
The rules are those of OpenVINO's ConvertPromoteTypes-14 unless --rules names others. A refused promotion exits with
status 1.)";

// Returns a few letters, so that the matrix fits: OpenVINO's own spelling if it has one.
std::string short_name(DType dtype) {
  using enum tensorcast::Family;
  const int bits = tensorcast::bit_width(dtype);
  switch (dtype) {
    case DType::uint1:
      return "u1";
    case DType::bfloat16:
      return "bf16";
    case DType::float8_e4m3fn:
      return "f8e4m3";
    case DType::float8_e5m2:
      return "f8e5m2";
    case DType::float8_e4m3fnuz:
      return "f8e4m3fnuz";
    case DType::float8_e5m2fnuz:
      return "f8e5m2fnuz";
    case DType::float8_e8m0fnu:
      return "f8e8m0";
    case DType::float8_e4m3:
      return "f8e4m3ieee";  // f8e4m3 is OpenVINO's word for float8_e4m3fn
    case DType::float8_e3m4:
      return "f8e3m4";
    case DType::float8_e4m3b11fnuz:
      return "f8e4m3b11fnuz";
    case DType::float4_e2m1fn:
      return "f4e2m1";
    default:
      break;
  }
  switch (tensorcast::family(dtype)) {
    case boolean:
      return "bool";
    case integer:
      return fmt::format("{}{}", tensorcast::is_signed(dtype) ? 'i' : 'u', bits);
    case floating:
      return fmt::format("f{}", bits);
    case text:
      break;
  }
  return std::string(name(dtype));
}

int print_matrix(const PromoteArguments& arguments) {
  const std::span<const DType> types = tensorcast::promotable_dtypes(arguments.options.rules);
  std::vector<Column> columns = {{""}};
  for (const DType b : types) columns.push_back({short_name(b)});
  Table table(std::move(columns));
  Json rows = Json::object();
  for (const DType a : types) {
    std::vector<std::string> cells = {short_name(a)};
    Json row = Json::object();
    for (const DType b : types) {
      const Result<DType> common =
          promote_types({a, arguments.a.is_scalar}, {b, arguments.b.is_scalar}, arguments.options);
      cells.push_back(common ? short_name(*common) : ".");
      row[std::string(name(b))] = common ? Json(name(*common)) : Json(nullptr);
    }
    table.add_row(std::move(cells));
    rows[std::string(name(a))] = std::move(row);
  }
  if (arguments.json) {
    print(json_text(rows));
  } else if (!arguments.quiet) {
    print(table.to_string() + "\n. refused\n");
  }
  return exit_done;
}

std::string in_words_of_the_command(std::string text) {
  const std::string_view option = "promote_unsafe";
  if (const std::size_t at = text.find(option); at != std::string::npos)
    text.replace(at, option.size(), "--unsafe (promote_unsafe)");
  return text;
}

int promote(const PromoteArguments& arguments) {
  if (arguments.table) return print_matrix(arguments);
  const Result<DType> common = promote_types(arguments.a, arguments.b, arguments.options);
  if (arguments.json) {
    Json json = {{"a", name(arguments.a.dtype)}, {"b", name(arguments.b.dtype)}};
    json["common"] = common ? Json(name(*common)) : Json(nullptr);
    if (!common) json["reason"] = common.error().message;
    print(json_text(json));
    return common ? exit_done : exit_failed;
  }
  if (!common) return fail(common.error().message, in_words_of_the_command(common.error().hint));
  if (!arguments.quiet) print(fmt::format("{}\n", name(*common)));
  return exit_done;
}

}  // namespace

void add_promote(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("promote", "Print the common type of two types");
  command.footer(promote_examples);
  const auto arguments = std::make_shared<PromoteArguments>();

  add_dtype(command, "A", arguments->a.dtype, "the first type");
  add_dtype(command, "B", arguments->b.dtype, "the second type");
  tensorcast::options::for_each(tensorcast::options::promote_options, [&](const auto& option) {
    add_listed(command, option, arguments->options.*option.member, in_words_of_the_command(help_text(option)));
  });
  command.add_flag("--scalar-a", arguments->a.is_scalar, "A is the type of a scalar (rank 0; openvino, torch)");
  command.add_flag("--scalar-b", arguments->b.is_scalar, "B is the type of a scalar (rank 0; openvino, torch)");
  command.add_flag("--table", arguments->table, "print the whole matrix instead");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);

  command.callback([arguments, &work] {
    const bool named = arguments->a.dtype != DType::undefined || arguments->b.dtype != DType::undefined;
    if (arguments->table && named) throw CLI::ValidationError("--table", "takes no types");
    if (!arguments->table && arguments->b.dtype == DType::undefined) {
      throw CLI::RequiredError("A B");
    }
    work = [arguments] { return promote(*arguments); };
  });
}

}  // namespace tcast
