// tcast promote: the common type of two types.
#include "tensorcast/promote.hpp"

#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "failure.hpp"
#include "options.hpp"
#include "report_json.hpp"
#include "table.hpp"
#include "terminal.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::name;
using tensorcast::PromoteOperand;
using tensorcast::PromoteOptions;
using tensorcast::Result;

enum class Rules { openvino };

struct PromoteArguments {
  PromoteOperand a;
  PromoteOperand b;
  PromoteOptions options;
  Rules rules = Rules::openvino;
  bool table = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* examples = R"(Examples:
  tcast promote float16 int8
  tcast promote int8 uint8 --unsafe
  tcast promote i64 u64 --unsafe --u64-target float64
  tcast promote f64 f16 --pytorch-scalar --scalar-a --unsafe
  tcast promote --table --unsafe
The rules are those of OpenVINO's ConvertPromoteTypes-14. A refused promotion exits with status 1.)";

// Every type that has a common type with itself is one that the rules know.
std::vector<DType> known_types(const PromoteOptions& options) {
  std::vector<DType> types;
  const auto consider = [&](DType dtype) {
    if (promote_types({dtype, false}, {dtype, false}, options)) types.push_back(dtype);
  };
  for (const DType dtype : tensorcast::all_dtypes()) consider(dtype);
  consider(DType::uint1);
  return types;
}

// A few letters, so that the matrix fits: OpenVINO's own spelling.
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
  const std::vector<DType> types = known_types(arguments.options);
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
  if (!common) return fail(common.error().message, arguments.options.promote_unsafe ? "" : "--unsafe may allow it");
  if (!arguments.quiet) print(fmt::format("{}\n", name(*common)));
  return exit_done;
}

}  // namespace

void add_promote(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("promote", "Print the common type of two types");
  command.footer(examples);
  const auto arguments = std::make_shared<PromoteArguments>();

  add_dtype(command, "A", arguments->a.dtype, "the first type");
  add_dtype(command, "B", arguments->b.dtype, "the second type");
  command.add_flag("--unsafe", arguments->options.promote_unsafe, "allow promotions that can lose values");
  command.add_flag("--pytorch-scalar", arguments->options.pytorch_scalar_promotion,
                   "between a scalar and a tensor of one family, the tensor's type wins");
  command.add_flag("--scalar-a", arguments->a.is_scalar, "A is the type of a scalar (rank 0)");
  command.add_flag("--scalar-b", arguments->b.is_scalar, "B is the type of a scalar (rank 0)");
  add_dtype(command, "--u64-target", arguments->options.u64_integer_promotion_target,
            "with --unsafe, what uint64 and a signed integer become (default float32)");
  add_choice<Rules>(command, "--rules", arguments->rules, {{"openvino", Rules::openvino}},
                    "whose rules (default openvino)");
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
