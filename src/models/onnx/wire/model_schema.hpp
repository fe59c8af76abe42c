// SPDX-License-Identifier: Apache-2.0
// Field numbers of the messages in an ONNX model. https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#pragma once

#include <cstdint>

namespace tensorcast::models::onnx {

namespace model_field {
enum : std::uint32_t {
  ir_version = 1,
  graph = 7,
  opset_import = 8,
  metadata_props = 14,
  training_info = 20,
  functions = 25
};
}
namespace opset_field {
enum : std::uint32_t { domain = 1, version = 2 };
}
namespace graph_field {
enum : std::uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  input = 11,
  output = 12,
  value_info = 13,
  quantization_annotation = 14,
  sparse_initializer = 15
};
}
namespace node_field {
enum : std::uint32_t { input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7, overload = 8 };
}
namespace attribute_field {
enum : std::uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  tp = 14,
  type_protos = 15,
  type = 20,
  ref_attr_name = 21,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
}
namespace function_field {
enum : std::uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  opset_import = 9,
  domain = 10,
  attribute_proto = 11,
  value_info = 12,
  overload = 13,
};
}
namespace value_field {
enum : std::uint32_t { name = 1, type = 2 };
}
namespace type_field {
enum : std::uint32_t { tensor = 1, sequence = 4, map = 5, denotation = 6, opaque = 7, sparse_tensor = 8, optional = 9 };
}
namespace tensor_type_field {
enum : std::uint32_t { elem_type = 1, shape = 2 };
}
namespace shape_field {
enum : std::uint32_t { dim = 1 };
}
namespace dimension_field {
enum : std::uint32_t { value = 1 };
}
namespace sparse_tensor_field {
enum : std::uint32_t { values = 1, indices = 2 };
}
namespace annotation_field {
enum : std::uint32_t { tensor_name = 1 };
}
namespace training_field {
enum : std::uint32_t { initialization = 1, algorithm = 2 };
}

// AttributeProto.type.
enum class AttributeType : std::int64_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

// Limit of nested graphs; protobuf's own readers stop at about half of it.
inline constexpr int max_graph_depth = 64;

}  // namespace tensorcast::models::onnx
