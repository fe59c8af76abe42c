// SPDX-License-Identifier: Apache-2.0
// The numbers of a model's tensors as its nodes compute with them: codes as DequantizeLinear decodes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/onnx/tensor_proto_reader.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/view/shown_tensors.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

// Scales or zero points of codes.
struct LinearNumbers {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape = {};
  std::vector<float> numbers = {};  // each type of scales and zero points fits
};

// How a DequantizeLinear decodes a tensor, element by element.
class CodeDecoder {
 public:
  // Returns nothing if the shapes or types do not fit each other. `zeros`: nothing: all are zero.
  [[nodiscard]] static std::optional<CodeDecoder> make(const formats::TensorInfo& codes, const DequantizeLinearOp& node,
                                                       LinearNumbers scales, std::optional<LinearNumbers> zeros);
  // Decodes `count` elements from `first` on, whose codes are in `raw`. Errors: those of DequantizeLinear.
  [[nodiscard]] Result<void> decode(std::uint64_t first, std::size_t count, std::span<const std::byte> raw,
                                    std::vector<double>& numbers) const;

 private:
  [[nodiscard]] Result<Tensor> gathered(const LinearNumbers& from, std::uint64_t first, std::size_t count) const;
  [[nodiscard]] std::size_t place_of(std::uint64_t element) const noexcept;

  std::shared_ptr<const Program> program_;  // of one node, on rows
  DType codes_ = DType::undefined;
  LinearNumbers scales_;
  std::optional<LinearNumbers> zeros_;
  bool is_single_ = true;
  std::uint64_t length_ = 1, inner_ = 1;       // of the axis, and of the elements behind it
  std::uint64_t block_ = 0, block_count_ = 0;  // along the axis; 0: a scale for each index of the axis
};

// Reads a tensor in blocks.
class ShownNumbers {
 public:
  enum class Meaning : std::uint8_t {
    elements,
    decoded,  // by all DequantizeLinear nodes that take the tensor, in the same way
    unknown,  // codes that nodes decode in several ways, with scales that are not constants, or inside an operator
  };
  ShownNumbers(std::unique_ptr<formats::onnx::TensorProtoReader> reader, Meaning meaning,
               std::optional<CodeDecoder> decoder)
      : reader_(std::move(reader)), meaning_(meaning), decoder_(std::move(decoder)) {}

  [[nodiscard]] const formats::TensorInfo& info() const { return reader_->tensors().front(); }
  [[nodiscard]] Meaning meaning() const noexcept { return meaning_; }
  // Loads `count` elements from `first` on, a multiple of 8, as float64: as stored, and as nodes compute with them.
  // Errors: parse, unsupported, io.
  [[nodiscard]] Result<void> load(std::uint64_t first, std::size_t count, std::vector<double>& stored,
                                  std::vector<double>& numbers);

 private:
  std::unique_ptr<formats::onnx::TensorProtoReader> reader_;
  Meaning meaning_;
  std::optional<CodeDecoder> decoder_;
  std::vector<std::byte> raw_;
};

// Opens the tensors of a model.
class ShownNumbersOf {
 public:
  // Both outlive it.
  ShownNumbersOf(const Model& model, const ShownTensors& tensors);

  using Reader = std::unique_ptr<formats::onnx::TensorProtoReader>;

  // `reader`: of the tensor. Reads the scales of codes. Errors: parse, unsupported, io.
  [[nodiscard]] Result<ShownNumbers> open(const ShownTensor& tensor, Reader reader) const {
    return open(tensor, std::move(reader), 0);
  }

 private:
  void find_codes(const Node& node);
  using Decoder = std::optional<CodeDecoder>;  // nothing: unknown

  [[nodiscard]] Result<ShownNumbers> open(const ShownTensor& tensor, Reader reader, int depth) const;
  [[nodiscard]] Result<Decoder> decoder_of(const formats::TensorInfo& codes, const Node& node, int depth) const;
  [[nodiscard]] Result<std::optional<LinearNumbers>> constant(ValueId id, int depth) const;

  const Model& model_;
  std::unordered_map<ValueId, const ShownTensor*> tensors_;
  std::unordered_multimap<ValueId, const Node*> decoding_;  // nodes by the value of their codes
  std::unordered_set<ValueId> inner_codes_;                 // codes that operators decode, or that nodes move before
};

}  // namespace tensorcast::models::onnx
