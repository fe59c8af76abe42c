// SPDX-License-Identifier: Apache-2.0
// Component models. Changes the precision of ONNX models: any operators, subgraphs, functions, external data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/checkpoint.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

// Where the new model must run. An operator stays as it is if its schema, or the runtime, does not take the new type.
enum class Runtime : std::uint8_t {
  onnxruntime_cpu,   // ONNX Runtime on a CPU, which has the fewest kernels
  onnxruntime_cuda,  // with its execution provider for CUDA
  tensorrt,
  openvino,
  any,  // by the schemas alone
};

// An initializer with a number beyond the new type's range.
enum class OnOverflow : std::uint8_t {
  keep_high,  // it and the nodes that take it keep their type
  clamp,      // to the largest finite number
  inf,        // as ONNX's Cast converts
  error,
};

// Masks: initializers all of whose overflowing elements are -1e9 or below, or beyond 1e30 in magnitude, as in masks of
// attention and bounds of Clip.
enum class Masks : std::uint8_t {
  finite,     // they become the lowest and largest finite numbers
  inf,        // they become infinite
  as_others,  // OnOverflow decides
};

// An initializer that nodes of both types take.
enum class SharedInitializers : std::uint8_t {
  duplicate,  // it is stored in both types
  cast,       // it keeps its type, and a Cast behind it gives the other
};

// Functions of the model.
enum class Functions : std::uint8_t {
  copied,   // one that is called with several types gets a copy for each
  inlined,  // their nodes stand in the place of each call
};

// Where initializers of the new model are.
enum class ExternalData : std::uint8_t {
  as_is,       // outside if they were, a new file for each old one, and if the model would exceed protobuf's 2 GiB
  one,         // in one file, from external_threshold bytes on
  per_tensor,  // in a file each, from external_threshold bytes on
  inside,      // in the model
};

// Limits of the numbers of initializers, as other converters have them.
enum class Clamp : std::uint8_t {
  none,
  finite,                // OnOverflow::clamp
  onnxconverter_common,  // its default: min_positive 1e-7, max_finite 1e4
  onnxruntime,           // its default: min_positive 5.96e-8, max_finite 65504
};

inline constexpr std::int64_t keep_opset = 0;
inline constexpr std::int64_t auto_opset = -1;

struct ConvertRequest {
  std::string input = {};   // an ONNX model
  std::string output = {};  // where the new one goes; equal to `input` is safe
  // float16, bfloat16, float32, float64; with weights_only also float8 and int8; undefined: as weights_scheme says.
  DType to = DType::undefined;
  // Types that become `to`; empty: float64, float32, bfloat16 and float16.
  std::vector<DType> from = {};
  bool keep_io_types = false;                   // all inputs and outputs of the model keep their types
  std::vector<std::string> keep_io_names = {};  // these keep theirs
  std::vector<std::string> keep_op_types = {};  // nodes of these operators stay as they are: "LayerNormalization"
  std::vector<std::string> keep_nodes = {};     // as do nodes of these names
  // Only initializers change, and a Cast behind each gives back the old type.
  bool weights_only = false;
  // If not empty, only matrices that MatMul, Gemm, LSTM, GRU and RNN take change, to codes with scales, be they
  // initializers or Constants; a DequantizeLinear behind each gives back the old type. `only` takes weights of other
  // operators, too: "op:Conv", "op:Gather". "nvfp4", "mxfp4", "int4-group", "int8" or "float8", by the scheme's default
  // recipe of block.hpp, or another: "mxfp4:even". `to` int8 with weights_only means "int8".
  std::string weights_scheme = {};
  // "int4-group": inputs that share a scale, 32, 64 or 128; 0: 128.
  std::uint64_t group_size = 0;
  bool symmetric = true;  // "int4-group": false: codes have zero points
  // With weights_scheme: weights more than half of whose nonzero numbers become zero, or in which NaN or infinity
  // appears, are converted all the same. Else one is an error.
  bool allow_loss = false;
  Runtime runtime = Runtime::onnxruntime_cpu;
  OnOverflow on_overflow = OnOverflow::keep_high;
  Masks masks = Masks::finite;
  SharedInitializers shared_initializers = SharedInitializers::duplicate;
  // Inlined before all else, so that names and selectors are those of the new nodes. Functions whose opset is not the
  // model's, and those that get a graph as an attribute, are copied.
  Functions functions = Functions::copied;
  ExternalData external_data = ExternalData::as_is;
  std::uint64_t external_threshold = 1024;
  std::uint64_t external_alignment = 4096;  // of tensors there that are not smaller; a power of two; 1 packs them
  // The opset of the new model: a number not below the model's; auto_opset: the first that has `to`, if the model's is
  // older. Nodes stay as they are: where one would mean something else, the conversion is refused.
  std::int64_t opset = keep_opset;
  // Types of inputs and outputs of the model, by name.
  std::vector<std::pair<std::string, DType>> io_types = {};
  // Nodes that stay as they are; and, unless empty, the only nodes that change. Entries are "op:TYPE", "name:NAME",
  // "glob:PATTERN" and "re:REGEX" (of names), "domain:DOMAIN", "graph:PATTERN" (of CastInfo::scope), "tensor:NAME",
  // "consumer-of:TENSOR", "producer-of:TENSOR". One that selects nothing is an error.
  std::vector<std::string> keep = {};
  std::vector<std::string> only = {};
  // Types of operators, for those that have no schema: "own::Op:in=float16,out=float16", "own::Op:in0=float16".
  std::vector<std::string> operator_types = {};
  // Limits of the numbers of initializers, applied before conversion: nonzero magnitudes are raised to `min_positive`,
  // finite ones lowered to `max_finite`. 0: that of `clamp`, which may have none.
  Clamp clamp = Clamp::none;
  double min_positive = 0.0;
  double max_finite = 0.0;
  // Also removes Casts to a narrower type and back whose types change, which changes values.
  bool allow_lossy_cast_elision = false;
  std::vector<std::string> explain = {};  // names of nodes that ConvertOutcome::explained describes
  bool dry_run = false;                   // writes nothing
  bool overwrite = false;
  // Called with the path of the new model when it and its external data are complete, under their names in a hidden
  // folder, before they are in their place. An error refuses the conversion. With `dry_run`, the folder goes
  // afterwards; `output` may then be empty: the folder is in that of temporary files.
  std::function<Result<void>(const std::string& made)> check = {};
  // Called before the output is created, now and then while it is written, and before it gets its name; returning false
  // cancels.
  std::function<bool()> on_progress = {};
};

// The reason of nodes that keep their type because ConvertRequest::weights_only says so.
inline constexpr std::string_view by_weights_only = "only initializers are stored in the new type";

// A node that keeps its type, and why.
struct KeptNode {
  std::string name;  // or that of its first output
  std::string op_type;
  std::string_view reason;
};

// An initializer or Constant of two or more dimensions that gets no scales although the request has a scheme.
struct KeptWeight {
  std::string name;
  std::string_view reason;
};

// An initializer or constant that becomes another type.
struct InitializerChange {
  std::string name;
  DType from = DType::undefined;
  DType to = DType::undefined;
  std::uint64_t count = 0;
  std::uint64_t overflowed = 0;   // elements beyond the new type's range
  std::uint64_t underflowed = 0;  // elements that become zero
  bool clamped = false;           // those that overflowed are finite
  std::string_view scheme = {};   // of quantize(), if it becomes codes with scales
  std::string_view recipe = {};
  // Signal to noise ratio of codes with scales, in decibels; infinity: no noise. None if nothing was written.
  std::optional<double> snr_db = {};
};

// What becomes of one input or output of a node.
struct ValueDecision {
  std::string value;
  bool is_input = false;
  DType from = DType::undefined;
  DType to = DType::undefined;
  bool has_cast = false;         // of an input: the value is made in another type
  std::string_view reason = {};  // why it keeps the type; "" if it changes, or is not of a type of `from`
};

struct NodeDecision {
  std::string name;
  std::string op_type;
  std::string scope;  // as CastInfo::scope
  std::vector<ValueDecision> values = {};
};

struct ConvertOutcome {
  DType to = DType::undefined;                     // what values became
  std::int64_t opset_before = 0, opset_after = 0;  // of the standard operators; 0: not imported
  std::size_t nodes = 0;
  std::size_t calls_inlined = 0;
  std::size_t nodes_converted = 0;
  std::size_t casts_before = 0;
  std::size_t casts_added = 0;
  std::size_t casts_removed = 0;  // that the conversion made superfluous
  std::size_t casts_after = 0;
  std::size_t initializers_converted = 0;
  std::uint64_t initializer_bytes_before = 0;  // of those converted
  std::uint64_t initializer_bytes_after = 0;
  std::size_t values_changed = 0;  // inputs, outputs, initializers and values between nodes with another type now
  std::vector<KeptNode> kept;      // nodes that take or give a type of `from`, and keep it
  // Nodes by the type of their first floating output, or input if they have no such output; the types in order.
  std::vector<std::pair<DType, std::size_t>> nodes_by_type = {};
  std::vector<InitializerChange> initializers = {};  // that become `to`, in the order of the file
  std::vector<KeptWeight> kept_weights = {};         // with ConvertRequest::weights_scheme
  std::vector<NodeDecision> explained = {};
};

// Converts a model. The types of values follow from the schemas of the model's own opset; a Cast stands exactly where a
// producer and a consumer differ. Initializers are converted one at a time. Unknown operators, and unknown fields, stay
// as they are. External data goes to one new file, `output` with ".data" at the end; that of several old files to one
// for each, with the name of the old one before that. Converting the result again changes nothing. Errors: io, parse;
// invalid_argument: a name in the request that the model does not have, a type that is no target; unsupported: a Cast
// to the type that the model's opset does not have, a node that `opset` would change; cancelled; those of `check`.
// Nothing is written unless all succeeds.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert(const ConvertRequest& request);

// What the new model needs, as far as the request alone tells.
struct Needs {
  DType to = DType::undefined;      // what they become
  std::int64_t opset = 0;           // the first that has what initializers and values become
  std::string missing_kernel = {};  // a sentence: what the request's runtime cannot run; empty: nothing is known
};
// Errors: invalid_argument: what convert() refuses whatever the model is, such as a type or scheme that is no target.
[[nodiscard]] TENSORCAST_API Result<Needs> needs(const ConvertRequest& request);

// What a Cast is for.
enum class CastRole : std::uint8_t {
  consumer,      // what takes the result needs the type
  same_type,     // nothing: the input has the type already
  unused,        // nothing: no node and no output takes the result
  duplicate,     // nothing: another Cast of its graph gives the same
  round_trip,    // nothing: it gives back the value that a Cast without loss took, as float16 to float32 to float16
  rounding,      // with the Cast before it, it rounds values: float32 to float16 to float32
  computation,   // it is part of what the model computes: floats to integers, numbers to bool
  storage,       // it gives an initializer or constant, stored in another type, the type of the computation
  model_input,   // an input of the model has another type
  model_output,  // an output of the model has another type
  unknown,       // a type is unknown
};
[[nodiscard]] TENSORCAST_API std::string_view name(CastRole role) noexcept;

struct CastInfo {
  std::string name;     // or that of its output
  std::string op_type;  // Cast or CastLike
  // The graph: "" for the main one, "NODE.ATTRIBUTE" in a subgraph, "DOMAIN::NAME" in a function.
  std::string scope;
  std::string input = {}, output = {};
  DType from = DType::undefined;  // undefined: unknown, or no type of tensorcast
  DType to = DType::undefined;
  std::size_t consumers = 0;  // inputs of nodes, and outputs of graphs, that take the result
  CastRole role = CastRole::unknown;
  std::string reason = {};  // one sentence
  bool removable = false;   // by clean()
};

// Lists the Casts and CastLikes of a model in the order of the file. Errors: io, parse, unsupported.
[[nodiscard]] TENSORCAST_API Result<std::vector<CastInfo>> list_casts(const std::string& model);

struct CleanRequest {
  std::string input = {};
  std::string output = {};  // equal to `input` is safe
  // Also removes Casts to a narrower type and back, which changes values.
  bool allow_lossy_cast_elision = false;
  bool dry_run = false;  // writes nothing
  bool overwrite = false;
};

struct RemovedNode {
  std::string name;  // or that of its output
  std::string op_type;
  std::string scope;  // as CastInfo::scope
  std::string_view reason;
};

struct CleanOutcome {
  std::size_t nodes = 0;  // before
  std::size_t casts = 0;  // before
  std::size_t casts_removed = 0;
  std::vector<RemovedNode> removed = {};
};

// Removes Casts and Identities that change no value: those that give the type that they take, pairs from a type to one
// that has all its values and back, second Casts of a value to a type, and those whose result nothing takes. Inputs and
// outputs keep their names and types; everything else is copied byte for byte. External data stays where it is unless
// `output` is in another folder, for which convert()'s rules hold. Cleaning the result again changes nothing. A model
// with training_info stays as it is, because its graphs may name any value. Errors: as convert().
[[nodiscard]] TENSORCAST_API Result<CleanOutcome> clean(const CleanRequest& request);

struct UseTensorcastRequest {
  std::string input = {};
  std::string output = {};  // equal to `input` is safe
  bool overwrite = false;
};

struct UseTensorcastOutcome {
  std::size_t rewritten = 0;  // Casts
  std::size_t left = 0;       // Casts of ONNX in functions whose opset is not the model's
};

// Rewrites the Casts of a model, also in subgraphs and functions, into calls of its own function ai.tensorcast::Cast,
// whose body is ONNX's Cast. A session of ONNX Runtime with tensorcast's library runs the library's operator, and every
// other one the body. Names of nodes and values stay; everything else is copied byte for byte. External data stays
// where it is, or its files are copied if `output` is in another folder. Rewriting the result again changes nothing.
// Errors: io, parse; unsupported: an opset before 13 or a file format before 8.
[[nodiscard]] TENSORCAST_API Result<UseTensorcastOutcome> use_tensorcast(const UseTensorcastRequest& request);

// How a product with a matrix of 4-bit codes is spelled.
enum class MatMulSpelling : std::uint8_t {
  matmulnbits,  // com.microsoft::MatMulNBits, which ONNX Runtime runs on the codes
  qdq,          // MatMul behind a DequantizeLinear of blocks: ONNX from opset 21 on
};

struct RespellRequest {
  std::string input = {};
  std::string output = {};  // equal to `input` is safe
  MatMulSpelling to = MatMulSpelling::matmulnbits;
  bool overwrite = false;
};

struct RespellOutcome {
  std::size_t respelled = 0;          // nodes
  std::vector<KeptWeight> left = {};  // codes of 4 bits that stay as they are
  std::int64_t opset_before = 0, opset_after = 0;
};

// Gives products with 4-bit codes the other spelling, with the same codes, scales and zero points. The opset rises to
// 21 for `qdq` where no other node changes by that. New tensors are in the model. Errors: as use_tensorcast();
// unsupported: another opset would change nodes.
[[nodiscard]] TENSORCAST_API Result<RespellOutcome> respell(const RespellRequest& request);

struct DiffRequest {
  std::string a = {}, b = {};  // ONNX models
  bool headers_only = false;   // elements of initializers are not compared
};

struct OpsetDifference {
  std::string domain;         // "" for the standard operators
  std::int64_t a = 0, b = 0;  // 0: not imported
};

// A value that both models have, with another type; or one that is missing in a model.
struct ValueDifference {
  std::string scope;  // as CastInfo::scope
  std::string name;
  std::string a, b;  // such as "float32" or "sequence of float32"; "" if the model lacks the value
};

struct OperatorDifference {
  std::string op_type;       // with its domain: "ai.onnx.ml::Scaler"
  std::size_t a = 0, b = 0;  // nodes
};

struct DiffOutcome {
  std::int64_t ir_version_a = 0, ir_version_b = 0;
  std::vector<OpsetDifference> opsets = {};        // that differ
  std::vector<OperatorDifference> operators = {};  // whose number differs
  std::vector<ValueDifference> values = {};
  std::vector<CastInfo> casts_only_a = {}, casts_only_b = {};  // by scope, input and types
  // All, and the values of Constants, those of `a` first; in subgraphs the scope, a slash and the name.
  std::vector<TensorDifference> initializers = {};
  // Types, Casts, opsets, operators and initializers are the same.
  bool equal = false;
};

// Compares two models by the names of their values. Initializers, and the values of Constants under the names of their
// outputs, are compared as float64, one block at a time; codes as DequantizeLinear decodes them. Memory: the scales of
// a tensor. Errors: io, parse, unsupported.
[[nodiscard]] TENSORCAST_API Result<DiffOutcome> diff(const DiffRequest& request);

struct DrawRequest {
  std::string input = {};
  // Most nodes, inputs and outputs of a picture. Initializers are left out where they would exceed it.
  std::size_t max_vertices = 2000;
};

// Returns a picture of a model in the DOT language of Graphviz: nodes, values and initializers in the colour of their
// precision with a legend, Casts marked, subgraphs and functions as clusters. Equal models give equal texts.
// Errors: io, parse; unsupported: a model with more than `max_vertices`.
[[nodiscard]] TENSORCAST_API Result<std::string> draw(const DrawRequest& request);

// Lists the initializers of a model and the values of its Constants, under the names of their outputs, in the order of
// the file, without reading their elements. Those of a subgraph have its scope, as in CastInfo, and a slash before
// their name. Of one that is sparse, or whose external data is missing, TensorSummary::problem says so; the bytes of a
// sparse one are those of its values. Errors: io, parse, unsupported.
[[nodiscard]] TENSORCAST_API Result<FileSummary> list_initializers(const std::string& model);

// Returns the paths of the files of external data that a model names, whether they exist or not: what must not be
// overwritten. Errors: io, parse.
[[nodiscard]] TENSORCAST_API Result<std::vector<std::string>> list_external_files(const std::string& model);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
