// SPDX-License-Identifier: Apache-2.0
// The types that every version of every operator of ONNX takes and gives, and those of the operators into which ONNX
// Runtime fuses transformers: schema_table.cpp, generated from onnx and onnxruntime.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {

// schema_table.cpp. `schema_type_sets` are words, each a set of types: `t`, `s`, `o`, `q` (tensor, sequence, optional
// tensor, optional sequence) and the mask of element types in hexadecimal, where bit N is TensorProto.DataType N; `x`
// stands for maps and others. `schema_signatures` are words: @DOMAIN, then operators by name, each followed by its
// versions `SINCE:INPUTS>OUTPUTS`, with `+` before the colon if it keeps the meaning of every node of the version
// before, or `SINCE:!` for a removed operator. A parameter is the letter of its type variable,
// at first sight with the number of its set, and `?` (optional), `*` (many of one type), `#` (many of any types).
extern const std::string_view schema_table_version;
extern const int schema_table_opset;
extern const std::string_view schema_type_sets;
extern const std::string_view schema_signatures;

// Reports whether a set of types has one: bit N stands for TensorProto.DataType N.
[[nodiscard]] constexpr bool has_type(std::uint64_t types, DType dtype) noexcept {
  const auto number = static_cast<std::uint32_t>(dtype);
  return number < 64 && (types >> number & 1) != 0;
}

struct TypeSet {
  std::uint64_t tensors = 0;  // bit N: TensorProto.DataType N
  std::uint64_t sequences = 0;
  std::uint64_t optionals = 0;
  std::uint64_t optional_sequences = 0;
  bool others = false;
};

enum class Arity : std::uint8_t { single, optional, variadic, heterogeneous };

struct Parameter {
  std::uint8_t variable = 0;  // index in Schema::variables
  Arity arity = Arity::single;
};

struct Schema {
  int since = 0;
  bool removed = false;
  bool keeps_meaning = false;  // every node of the version before is valid, and means the same
  std::vector<TypeSet> variables;
  std::vector<Parameter> inputs;
  std::vector<Parameter> outputs;

  // Returns the parameter of input or output `index` of a node; null if the operator has none there.
  [[nodiscard]] static const Parameter* at(const std::vector<Parameter>& formal, std::size_t index) noexcept {
    if (index < formal.size()) return &formal[index];
    if (formal.empty() || formal.back().arity < Arity::variadic) return nullptr;
    return &formal.back();
  }
};

// Returns the operator's version in `opset`; null if it has none. `domain` is "" for the standard operators.
[[nodiscard]] const Schema* find_schema(std::string_view domain, std::string_view op_type, std::int64_t opset);

// Reports whether a node of opset `from` is valid and means the same in the later opset `to`; unknown operators do.
[[nodiscard]] bool keeps_meaning(std::string_view domain, std::string_view op_type, std::int64_t from, std::int64_t to);

}  // namespace tensorcast::models::onnx
