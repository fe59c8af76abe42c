// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an MDF model: the first byte selects syntax and semantics. Errors are allowed, crashes are
// not.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/mdf/mdf_graph.hpp"
#include "models/mdf/mdf_model.hpp"
#include "models/mdf/mdf_tree.hpp"

using namespace tensorcast;
using namespace tensorcast::models::mdf;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr Syntax syntaxes[] = {Syntax::json, Syntax::yaml, Syntax::bson};
  LoadModelOptions options;
  if (data[0] / 3 % 2 != 0) options.mdf_semantics = MdfSemantics::mdf_reference;
  if (data[0] / 6 % 2 != 0) options.input_type = [](std::string_view) { return DType::float32; };
  const Result<Tree> tree = parse_tree(syntaxes[data[0] % 3], text);
  if (!tree) return 0;
  const Result<MdfModel> model = read_model(*tree);
  if (!model) return 0;
  const Result<Graph> graph = build_graph(*model, options);
  if (!graph) {
    if (graph.error().message.empty()) std::abort();
    return 0;
  }
  // A graph that was read compiles, or fails with a message.
  const auto program = Program::compile(*graph);
  if (!program && program.error().message.empty()) std::abort();
  return 0;
}
