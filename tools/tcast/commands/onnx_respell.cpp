// SPDX-License-Identifier: Apache-2.0
// tcast onnx respell: products with 4-bit codes as MatMulNBits, or as MatMul behind DequantizeLinear.
#include <array>
#include <map>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::onnx::MatMulSpelling;
using tensorcast::onnx::RespellOutcome;
using tensorcast::onnx::RespellRequest;

constexpr std::array<std::string_view, 2> spelling_words = {"matmulnbits", "qdq"};

struct RespellArguments {
  RespellRequest request;
  std::string to;
  bool json = false;
  bool quiet = false;
};

constexpr const char* respell_examples = R"(Examples:
  tcast onnx convert model.onnx -o int4.onnx --weights-only int4-group --group-size 32
  tcast onnx respell int4.onnx -o nbits.onnx --to matmulnbits
      MatMul behind a DequantizeLinear of int4 blocks becomes MatMulNBits
  tcast onnx respell nbits.onnx -o standard.onnx --to qdq
      and back, which every runtime of ONNX can read
Codes, scales and zero points stay the same numbers; no weight is quantized. What stays as it is, is listed with the
reason. New tensors are in the model, which ends at 2 GiB; external data stays where it is, or its files are copied if
OUT is in another folder. For qdq, an older opset rises to 21 where no other node changes by that.)";

int respell(const RespellArguments& arguments) {
  const RespellRequest& request = arguments.request;
  const CancellableWork cancellable;
  const Result<RespellOutcome> outcome = tensorcast::onnx::respell(request);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    nlohmann::ordered_json left = nlohmann::ordered_json::array();
    for (const auto& weight : outcome->left) left.push_back({{"name", weight.name}, {"reason", weight.reason}});
    print(json_text({{"input", request.input},
                     {"output", request.output},
                     {"respelled", outcome->respelled},
                     {"left", std::move(left)},
                     {"opset_before", outcome->opset_before},
                     {"opset_after", outcome->opset_after}}));
  } else if (!arguments.quiet) {
    std::string text = fmt::format("{}: {}{}\n", printable(request.output),
                                   outcome->respelled == 0
                                       ? "0 changes"
                                       : count_text(outcome->respelled, "product") + " respelled as " + arguments.to,
                                   outcome->opset_after == outcome->opset_before
                                       ? std::string()
                                       : fmt::format(", opset {} -> {}", outcome->opset_before, outcome->opset_after));
    for (const auto& weight : outcome->left) {
      text += fmt::format("  {} stays: {}\n", printable(weight.name), weight.reason);
    }
    print(text);
  }
  return exit_done;
}

}  // namespace

void add_onnx_respell(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("respell", "Products with 4-bit codes as MatMulNBits, or as standard ONNX");
  command.footer(respell_examples);
  const auto arguments = std::make_shared<RespellArguments>();
  RespellRequest& request = arguments->request;
  command.add_option("MODEL", request.input, "the ONNX model")->required();
  command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL")
      ->required()
      ->option_text("OUT");
  command.add_option("--to", arguments->to, "matmulnbits (ONNX Runtime's) or qdq (DequantizeLinear and MatMul)")
      ->required()
      ->option_text("SPELLING")
      ->transform(one_of(spelling_words));
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] {
    arguments->request.to = arguments->to == "qdq" ? MatMulSpelling::qdq : MatMulSpelling::matmulnbits;
    work = [arguments] { return respell(*arguments); };
  });
}

}  // namespace tcast
