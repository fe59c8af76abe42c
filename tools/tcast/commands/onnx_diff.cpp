// SPDX-License-Identifier: Apache-2.0
// tcast onnx diff: compares two models.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "flags/options.hpp"
#include "print/difference_text.hpp"
#include "print/onnx_text.hpp"
#include "print/report_json.hpp"
#include "print/result_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::TensorDifference;
using tensorcast::onnx::CastInfo;

struct OnnxDiffArguments {
  tensorcast::onnx::DiffRequest request;
  bool all = false;
  bool json = false;
  bool quiet = false;
};

constexpr std::size_t most_listed_lines = 20;

constexpr const char* onnx_diff_examples = R"(Examples:
  tcast onnx diff model.onnx model-f16.onnx
  tcast onnx diff model.onnx model-f16.onnx --all --json
  tcast onnx diff A B --headers-only       reads no elements
Compares opsets, the types of values by their names, Casts, numbers of operators, and initializers, whose values are
compared as float64; not the attributes and the inputs of nodes. Codes are compared as DequantizeLinear decodes them.
Initializers with new or lost infinities and NaN come first, then those that differ most.
Exit status: 0 equal, 1 different, 2 failed.)";

class Listing {
 public:
  explicit Listing(bool all) : all_(all) {}
  void line(const std::string& text) {
    if (all_ || lines_ < most_listed_lines) text_ += "  " + text + "\n";
    ++lines_;
  }
  // Returns the title and the lines; "" without lines.
  std::string take(std::string_view title) {
    if (lines_ == 0) return {};
    std::string text = fmt::format("{}\n{}", title, text_);
    if (!all_ && lines_ > most_listed_lines) {
      text += fmt::format("  and {} more; --all lists them\n", lines_ - most_listed_lines);
    }
    text_.clear();
    lines_ = 0;
    return text;
  }

 private:
  bool all_;
  std::size_t lines_ = 0;
  std::string text_;
};

std::string initializer_table(const tensorcast::onnx::DiffOutcome& outcome, bool all) {
  std::vector<const TensorDifference*> changed;
  for (const TensorDifference& tensor : outcome.initializers) {
    if (!tensor.equal || !tensor.in_a || !tensor.in_b) changed.push_back(&tensor);
  }
  std::stable_sort(changed.begin(), changed.end(), [](const TensorDifference* x, const TensorDifference* y) {
    if (x->compared != y->compared) return !x->compared;
    return x->compared && is_worse(*x, *y);
  });
  return differences_table("initializer", changed, all, "?");
}

std::string diff_text(const tensorcast::onnx::DiffOutcome& outcome, bool all) {
  std::string text;
  if (outcome.ir_version_a != outcome.ir_version_b) {
    text += fmt::format("IR version: {} -> {}\n", outcome.ir_version_a, outcome.ir_version_b);
  }
  Listing listing(all);
  for (const auto& opset : outcome.opsets) {
    listing.line(
        fmt::format("{}: {} -> {}", opset.domain.empty() ? "ai.onnx" : printable(opset.domain), opset.a, opset.b));
  }
  text += listing.take("opsets");
  for (const auto& op : outcome.operators) listing.line(fmt::format("{}: {} -> {}", printable(op.op_type), op.a, op.b));
  text += listing.take("nodes by operator");
  for (const auto& value : outcome.values) {
    const std::string change = value.a.empty()   ? fmt::format("only in B, {}", value.b)
                               : value.b.empty() ? fmt::format("only in A, {}", value.a)
                                                 : fmt::format("{} -> {}", value.a, value.b);
    listing.line(fmt::format("{}: {}", place_text(value.scope, value.name), change));
  }
  text += listing.take("types of values");
  const auto list = [&](const std::vector<CastInfo>& casts, std::string_view title) {
    for (const CastInfo& cast : casts) {
      listing.line(fmt::format("{}: {} -> {} of \"{}\"", place_text(cast.scope, cast.name), type_text(cast.from),
                               type_text(cast.to), printable(cast.input)));
    }
    text += listing.take(title);
  };
  list(outcome.casts_only_a, "Casts only in A");
  list(outcome.casts_only_b, "Casts only in B");
  text += initializer_table(outcome, all);
  if (!text.empty()) text += "\n";
  const auto equal = static_cast<std::size_t>(
      std::count_if(outcome.initializers.begin(), outcome.initializers.end(),
                    [](const TensorDifference& tensor) { return tensor.in_a && tensor.in_b && tensor.equal; }));
  return text +
         fmt::format(
             "{}: {} with other types or in one model only, {} and {} only in A and B, {} of {} equal; attributes and "
             "inputs of nodes are not compared\n",
             outcome.equal ? "equal" : "different", count_text(outcome.values.size(), "value"),
             count_text(outcome.casts_only_a.size(), "Cast"), outcome.casts_only_b.size(), equal,
             count_text(outcome.initializers.size(), "initializer"));
}

Json casts_json(const std::vector<CastInfo>& casts) {
  Json list = Json::array();
  for (const CastInfo& cast : casts) {
    list.push_back({{"name", cast.name},
                    {"scope", cast.scope},
                    {"input", cast.input},
                    {"from", type_json(cast.from)},
                    {"to", type_json(cast.to)}});
  }
  return list;
}

Json onnx_diff_json(const tensorcast::onnx::DiffOutcome& outcome) {
  Json initializers = Json::array();
  for (const TensorDifference& tensor : outcome.initializers) {
    Json entry = {{"name", tensor.name}, {"in_a", tensor.in_a}, {"in_b", tensor.in_b}};
    if (tensor.in_a) entry["from"] = type_json(tensor.from);
    if (tensor.in_b) entry["to"] = type_json(tensor.to);
    entry["equal"] = tensor.in_a && tensor.in_b && tensor.equal;
    if (tensor.in_a && tensor.in_b) {
      entry["decoded"] = tensor.decoded;
      entry["undecodable"] = tensor.undecodable;
    }
    if (tensor.compared) add_difference(entry, tensor);
    initializers.push_back(std::move(entry));
  }
  return {{"equal", outcome.equal},
          {"ir_version", {{"a", outcome.ir_version_a}, {"b", outcome.ir_version_b}}},
          {"opsets", value_json(outcome.opsets)},
          {"operators", value_json(outcome.operators)},
          {"values", value_json(outcome.values)},
          {"casts_only_a", casts_json(outcome.casts_only_a)},
          {"casts_only_b", casts_json(outcome.casts_only_b)},
          {"initializers", initializers}};
}

int diff_onnx(const OnnxDiffArguments& arguments) {
  set_failed_status(exit_not_compared);
  const CancellableWork cancellable;
  const auto outcome = tensorcast::onnx::diff(arguments.request);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text(onnx_diff_json(*outcome)));
  } else if (!arguments.quiet) {
    print(diff_text(*outcome, arguments.all));
  }
  return outcome->equal ? exit_done : exit_differs;
}

}  // namespace

void add_onnx_diff(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("diff", "Compare types, Casts, opsets and initializers of two models");
  command.footer(onnx_diff_examples);
  const auto arguments = std::make_shared<OnnxDiffArguments>();
  command.add_option("A", arguments->request.a, "an ONNX model")->required();
  command.add_option("B", arguments->request.b, "the one to compare it with")->required();
  command.add_flag("--headers-only", arguments->request.headers_only, "compare no elements of initializers");
  command.add_flag("--all", arguments->all, "list everything, not only the first 20 of a kind");
  add_json(command, arguments->json);
  command.add_flag("-q,--quiet", arguments->quiet, "print nothing; the exit status tells whether A and B are equal");
  command.callback([arguments, &work] { work = [arguments] { return diff_onnx(*arguments); }; });
}

}  // namespace tcast
