// SPDX-License-Identifier: Apache-2.0
// tcast diff: compares the tensors of two checkpoints or files.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "flags/convert_rules.hpp"
#include "flags/options.hpp"
#include "print/difference_text.hpp"
#include "print/report_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"
#include "process/terminal.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

using tensorcast::DiffOutcome;
using tensorcast::name;
using tensorcast::TensorDifference;

constexpr const char* diff_examples = R"(Examples:
  tcast diff folder/ folder-bf16/              what changed type, by how much values differ, what is missing
  tcast diff a.safetensors b.safetensors --all
  tcast diff model.pt model.gguf               files of any format that tcast reads
  tcast diff A B --headers-only                names, types and shapes only; reads no elements
  tcast diff A B --quiet && echo equal         says it by its exit status alone
Differences are those of the values, compared as float64. Tensors with new or lost infinities and NaN come first, then
those that differ most.
Exit status: 0 equal, types and values; 1 different; 2 failed.)";

struct DiffArguments {
  tensorcast::DiffRequest request;
  bool all = false;
  bool json = false;
  bool quiet = false;
};

bool differs(const TensorDifference& tensor) {
  return !tensor.in_a || !tensor.in_b || tensor.from_shape != tensor.to_shape || tensor.from != tensor.to ||
         (tensor.compared ? tensor.different != 0 : !tensor.equal);
}

// Missing tensors first, then other shapes, then what cannot be compared, then the worst.
bool comes_before(const TensorDifference* a, const TensorDifference* b) {
  const auto group = [](const TensorDifference& tensor) {
    if (!tensor.in_a || !tensor.in_b) return 0;
    if (tensor.from_shape != tensor.to_shape) return 1;
    return tensor.compared ? 3 : 2;
  };
  if (group(*a) != group(*b)) return group(*a) < group(*b);
  return a->compared && b->compared && is_worse(*a, *b);
}

std::string text_of(const DiffOutcome& outcome, bool all, bool headers_only) {
  std::vector<const TensorDifference*> changed;
  std::size_t equal = 0;
  std::size_t types = 0;
  std::size_t only_a = 0;
  std::size_t only_b = 0;
  for (const TensorDifference& tensor : outcome.tensors) {
    only_a += tensor.in_b ? 0 : 1;
    only_b += tensor.in_a ? 0 : 1;
    types += tensor.in_a && tensor.in_b && tensor.from != tensor.to ? 1 : 0;
    if (differs(tensor)) {
      changed.push_back(&tensor);
    } else {
      ++equal;
    }
  }
  std::stable_sort(changed.begin(), changed.end(), comes_before);
  std::string text = differences_table("tensor", changed, all, name(tensorcast::DType::undefined));
  if (!text.empty()) text += "\n";
  text += fmt::format("{}: {} {}, {} of another type", count_text(outcome.tensors.size(), "tensor"), grouped(equal),
                      headers_only ? "with equal headers" : "equal", grouped(types));
  if (only_a != 0) text += fmt::format(", {} only in A", grouped(only_a));
  if (only_b != 0) text += fmt::format(", {} only in B", grouped(only_b));
  return text + "\n";
}

Json json_of(const DiffOutcome& outcome) {
  Json tensors = Json::array();
  for (const TensorDifference& tensor : outcome.tensors) {
    Json entry = {{"name", tensor.name}, {"in_a", tensor.in_a}, {"in_b", tensor.in_b}};
    if (tensor.in_a) entry["from"] = name(tensor.from);
    if (tensor.in_a) entry["from_shape"] = tensor.from_shape;
    if (tensor.in_b) entry["to"] = name(tensor.to);
    if (tensor.in_b) entry["to_shape"] = tensor.to_shape;
    if (tensor.in_a && tensor.in_b) entry["equal"] = !differs(tensor);
    if (tensor.compared) add_difference(entry, tensor);
    tensors.push_back(std::move(entry));
  }
  return {{"tensors", std::move(tensors)}};
}

int diff(DiffArguments& arguments) {
  set_failed_status(exit_not_compared);
  tensorcast::DiffRequest& request = arguments.request;
  const CancellableWork cancellable;
  const tensorcast::Result<DiffOutcome> outcome = with_progress(request, arguments.quiet, tensorcast::diff_checkpoints);
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) {
    return report_interruption("the rest was not compared");
  }
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text(json_of(*outcome)));
  } else if (!arguments.quiet) {
    print(text_of(*outcome, arguments.all, request.headers_only));
  }
  return std::ranges::any_of(outcome->tensors, differs) ? exit_differs : exit_done;
}

}  // namespace

void add_diff(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("diff", "Compare the tensors of two checkpoints or files");
  command.footer(diff_examples);
  const auto arguments = std::make_shared<DiffArguments>();
  command.add_option("A", arguments->request.a, "folder, index, or file of any format")->required();
  command.add_option("B", arguments->request.b, "the one to compare it with")->required();
  add_patterns(command, "--include", arguments->request.include, "only tensors whose name matches; repeatable");
  add_output_filter(command, arguments->request.filter);
  command.add_flag("--headers-only", arguments->request.headers_only, "compare names, types and shapes only");
  command.add_flag("--all", arguments->all, "list all tensors that differ, not only the worst 20");
  add_json(command, arguments->json);
  command.add_flag("-q,--quiet", arguments->quiet, "print nothing; the exit status tells whether A and B are equal");
  command.callback([arguments, &work] { work = [arguments] { return diff(*arguments); }; });
}

}  // namespace tcast
