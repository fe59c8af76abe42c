// SPDX-License-Identifier: Apache-2.0
// ModECI MDF: graphs of nodes with ports and parameters, as JSON, YAML or BSON.

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "models/mdf/mdf_graph.hpp"
#include "models/mdf/mdf_model.hpp"
#include "models/mdf/mdf_tree.hpp"
#include "models/model_format.hpp"

namespace tensorcast::models::mdf {
namespace {

constexpr std::string_view extensions[] = {".json", ".yaml", ".yml", ".bson"};

// JSON and YAML may hold anything, so only a file that contains "ModECI MDF" is recognized.
bool recognizes(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  return text.find("ModECI MDF") != std::string_view::npos;
}

// Detects the syntax by content: BSON begins with its own length, JSON with a brace.
Syntax syntax_of(std::string_view text) {
  if (text.size() >= 5) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    if (length == text.size() && text.back() == '\0') return Syntax::bson;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? Syntax::json : Syntax::yaml;
}

Syntax syntax_of(const std::string& path, std::string_view text) {
  if (path.ends_with(".json")) return Syntax::json;
  if (path.ends_with(".bson")) return Syntax::bson;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return Syntax::yaml;
  return syntax_of(text);
}

Result<Graph> load(const std::string& path, const LoadModelOptions& options) {
  const io::InputFile file = TRY(io::InputFile::open(path));
  if (file.size() > max_file_bytes) {
    return unsupported(fmt::format("the file has {} bytes; at most {} are read", file.size(), max_file_bytes));
  }
  std::string text(file.size(), '\0');
  TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  const Tree tree = TRY(parse_tree(syntax_of(path, text), text));
  text = {};
  const MdfModel model = TRY(read_model(tree));
  return build_graph(model, options);
}

}  // namespace
}  // namespace tensorcast::models::mdf

namespace tensorcast::models {

constexpr ModelFormat mdf_format = {
    .name = "mdf", .extensions = mdf::extensions, .recognizes = mdf::recognizes, .load = mdf::load};

}  // namespace tensorcast::models
