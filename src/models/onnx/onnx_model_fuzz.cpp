// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an ONNX model, and edits it. An edited model must be readable.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/memory_budget.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tensorcast;
  static const int fd = ::memfd_create("model", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  (void)load_model(path, {.format = "onnx", .mdf_semantics = {}});

  static const std::string folder = [] {
    std::string pattern = "/tmp/onnx-model-fuzz-XXXXXX";
    return std::string(::mkdtemp(pattern.data()));
  }();
  const std::string edited = folder + "/edited.onnx";
  for (const char* tensor : {"x", "y"}) {
    const AddCastRequest request{.input = path,
                                 .output = edited,
                                 .tensor = tensor,
                                 .to = DType::float16,
                                 .node_name = {},
                                 .output_name = "new",
                                 .saturate = true,
                                 .overwrite = true};
    if (!add_cast(request)) continue;
    // A graph that was valid still is, and has the new value.
    const Result<io::InputFile> file = io::InputFile::open(edited);
    io::MemoryBudget budget(file->size());
    const auto model = models::onnx::parse_model(*file, budget);
    if (!model) std::abort();
    std::ptrdiff_t count = 0;
    models::onnx::each_graph(*(*model)->graph, [&](const models::onnx::Graph& graph) {
      for (const models::onnx::Node& node : graph.nodes) {
        count += std::ranges::count(node.output_names, "new");
      }
    });
    if (count != 1) std::abort();
  }
  ::unlink(edited.c_str());
  return 0;
}
