// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/external_locations.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/model_folder.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::models::onnx {
namespace {

class LocationReader {
 public:
  explicit LocationReader(const io::InputFile& file) : wire_(file, 0, file.size()), budget_(file.size()) {}

  Result<void> take_graph(const Graph& graph) {
    for (const Initializer& initializer : graph.initializers) {
      if (!initializer.external) continue;
      TRY(take_tensor(initializer.tensor));
    }
    for (const Node& node : graph.nodes) {
      for (const Attribute& attribute : node.attributes) {
        if (attribute.tensor_is_external) {
          TRY(take_tensor(attribute.tensor));
        }
        for (const auto& inner : attribute.graphs) {
          TRY(take_graph(*inner));
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::set<std::string>& locations() { return locations_; }

 private:
  Result<void> take_tensor(ByteRange tensor) {
    using formats::onnx::EntryField;
    using formats::onnx::Field;
    const WireField message{.type = protozero::pbf_wire_type::length_delimited,
                            .begin = tensor.offset,
                            .offset = tensor.offset,
                            .length = tensor.length};
    return each_field_of(wire_, message, [&](const WireField& field) -> Result<void> {
      if (static_cast<Field>(field.number) != Field::external_data) return {};
      std::string key;
      std::string value;
      Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
        const auto number = static_cast<EntryField>(part.number);
        if (number != EntryField::key && number != EntryField::value) return {};
        TRY(expect(part, protozero::pbf_wire_type::length_delimited));
        TRY(budget_.take(part.length));
        std::string text = TRY(wire_.text(part.length));
        (number == EntryField::key ? key : value) = std::move(text);
        return {};
      });
      if (done && key == "location") locations_.insert(std::move(value));
      return done;
    });
  }

  WireReader wire_;
  io::MemoryBudget budget_;
  std::set<std::string> locations_;
};

}  // namespace

Result<std::set<std::string>> external_locations(const io::InputFile& file, const Model& model) {
  LocationReader reader(file);
  TRY(reader.take_graph(*model.graph));
  for (const auto& function : model.functions) {
    TRY(reader.take_graph(function->body));
  }
  return std::move(reader.locations());
}

Result<void> check_apart_from_data(const std::string& model, const std::set<std::string>& locations,
                                   const std::string& output) {
  if (output.empty()) return {};
  std::vector<PathUse> data;
  for (const std::string& location : locations) {
    data.push_back({.path = (folder_of(model) / location).string(), .noun = "external data of the model"});
  }
  return check_apart({.path = output, .noun = "output"}, data);
}

Result<void> copy_external_files(const io::InputFile& file, const std::set<std::string>& locations,
                                 ExternalFiles& copies) {
  for (const std::string& location : locations) {
    io::InputFile data = TRY(io::InputFile::open_below(folder_of(file.path()).string(), location));
    const auto source = std::make_shared<const io::InputFile>(std::move(data));
    copies.add_file(location, source->size(),
                    [source](io::OutputFile& target) { return copy_range(*source, 0, source->size(), target); });
  }
  return {};
}

}  // namespace tensorcast::models::onnx
