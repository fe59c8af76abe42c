// SPDX-License-Identifier: Apache-2.0
// Writes a model with the types of a PrecisionPlan: what does not change is copied byte for byte.
#pragma once

#include <string>
#include <vector>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/input_file.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/precision/cast_elision.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/precision/tensor_conversion.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

// Where initializers go.
struct TensorPlacement {
  // Larger tensors, and tensors that were external, are written to the external file.
  std::uint64_t inline_limit = formats::onnx::max_message_bytes;
  bool only_larger = false;        // a tensor that was external is written there only if it is larger
  bool all_inside = false;         // no tensor is external
  bool per_tensor = false;         // each external tensor has its own file
  bool leave_external = false;     // external tensors that do not change keep their place
  std::uint64_t alignment = 4096;  // in external files
};

class ModelWriter {
 public:
  struct Counts {
    std::size_t casts_added = 0;
    std::size_t initializers_converted = 0;
    std::uint64_t initializer_bytes_before = 0;
    std::uint64_t initializer_bytes_after = 0;
  };

  // The arguments outlive the writer.
  ModelWriter(const io::InputFile& file, const PrecisionPlan& plan, const CastElision& elision, ExternalFiles& external,
              const TensorPlacement& placement);

  // Errors: parse, unsupported, io.
  [[nodiscard]] Result<WireRope> model();
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  // A value in another type than the one in which it is made.
  struct Form {
    DType element = DType::undefined;
    std::string name = {};
    std::string cast_name = {};
  };
  // Names of the scales of a quantized weight; empty: none.
  struct ScaleNames {
    std::string stored = {};
    std::string zeros = {};    // the zero points
    std::string numbers = {};  // in float32, where another type is stored
    std::string tensor = {};   // the scale of the tensor
    std::string node = {};     // that makes `numbers`
    std::string wide = {};     // the weight in float32, if it then becomes a 16-bit type
    std::string wide_node = {};
  };
  struct Forms {
    std::string produced;           // name
    std::vector<Form> others = {};  // other types in which it is used
  };

  void name_forms();
  void need_other(ValueId id, DType element);
  [[nodiscard]] const std::string& name_in(ValueId id, DType element) const;
  [[nodiscard]] bool keeps_name(ValueId id) const;
  void add_casts(WireRope& rope, std::uint32_t field, ValueId id);
  [[nodiscard]] std::string cast_node(ValueId id, const Form& form) const;
  [[nodiscard]] ScaleNames name_scales(const std::string& own, const Quantization& quantization, FreshNames& values,
                                       FreshNames& nodes) const;
  void add_dequantize(WireRope& rope, std::uint32_t field, ValueId id, const Form& form);
  [[nodiscard]] TensorChange change_of(ValueId id, DType element) const;

  // Each function replaces what changes in the message around it.
  [[nodiscard]] Result<void> change_opsets(const std::vector<Opset>& opsets, Splice& splice);
  [[nodiscard]] Result<void> retype(const Declaration& declared, DType element, const std::string& shown_name,
                                    Splice& splice);
  [[nodiscard]] Result<void> nodes(const Graph& graph, std::uint32_t number, Splice& splice);
  [[nodiscard]] Result<void> graph(const Graph& graph, Splice& around);
  [[nodiscard]] Result<void> function(const Function& function, Splice& splice);
  [[nodiscard]] Result<void> node(const Node& node, Splice& around);
  [[nodiscard]] Result<void> attributes(const Node& node, Splice& splice);
  [[nodiscard]] Result<WireRope> constant_tensor(const Node& node, const Attribute& attribute, DType to);
  [[nodiscard]] Result<std::vector<WireRope>> scales_of(ValueId id, ByteRange tensor, ExternalFiles* external);
  [[nodiscard]] Result<void> add_scale_constants(ValueId id, ByteRange tensor, std::uint32_t field, WireRope& rope);
  [[nodiscard]] bool has_scale_initializers() const noexcept { return plan_.model().ir_version >= 4; }
  [[nodiscard]] Result<void> initializer(const Initializer& initializer, Splice& splice);
  // Returns where a tensor of so many bytes goes; null: into the model.
  [[nodiscard]] ExternalFiles* place_of(const Initializer& initializer, std::uint64_t bytes) const;
  [[nodiscard]] Result<WireRope> sparse_tensor(const WireField& field, const TensorChange& change);

  const io::InputFile& file_;
  const PrecisionPlan& plan_;
  const CastElision& elision_;
  ExternalFiles& external_;
  TensorPlacement placement_;
  std::vector<Forms> forms_;             // by value
  std::vector<DType> output_elements_;   // by value: the other type in which an output of the model has its name
  std::vector<ScaleNames> scale_names_;  // by value
  Counts counts_;
};

}  // namespace tensorcast::models::onnx
