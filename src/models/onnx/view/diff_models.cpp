// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::diff(): compares types, Casts, opsets and initializers of two models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "convert/run/number_difference.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/view/list_casts.hpp"
#include "models/onnx/view/shown_numbers.hpp"
#include "models/onnx/view/shown_tensors.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::TensorInfo;
using formats::onnx::TensorProtoReader;
using ::tensorcast::onnx::CastInfo;
using ::tensorcast::onnx::DiffOutcome;
using ::tensorcast::onnx::DiffRequest;

struct Side {
  io::InputFile file;
  std::unique_ptr<Model> model;
  std::vector<std::string> scopes;  // by graph
  ShownTensors tensors;
  std::map<std::string, const ShownTensor*> by_name;  // the first of each name
  std::optional<ShownNumbersOf> numbers;
};

Result<std::unique_ptr<Side>> open_side(const std::string& path) {
  OpenModel opened = TRY(in_file(path, open_model(path)));
  infer_types(*opened.model);
  auto side = std::make_unique<Side>(Side{.file = std::move(opened.file),
                                          .model = std::move(opened.model),
                                          .scopes = {},
                                          .tensors = {},
                                          .by_name = {},
                                          .numbers = {}});
  side->scopes = graph_scopes(*side->model);
  side->tensors = TRY(in_file(path, ShownTensors::of(side->file, *side->model, side->scopes)));
  for (const ShownTensor& tensor : side->tensors.all()) side->by_name.emplace(tensor.name, &tensor);
  side->numbers.emplace(*side->model, side->tensors);
  return side;
}

using PlacedName = std::pair<std::string, std::string>;  // scope, name

std::map<PlacedName, std::string> types_of(const Side& side) {
  std::map<PlacedName, std::string> types;
  for (const Value& value : side.model->values) {
    types.emplace(PlacedName{side.scopes[value.graph->id], value.name}, type_text(value.type));
  }
  return types;
}

void compare_values(const Side& a, const Side& b, DiffOutcome& outcome) {
  const auto types_a = types_of(a);
  const auto types_b = types_of(b);
  for (const auto& [key, type] : types_a) {
    const auto other = types_b.find(key);
    const std::string there = other == types_b.end() ? std::string() : other->second;
    if (there != type) outcome.values.push_back({.scope = key.first, .name = key.second, .a = type, .b = there});
  }
  for (const auto& [key, type] : types_b) {
    if (!types_a.contains(key)) outcome.values.push_back({.scope = key.first, .name = key.second, .a = "", .b = type});
  }
}

std::map<std::string, std::int64_t> opsets_of(const Model& model) {
  std::map<std::string, std::int64_t> opsets;
  for (const Opset& opset : model.opsets) opsets[opset.domain] = opset.version;
  for (const auto& function : model.functions) {
    for (const Opset& opset : function->opsets) {
      opsets[fmt::format("{}::{} {}", function->domain, function->name, opset.domain)] = opset.version;
    }
  }
  return opsets;
}

std::map<std::string, std::size_t> operators_of(const Model& model) {
  std::map<std::string, std::size_t> operators;
  each_graph(model, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      ++operators[node.domain.empty() ? node.op_type : node.domain + "::" + node.op_type];
    }
  });
  return operators;
}

// Calls take(key, a, b) for keys whose numbers differ; 0 where a map lacks the key.
template <class Number, class Take>
void compare_maps(const std::map<std::string, Number>& a, const std::map<std::string, Number>& b, const Take& take) {
  std::map<std::string, std::pair<Number, Number>> both;
  for (const auto& [key, number] : a) both[key].first = number;
  for (const auto& [key, number] : b) both[key].second = number;
  for (const auto& [key, pair] : both) {
    if (pair.first != pair.second) take(key, pair.first, pair.second);
  }
}

void compare_casts(const Side& in_a, const Side& in_b, DiffOutcome& outcome) {
  const std::vector<CastInfo> a = list_casts(*in_a.model);
  const std::vector<CastInfo> b = list_casts(*in_b.model);
  const auto key = [](const CastInfo& cast) { return std::tie(cast.scope, cast.input, cast.from, cast.to); };
  std::multimap<std::tuple<std::string, std::string, DType, DType>, const CastInfo*> left;
  for (const CastInfo& cast : b) left.emplace(key(cast), &cast);
  for (const CastInfo& cast : a) {
    const auto found = left.find(key(cast));
    if (found == left.end()) {
      outcome.casts_only_a.push_back(cast);
    } else {
      left.erase(found);
    }
  }
  for (const auto& [ignored, cast] : left) outcome.casts_only_b.push_back(*cast);
}

constexpr std::size_t compared_elements = std::size_t{1} << 17;

// Compares the messages, of a sparse tensor with its places. Text and places that are stored in another way differ so.
Result<bool> have_same_bytes(const ShownTensor& a, const ShownTensor& b) {
  const auto message = [](const ShownTensor& shown) {
    return shown.tensor.sparse ? ByteRange{.offset = shown.tensor.field.offset, .length = shown.tensor.field.length}
                               : shown.tensor.tensor;
  };
  const ByteRange in_a = message(a);
  const ByteRange in_b = message(b);
  if (in_a.length != in_b.length) return false;
  std::vector<std::byte> x;
  std::vector<std::byte> y;
  for (std::uint64_t done = 0; done < in_a.length; done += x.size()) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(compared_elements, in_a.length - done));
    x.resize(bytes);
    y.resize(bytes);
    TRY(a.file->read(in_a.offset + done, x));
    TRY(b.file->read(in_b.offset + done, y));
    if (x != y) return false;
  }
  return true;
}

// What two tensors are compared as. The codes of two weights are no numbers that can be compared, but what nodes make
// of them is. Equal codes with other scales are different weights, and codes that are not equal may be equal weights.
enum class ComparedAs : std::uint8_t { elements, decoded, nothing };

ComparedAs compared_as(const ShownNumbers& a, const ShownNumbers& b) {
  using Meaning = ShownNumbers::Meaning;
  if (a.meaning() == Meaning::unknown || b.meaning() == Meaning::unknown) {
    return a.info().dtype == b.info().dtype ? ComparedAs::elements : ComparedAs::nothing;
  }
  const bool decoded = a.meaning() == Meaning::decoded || b.meaning() == Meaning::decoded;
  return decoded ? ComparedAs::decoded : ComparedAs::elements;
}

bool is_same_number(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// Precondition: both have numbers, and one shape.
Result<void> compare_numbers(ShownNumbers& a, ShownNumbers& b, TensorDifference& result) {
  const ComparedAs as = compared_as(a, b);
  result.decoded = as == ComparedAs::decoded;
  result.undecodable = as == ComparedAs::nothing;
  if (result.undecodable) return {};
  file_conversion::NumberDifference found;
  bool same_codes = true;
  std::vector<double> codes_x, codes_y, x, y;
  for (std::uint64_t first = 0; first < result.count; first += compared_elements) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(compared_elements, result.count - first));
    TRY(a.load(first, count, codes_x, x));
    TRY(b.load(first, count, codes_y, y));
    if (!result.decoded) {
      x.swap(codes_x);
      y.swap(codes_y);
    }
    for (std::size_t i = 0; i < count; ++i) found.add(x[i], y[i]);
    same_codes = same_codes && (!result.decoded || std::ranges::equal(codes_x, codes_y, is_same_number));
  }
  found.fill(result);
  result.equal = result.equal && same_codes && found.different == 0;
  return {};
}

Result<void> compare_elements(const Side& side_a, const ShownTensor& a, const Side& side_b, const ShownTensor& b,
                              bool headers_only, TensorDifference& result) {
  auto reader_a = TRY(TensorProtoReader::open(*a.file, a.tensor.tensor));
  auto reader_b = TRY(TensorProtoReader::open(*b.file, b.tensor.tensor));
  const TensorInfo& from = reader_a->tensors().front();
  const TensorInfo& to = reader_b->tensors().front();
  result.from = from.dtype;
  result.to = to.dtype;
  result.from_shape = from.shape;
  result.to_shape = to.shape;
  result.count = from.count;
  result.equal = from.dtype == to.dtype && from.shape == to.shape && a.tensor.sparse == b.tensor.sparse;
  if (headers_only || from.shape != to.shape) return {};
  const bool is_sparse = a.tensor.sparse || b.tensor.sparse;
  const bool is_text = from.dtype == DType::string || to.dtype == DType::string;
  if (is_sparse || is_text) result.equal = result.equal && TRY(have_same_bytes(a, b));
  if (is_text) return {};
  ShownNumbers numbers_a = TRY(side_a.numbers->open(a, std::move(reader_a)));
  ShownNumbers numbers_b = TRY(side_b.numbers->open(b, std::move(reader_b)));
  return compare_numbers(numbers_a, numbers_b, result);
}

Result<void> compare_initializers(const Side& a, const Side& b, bool headers_only, DiffOutcome& outcome) {
  for (const ShownTensor& shown : a.tensors.all()) {
    if (a.by_name.at(shown.name) != &shown) continue;
    TensorDifference& result = outcome.initializers.emplace_back();
    result.name = shown.name;
    result.from = known(shown.tensor.element);
    const auto found = b.by_name.find(shown.name);
    result.in_b = found != b.by_name.end();
    if (!result.in_b) continue;
    const ShownTensor& other = *found->second;
    if (known(shown.tensor.element) == DType::undefined || known(other.tensor.element) == DType::undefined) {
      result.equal = shown.tensor.element == other.tensor.element && shown.tensor.count == other.tensor.count;
      if (!headers_only) result.equal = result.equal && TRY(have_same_bytes(shown, other));
      continue;
    }
    Result<void> done = compare_elements(a, shown, b, other, headers_only, result);
    if (!done) {
      Error error = std::move(done).error();
      if (error.tensor.empty()) error.tensor = shown.name;
      return error;
    }
  }
  for (const ShownTensor& shown : b.tensors.all()) {
    if (a.by_name.contains(shown.name) || b.by_name.at(shown.name) != &shown) continue;
    TensorDifference& result = outcome.initializers.emplace_back();
    result.name = shown.name;
    result.in_a = false;
    result.to = known(shown.tensor.element);
  }
  return {};
}

Result<DiffOutcome> diff(const DiffRequest& request) {
  const std::unique_ptr<const Side> side_a = TRY(open_side(request.a));
  const std::unique_ptr<const Side> side_b = TRY(open_side(request.b));
  const Side& a = *side_a;
  const Side& b = *side_b;
  DiffOutcome outcome{.ir_version_a = a.model->ir_version, .ir_version_b = b.model->ir_version};
  compare_maps(opsets_of(*a.model), opsets_of(*b.model),
               [&](const std::string& domain, std::int64_t in_a, std::int64_t in_b) {
                 outcome.opsets.push_back({.domain = domain, .a = in_a, .b = in_b});
               });
  compare_maps(operators_of(*a.model), operators_of(*b.model),
               [&](const std::string& op_type, std::size_t in_a, std::size_t in_b) {
                 outcome.operators.push_back({.op_type = op_type, .a = in_a, .b = in_b});
               });
  compare_values(a, b, outcome);
  compare_casts(a, b, outcome);
  TRY(compare_initializers(a, b, request.headers_only, outcome));
  outcome.equal = outcome.ir_version_a == outcome.ir_version_b && outcome.opsets.empty() && outcome.operators.empty() &&
                  outcome.values.empty() && outcome.casts_only_a.empty() && outcome.casts_only_b.empty() &&
                  std::ranges::all_of(outcome.initializers, [](const TensorDifference& tensor) {
                    return tensor.in_a && tensor.in_b && tensor.equal;
                  });
  return outcome;
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<DiffOutcome> diff(const DiffRequest& request) {
  return models::onnx::guarded_for_file(request.a, [&] { return models::onnx::diff(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
