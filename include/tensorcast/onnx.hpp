// Changes the precision of ONNX models: any operators, subgraphs, functions, external data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast::inline TENSORCAST_ABI::onnx {

// Where the new model must run. An operator stays as it is if its schema, or the runtime, does not take the new type.
enum class Runtime : std::uint8_t {
  onnxruntime_cpu,  // ONNX Runtime on a CPU, which has the fewest kernels
  any,              // by the schemas alone
};

// An initializer with a number beyond the new type's range.
enum class OnOverflow : std::uint8_t {
  keep_high,  // it and the nodes that take it keep their type
  clamp,      // to the largest finite number
  inf,        // as ONNX's Cast converts
  error,
};

// An overflowing initializer whose overflowing elements are all -1e9 or below, or beyond 1e30, as masks of attention
// and bounds of Clip have them.
enum class Masks : std::uint8_t {
  finite,     // they become the lowest and largest finite numbers
  inf,        // they become infinite
  as_others,  // OnOverflow decides
};

struct ConvertRequest {
  std::string input = {};       // an ONNX model
  std::string output = {};      // where the new one goes; equal to `input` is safe
  DType to = DType::undefined;  // float16, bfloat16, float32, float64; with weights_only also float8
  // Types that become `to`; empty: float64, float32, bfloat16 and float16.
  std::vector<DType> from = {};
  bool keep_io_types = false;                   // all inputs and outputs of the model keep their types
  std::vector<std::string> keep_io_names = {};  // these keep theirs
  std::vector<std::string> keep_op_types = {};  // nodes of these operators stay as they are: "LayerNormalization"
  std::vector<std::string> keep_nodes = {};     // as do nodes of these names
  // Only initializers change, and a Cast behind each gives back the old type.
  bool weights_only = false;
  Runtime runtime = Runtime::onnxruntime_cpu;
  OnOverflow on_overflow = OnOverflow::keep_high;
  Masks masks = Masks::finite;
  bool overwrite = false;
};

// A node that keeps its type, and why.
struct KeptNode {
  std::string name;  // or that of its first output
  std::string op_type;
  std::string_view reason;
};

struct ConvertOutcome {
  std::size_t nodes = 0;
  std::size_t nodes_converted = 0;
  std::size_t casts_before = 0;
  std::size_t casts_added = 0;
  std::size_t initializers_converted = 0;
  std::uint64_t initializer_bytes_before = 0;  // of those converted
  std::uint64_t initializer_bytes_after = 0;
  std::size_t values_changed = 0;  // inputs, outputs, initializers and values between nodes with another type now
  std::vector<KeptNode> kept;      // nodes that take or give a type of `from`, and keep it
};

// Converts a model. The types of values follow from the schemas of the model's own opset; a Cast stands exactly where a
// producer and a consumer differ. Initializers are converted one at a time. Unknown operators, and unknown fields, stay
// as they are. External data goes to one new file, `output` with ".data" at the end. Converting the result again
// changes nothing.
// Errors: io, parse; invalid_argument: a name in the request that the model does not have, a type that is no target;
// unsupported: a Cast to the type that the model's opset does not have. Nothing is written unless all succeeds.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert(const ConvertRequest& request);

}  // namespace tensorcast::inline TENSORCAST_ABI::onnx
