// SPDX-License-Identifier: Apache-2.0
// The C interface to ONNX models.
#include "tensorcast/c_onnx.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "c_api/c_call.hpp"
#include "dtype/try.hpp"
#include "tensorcast/onnx.hpp"

template <>
struct tensorcast::c_api::Growth<tc_onnx_convert_options> {
  static constexpr const char* name = "tc_onnx_convert_options";
  static constexpr std::array sizes = {offsetof(tc_onnx_convert_options, dry_run) +
                                       sizeof(tc_onnx_convert_options::dry_run)};
};
template <>
struct tensorcast::c_api::Growth<tc_onnx_convert_outcome> {
  static constexpr const char* name = "tc_onnx_convert_outcome";
  static constexpr std::array sizes = {offsetof(tc_onnx_convert_outcome, to) + sizeof(tc_onnx_convert_outcome::to)};
};

namespace {

using namespace tensorcast::c_api;
using tensorcast::formatted;
using tensorcast::Result;
namespace onnx = tensorcast::onnx;

Result<std::vector<std::string>> strings(const char* const* list, size_t count, const char* name) {
  std::vector<std::string> read;
  if (count != 0 && list == nullptr) return invalid(formatted("`{}` is null", name));
  for (size_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) return invalid(formatted("entry {} of `{}` is null", i, name));
    read.emplace_back(list[i]);
  }
  return read;
}

// An enumeration whose numbers are those of onnx.hpp.
template <class Enum>
Result<Enum> choice(std::int32_t number, Enum last, const char* name) {
  const auto most = static_cast<std::int32_t>(last);
  if (number >= 0 && number <= most) return static_cast<Enum>(number);
  return invalid(formatted("{} is {}, expected 0 to {}", name, number, most));
}

Result<void> set(const tc_onnx_convert_options& given, onnx::ConvertRequest& request) {
  if (given.weights_scheme != nullptr) request.weights_scheme = given.weights_scheme;
  request.keep = TRY(strings(given.keep, given.keep_count, "keep"));
  request.only = TRY(strings(given.only, given.only_count, "only"));
  request.keep_io_names = TRY(strings(given.keep_io_names, given.keep_io_name_count, "keep_io_names"));
  request.runtime = TRY(choice(given.runtime, onnx::Runtime::any, "runtime"));
  request.on_overflow = TRY(choice(given.on_overflow, onnx::OnOverflow::error, "on_overflow"));
  request.opset = given.opset;
  request.keep_io_types = given.keep_io_types != 0;
  request.weights_only = given.weights_only != 0;
  request.overwrite = given.overwrite != 0;
  request.dry_run = given.dry_run != 0;
  if (given.progress != nullptr) {
    request.on_progress = [progress = given.progress, data = given.progress_data] { return progress(data) != 0; };
  }
  return {};
}

tc_onnx_convert_outcome counts(const onnx::ConvertOutcome& outcome) {
  return {.struct_size = 0,
          .nodes = outcome.nodes,
          .nodes_converted = outcome.nodes_converted,
          .nodes_kept = outcome.kept.size(),
          .casts_before = outcome.casts_before,
          .casts_added = outcome.casts_added,
          .casts_removed = outcome.casts_removed,
          .casts_after = outcome.casts_after,
          .initializers_converted = outcome.initializers_converted,
          .initializer_bytes_before = outcome.initializer_bytes_before,
          .initializer_bytes_after = outcome.initializer_bytes_after,
          .opset_before = outcome.opset_before,
          .opset_after = outcome.opset_after,
          .to = static_cast<tc_dtype>(outcome.to)};
}

}  // namespace

extern "C" {

tc_status tc_onnx_convert(const char* input, const char* output, tc_dtype to, const tc_onnx_convert_options* options,
                          tc_onnx_convert_outcome* outcome) {
  return run([&]() -> Result<void> {
    if (input == nullptr || output == nullptr) return invalid("a path is null");
    if (outcome != nullptr) TRY(check_size(*outcome));  // before anything is written
    onnx::ConvertRequest request;
    request.input = input;
    request.output = output;
    request.to = static_cast<tensorcast::DType>(to);
    if (options != nullptr) {
      const tc_onnx_convert_options defaults = TC_ONNX_CONVERT_OPTIONS_INIT;
      TRY(set(TRY(read_struct(defaults, options)), request));
    }
    const onnx::ConvertOutcome done = TRY(onnx::convert(request));
    return outcome == nullptr ? Result<void>() : fill_struct(outcome, counts(done));
  });
}

}  // extern "C"
