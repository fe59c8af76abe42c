// SPDX-License-Identifier: Apache-2.0
// OpenVINO IR: `NAME.xml` with the layers and `NAME.bin` beside it with the constants.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "models/model_format.hpp"
#include "models/openvino_ir/ir_document.hpp"
#include "models/openvino_ir/ir_graph.hpp"
#include "models/openvino_ir/ir_weights.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

constexpr std::string_view extensions[] = {".xml"};

bool recognizes(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  return text.starts_with("<?xml") || text.starts_with("<net");
}

// Opens the .bin beside the .xml. A symbolic link fails, as for every file that a model names.
Result<Weights::Source> open_weights(const std::string& path) {
  const std::size_t name = path.find_last_of('/') + 1;
  const std::size_t dot = path.find_last_of('.');
  const std::string stem = path.substr(name, dot == std::string::npos || dot < name ? path.size() : dot - name);
  Result<io::InputFile> opened =
      io::InputFile::open_below(name == 0 ? "." : path.substr(0, std::max<std::size_t>(name - 1, 1)), stem + ".bin");
  if (!opened) {
    opened.error().hint = "the constants of an IR lie in the .bin file beside its .xml";
    return std::move(opened).error();
  }
  const auto file = std::make_shared<const io::InputFile>(std::move(*opened));
  return Weights::Source{.size = file->size(), .path = file->path(), .read = [file](std::uint64_t offset, auto bytes) {
                           return file->read(offset, bytes);
                         }};
}

Result<Graph> load(const std::string& path, const LoadModelOptions& /*options*/) {
  const io::InputFile file = TRY(io::InputFile::open(path));
  if (file.size() > max_xml_bytes) {
    return unsupported(fmt::format("the XML has {} bytes; at most {} are read", file.size(), max_xml_bytes),
                       "weights belong into the .bin file");
  }
  std::string xml(file.size(), '\0');
  TRY(file.read(0, std::as_writable_bytes(std::span(xml))));
  Document document = TRY(parse_document(xml));
  xml = {};
  Weights weights([&] { return open_weights(path); });
  return build_graph(document, weights);
}

}  // namespace
}  // namespace tensorcast::models::openvino_ir

namespace tensorcast::models {

constexpr ModelFormat openvino_ir_format = {.name = "openvino_ir",
                                            .extensions = openvino_ir::extensions,
                                            .recognizes = openvino_ir::recognizes,
                                            .load = openvino_ir::load};

}  // namespace tensorcast::models
