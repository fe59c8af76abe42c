// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an IR: the XML, then a line of NULs, then the weights. Errors are allowed, crashes are not.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "models/openvino_ir/ir_graph.hpp"

using namespace tensorcast::models::openvino_ir;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(input.find(std::string_view("\0\0", 2)), input.size());
  const std::string_view weights_bytes = input.substr(std::min(cut + 2, input.size()));
  const tensorcast::Result<Document> document = parse_document(input.substr(0, cut));
  if (!document) return 0;
  Weights weights([&]() -> tensorcast::Result<Weights::Source> {
    return Weights::Source{
        .size = weights_bytes.size(), .path = "weights", .read = [&](std::uint64_t offset, auto out) {
          if (offset > weights_bytes.size() || out.size() > weights_bytes.size() - offset) std::abort();
          if (!out.empty()) std::memcpy(out.data(), weights_bytes.data() + offset, out.size());
          return tensorcast::Result<void>();
        }};
  });
  const tensorcast::Result<tensorcast::Graph> graph = build_graph(*document, weights);
  if (!graph) {
    if (graph.error().message.empty()) std::abort();
    return 0;
  }
  // A graph that was read compiles, or fails with a message.
  const auto program = tensorcast::Program::compile(*graph);
  if (!program && program.error().message.empty()) std::abort();
  return 0;
}
