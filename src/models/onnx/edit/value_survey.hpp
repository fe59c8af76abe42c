// Finds where a value of an ONNX model is defined, and which names are taken: one pass over the whole model.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"

namespace tensorcast::models::onnx {

// A graph is identified by the offset of its contents.
struct Definition {
  std::uint64_t graph = 0;
  bool in_main_graph = false;
  std::uint64_t after = 0;  // offset for a node that reads the value
};

struct ValueSurvey {
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;                  // of the standard operators; 0: not imported
  bool has_opsets = false;                 // any at all
  std::vector<Definition> definitions;     // at most one in a graph
  std::optional<std::uint64_t> data_type;  // of the value, if the model has it
  bool is_tensor = true;                   // unless the model says otherwise
  bool has_external_data = false;
  std::set<std::string, std::less<>> value_names;  // only names of interest
  std::set<std::string, std::less<>> node_names;
};

// Names of interest begin with one of `prefixes`, so that memory does not grow with the model.
// Errors: parse, unsupported (graphs nested too deep), io.
[[nodiscard]] Result<ValueSurvey> survey_value(const io::InputFile& file, const std::string& value,
                                               const std::vector<std::string>& prefixes);

// Reports whether `field` holds exactly `text`; other fields are not read.
[[nodiscard]] Result<bool> field_equals(formats::onnx::WireReader& wire, const formats::onnx::WireField& field,
                                        std::string_view text);

}  // namespace tensorcast::models::onnx
