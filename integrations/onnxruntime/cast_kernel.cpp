// SPDX-License-Identifier: Apache-2.0
#include "cast_kernel.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <string>

#include "attributes.hpp"
#include "element_type.hpp"
#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

// Elements that one task of the runtime's pool converts. A multiple of 8, so that tasks share no byte of packed types.
constexpr std::size_t small_task = std::size_t{1} << 16;
// Requests of 32 MiB store past the cache, and then memory, not the number of threads, is the limit.
constexpr std::size_t large_task_bytes = std::size_t{32} << 20;

std::size_t elements_per_task(std::size_t count, tc_dtype from, tc_dtype to) {
  const std::size_t bytes_of_1024 = tc_storage_bytes(from, 1024) + tc_storage_bytes(to, 1024);
  const std::size_t large_task = large_task_bytes / bytes_of_1024 * 1024 + 1024;
  return count >= 4 * large_task ? large_task : small_task;
}

ONNXTensorElementDataType type_of(const OrtApi& api, OrtTypeInfo* type) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // belongs to `type`
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (succeeds(api, api.CastTypeInfoToTensorInfo(type, &tensor)) && tensor != nullptr) {
    succeeds(api, api.GetTensorElementType(tensor, &element));
  }
  api.ReleaseTypeInfo(type);
  return element;
}

ONNXTensorElementDataType input_type(const OrtApi& api, const OrtKernelInfo& info) {
  OrtTypeInfo* type = nullptr;
  check(api.KernelInfo_GetInputTypeInfo(&info, 0, &type));
  return type_of(api, type);
}

ONNXTensorElementDataType output_type(const OrtApi& api, const OrtKernelInfo& info) {
  OrtTypeInfo* type = nullptr;
  check(api.KernelInfo_GetOutputTypeInfo(&info, 0, &type));
  return type_of(api, type);
}

// The shape of a tensor; allocates only for ranks that hardly exist.
class Shape {
 public:
  Shape(const OrtApi& api, const OrtValue& tensor) {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api.GetTensorTypeAndShape(&tensor, &info));
    const bool read = succeeds(api, api.GetDimensionsCount(info, &rank_)) &&
                      succeeds(api, api.GetTensorShapeElementCount(info, &count_)) && read_dims(api, *info);
    api.ReleaseTensorTypeAndShapeInfo(info);
    if (!read) fail(api, ORT_FAIL, "the runtime does not tell the shape of an input");
  }

  [[nodiscard]] const std::int64_t* dims() const { return rank_ <= few_.size() ? few_.data() : many_.data(); }
  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  bool read_dims(const OrtApi& api, const OrtTensorTypeAndShapeInfo& info) {
    if (rank_ > few_.size()) many_.resize(rank_);
    return succeeds(api, api.GetDimensions(&info, rank_ <= few_.size() ? few_.data() : many_.data(), rank_));
  }

  std::size_t rank_ = 0;
  std::size_t count_ = 0;
  std::array<std::int64_t, 8> few_ = {};
  std::vector<std::int64_t> many_;
};

// What the tasks of one tensor share.
struct Tasks {
  const std::byte* src;
  std::byte* dst;
  std::size_t count;
  std::size_t task;  // elements
  tc_dtype from;
  tc_dtype to;
  const tc_cast_options* options;
  std::atomic<bool> failed = false;
};

void run_task(void* shared, std::size_t index) {
  auto& tasks = *static_cast<Tasks*>(shared);
  const std::size_t begin = index * tasks.task;
  const std::size_t count = std::min(tasks.task, tasks.count - begin);
  if (tc_cast(tasks.src + tc_storage_bytes(tasks.from, begin), tasks.from,
              tasks.dst + tc_storage_bytes(tasks.to, begin), tasks.to, count, tasks.options) != TC_OK) {
    tasks.failed = true;
  }
}

// The runtime's threads, as tc_cast() takes them. If the runtime fails, tc_cast() does, as tasks were left out.
struct Pool {
  const OrtApi& api;
  OrtKernelContext& context;

  static void run(void* pool, std::size_t count, tc_task task, void* work) {
    auto& [api, context] = *static_cast<Pool*>(pool);
    succeeds(api, api.KernelContext_ParallelFor(&context, task, count, 0, work));
  }
};

std::byte* data_of(const OrtApi& api, const OrtValue& tensor) {
  void* data = nullptr;
  check(api.GetTensorMutableData(const_cast<OrtValue*>(&tensor), &data));  // there is no function for reading alone
  return static_cast<std::byte*>(data);
}

}  // namespace

CastKernel::CastKernel(const OrtApi& api, const OrtKernelInfo& info, CastKind kind) : api_(api) {
  options_ = read_options(api, info, kind == CastKind::own || kind == CastKind::own_like);
  const ONNXTensorElementDataType from = input_type(api, info);
  const ONNXTensorElementDataType to = output_type(api, info);
  from_ = dtype_of(from);
  to_ = dtype_of(to);
  if (kind == CastKind::onnx) {  // the provider's, which has the rules of the model
    int since = 0;
    check(api.KernelInfo_GetOperatorSinceVersion(&info, &since));
    options_.opset = since;
  }
  if (kind == CastKind::onnx_or_built_in) {
    // Texts of numbers are the runtime's own there, so that a model prints what it printed before.
    const bool taken = from_ != 0 && to_ != 0 && from_ != string_type && to_ != string_type &&
                       tc_cast(nullptr, from_, nullptr, to_, 0, &options_) == TC_OK;
    if (!taken) {
      use_built_in(info, from, to);
      return;
    }
  }
  if (from_ == 0 || to_ == 0) fail(api, ORT_NOT_IMPLEMENTED, "Cast of a type that is not in tensorcast.dtypes()");
  if (kind != CastKind::own_like) {
    const std::int64_t wanted = int_attribute(api, info, "to", 0);
    if (wanted != to_) fail(api, ORT_INVALID_GRAPH, "the output of Cast does not have the type that `to` names");
  }
  if (from_ != string_type && to_ != string_type) {
    if (tc_cast(nullptr, from_, nullptr, to_, 0, &options_) != TC_OK) fail_with_last_error();
    convert_constant(info);
  }
}

void CastKernel::use_built_in(const OrtKernelInfo& info, ONNXTensorElementDataType from, ONNXTensorElementDataType to) {
  std::array<const char*, 2> constraints = {"T1", "T2"};
  const std::array<ONNXTensorElementDataType, 2> types = {from, to};
  std::vector<OrtOpAttr*> attributes;
  const auto add = [&](const char* name, const void* value, int length, OrtOpAttrType type) {
    OrtOpAttr* attribute = nullptr;
    check(api_.CreateOpAttr(name, value, length, type, &attribute));
    attributes.push_back(attribute);
  };
  const std::int64_t number = int_attribute(api_, info, "to", 0);
  const std::int64_t saturate = options_.saturate;
  const std::array<const char*, 3> modes = {"up", "down", "nearest"};
  const char* mode = modes.at(static_cast<std::size_t>(options_.round_mode));
  add("to", &number, 1, ORT_OP_ATTR_INT);
  add("saturate", &saturate, 1, ORT_OP_ATTR_INT);
  add("round_mode", mode, static_cast<int>(std::strlen(mode)), ORT_OP_ATTR_STRING);
  // The versions of Cast, newest first. The kernel of one that is newer than the runtime does not exist.
  OrtStatus* status = nullptr;
  for (const int version : {28, 25, 24, 23, 21, 19, 13, 9, 6}) {
    if (status != nullptr) api_.ReleaseStatus(status);
    OrtOp* op = nullptr;
    status = api_.CreateOp(&info, "Cast", "", version, constraints.data(), types.data(), 2, attributes.data(),
                           static_cast<int>(attributes.size()), 1, 1, &op);
    if (status == nullptr) {
      built_in_ = {op, ReleaseOp{&api_}};
      break;
    }
  }
  for (OrtOpAttr* attribute : attributes) api_.ReleaseOpAttr(attribute);
  check(status);
}

// Copying a result costs less than the conversion only if the result is not larger than the input; see README.md.
void CastKernel::convert_constant(const OrtKernelInfo& info) {
  int is_constant = 0;
  const OrtValue* input = nullptr;
  if (!succeeds(api_, api_.KernelInfoGetConstantInput_tensor(&info, 0, &is_constant, &input)) || is_constant == 0 ||
      input == nullptr) {
    return;
  }
  const std::size_t count = Shape(api_, *input).count();
  const std::size_t bytes = tc_storage_bytes(to_, count);
  if (bytes > tc_storage_bytes(from_, count)) return;
  constant_.resize(bytes);
  if (tc_cast(data_of(api_, *input), from_, constant_.data(), to_, count, &options_) != TC_OK) fail_with_last_error();
}

void CastKernel::compute(OrtKernelContext& context) const {
  const OrtValue* src = nullptr;
  check(api_.KernelContext_GetInput(&context, 0, &src));
  if (src == nullptr) fail(api_, ORT_INVALID_ARGUMENT, "Cast needs an input");
  const Shape shape(api_, *src);
  OrtValue* dst = nullptr;
  check(api_.KernelContext_GetOutput(&context, 0, shape.dims(), shape.rank(), &dst));
  if (built_in_) return check(api_.InvokeOp(&context, built_in_.get(), &src, 1, &dst, 1));
  if (from_ == string_type) return convert_from_strings(*src, *dst, shape.count());
  if (to_ == string_type) return convert_to_strings(*src, *dst, shape.count());
  if (!constant_.empty()) {
    std::memcpy(data_of(api_, *dst), constant_.data(), constant_.size());
    return;
  }
  convert(context, data_of(api_, *src), data_of(api_, *dst), shape.count());
}

void CastKernel::convert(OrtKernelContext& context, const std::byte* src, std::byte* dst, std::size_t count) const {
  // Over itself a narrower target is written where other tasks still read. Random words go by the place in the tensor,
  // which a slice does not know.
  const bool in_one_piece = (src == dst && tc_storage_bytes(from_, 8) != tc_storage_bytes(to_, 8)) ||
                            options_.rounding == TC_ROUNDING_STOCHASTIC;
  if (count >= 2 * small_task && !in_one_piece) {
    const std::size_t task = elements_per_task(count, from_, to_);
    Tasks tasks = {src, dst, count, task, from_, to_, &options_};
    check(api_.KernelContext_ParallelFor(&context, run_task, (count + task - 1) / task, 0, &tasks));
    if (!tasks.failed) return;
    if (src == dst) fail(api_, ORT_INVALID_ARGUMENT, "an element is out of the range that the options allow");
    // Once more in one piece: the error names the element.
  }
  Pool pool = {api_, context};
  tc_cast_options options = options_;
  options.executor = Pool::run;
  options.executor_data = &pool;
  if (tc_cast(src, from_, dst, to_, count, &options) != TC_OK) fail_with_last_error();
}

void CastKernel::convert_from_strings(const OrtValue& src, OrtValue& dst, std::size_t count) const {
  std::size_t length = 0;
  check(api_.GetStringTensorDataLength(&src, &length));
  std::vector<char> data(std::max<std::size_t>(length, 1));
  std::vector<std::size_t> begins(std::max<std::size_t>(count, 1));
  check(api_.GetStringTensorContent(&src, data.data(), length, begins.data(), count));
  std::vector<std::int64_t> offsets(begins.begin(), begins.begin() + static_cast<std::ptrdiff_t>(count));
  offsets.push_back(static_cast<std::int64_t>(length));
  if (to_ == string_type) return write_strings(dst, {data.data(), length}, offsets);
  if (tc_cast_from_strings(data.data(), offsets.data(), data_of(api_, dst), to_, count, &options_) != TC_OK) {
    fail_with_last_error();
  }
}

void CastKernel::convert_to_strings(const OrtValue& src, OrtValue& dst, std::size_t count) const {
  char* data = nullptr;
  std::int64_t* offsets = nullptr;
  if (tc_cast_to_strings(data_of(api_, src), from_, count, &data, &offsets, &options_) != TC_OK) {
    fail_with_last_error();
  }
  struct Free {
    void operator()(void* memory) const { tc_free(memory); }
  };
  const std::unique_ptr<char, Free> owned_data(data);
  const std::unique_ptr<std::int64_t, Free> owned_offsets(offsets);
  write_strings(dst, {data, static_cast<std::size_t>(offsets[count])}, {offsets, count + 1});
}

void CastKernel::write_strings(OrtValue& dst, std::span<const char> data, std::span<const std::int64_t> offsets) const {
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto length = static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    char* buffer = nullptr;
    check(api_.GetResizedStringTensorElementBuffer(&dst, i, length, &buffer));
    if (length != 0) std::memcpy(buffer, data.data() + offsets[i], length);
  }
}

void CastKernel::fail_with_last_error() const { fail(api_, ORT_INVALID_ARGUMENT, tc_last_error()); }

}  // namespace tensorcast::onnxruntime
