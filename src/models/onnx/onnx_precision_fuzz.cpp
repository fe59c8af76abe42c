// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an ONNX model, and does all that `tcast onnx` can do to its precision. What is written must
// be readable, and C must count what C++ does. The bytes also choose the options.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include "tensorcast/c_onnx.h"
#include "tensorcast/onnx.hpp"

namespace {

using namespace tensorcast;

onnx::ConvertRequest request_of(const std::string& path, unsigned choice) {
  constexpr DType targets[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};
  constexpr DType stored[] = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::int8};
  onnx::ConvertRequest request{.input = path, .dry_run = true, .overwrite = true};
  request.weights_only = choice % 3 == 0;
  request.to = (request.weights_only ? stored : targets)[choice / 3 % 4];
  if (request.weights_only && choice / 2304 % 2 == 1) {
    constexpr const char* schemes[] = {"nvfp4", "mxfp4", "int4-group", "float8"};
    request.weights_scheme = schemes[choice / 3 % 4];
    request.to = DType::undefined;
    request.opset = onnx::auto_opset;
  }
  request.keep_io_types = choice / 12 % 2 == 1;
  request.runtime = static_cast<onnx::Runtime>(choice / 24 % 5);
  request.shared_initializers = static_cast<onnx::SharedInitializers>(choice / 48 % 2);
  request.on_overflow = static_cast<onnx::OnOverflow>(choice / 96 % 3);
  request.functions = static_cast<onnx::Functions>(choice / 1152 % 2);
  if (choice / 288 % 4 == 1) request.keep = {"glob:*a*"};
  if (choice / 288 % 4 == 2) request.external_data = onnx::ExternalData::per_tensor;
  return request;
}

// C has the other options of the request.
void check_in_c(const onnx::ConvertRequest& request) {
  const onnx::ConvertRequest usual;
  onnx::ConvertRequest in_cpp = request;
  in_cpp.functions = usual.functions;
  in_cpp.shared_initializers = usual.shared_initializers;
  in_cpp.external_data = usual.external_data;
  const Result<onnx::ConvertOutcome> expected = onnx::convert(in_cpp);

  const char* const keep = request.keep.empty() ? nullptr : request.keep.front().c_str();
  tc_onnx_convert_options options = TC_ONNX_CONVERT_OPTIONS_INIT;
  options.weights_scheme = request.weights_scheme.empty() ? nullptr : request.weights_scheme.c_str();
  options.keep = &keep;
  options.keep_count = request.keep.size();
  options.opset = request.opset;
  options.runtime = static_cast<std::int32_t>(request.runtime);
  options.on_overflow = static_cast<std::int32_t>(request.on_overflow);
  options.keep_io_types = request.keep_io_types;
  options.weights_only = request.weights_only;
  options.dry_run = 1;
  tc_onnx_convert_outcome outcome = TC_ONNX_CONVERT_OUTCOME_INIT;
  const tc_status status =
      tc_onnx_convert(request.input.c_str(), "", static_cast<tc_dtype>(request.to), &options, &outcome);
  if (status != (expected ? TC_OK : static_cast<tc_status>(expected.error().code))) std::abort();
  if (!expected) return;
  if (outcome.nodes != expected->nodes || outcome.nodes_converted != expected->nodes_converted ||
      outcome.nodes_kept != expected->kept.size() || outcome.casts_after != expected->casts_after ||
      outcome.initializer_bytes_after != expected->initializer_bytes_after) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("model", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();

  const bool is_readable = onnx::list_casts(path).ok();
  (void)onnx::list_initializers(path);
  (void)onnx::draw({.input = path, .max_vertices = 100});
  (void)onnx::diff({.a = path, .b = path});
  if (!is_readable) return 0;
  (void)onnx::clean({.input = path, .dry_run = true});
  const unsigned choice =
      std::accumulate(data, data + size, 0u, [](unsigned sum, unsigned byte) { return sum * 31 + byte; });
  onnx::ConvertRequest request = request_of(path, choice);
  const bool converts = onnx::convert(request).ok();

  if (choice / 16 % 4 == 0) check_in_c(request);

  // Writing waits for the disk.
  if (choice % 16 != 0) return 0;
  static const std::string folder = [] {
    std::string pattern = "/tmp/onnx-precision-fuzz-XXXXXX";
    return std::string(::mkdtemp(pattern.data()));
  }();
  const std::string made = folder + "/made.onnx";
  const auto must_be_readable = [&] {
    if (!onnx::list_casts(made).ok()) std::abort();
  };
  request.dry_run = false;
  request.output = made;
  if (converts && onnx::convert(request)) must_be_readable();
  if (onnx::clean({.input = path, .output = made, .overwrite = true})) must_be_readable();
  if (onnx::use_tensorcast({.input = path, .output = made, .overwrite = true})) must_be_readable();
  for (const auto to : {onnx::MatMulSpelling::matmulnbits, onnx::MatMulSpelling::qdq}) {
    if (onnx::respell({.input = path, .output = made, .to = to, .overwrite = true})) must_be_readable();
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::filesystem::remove(entry.path());
  return 0;
}
