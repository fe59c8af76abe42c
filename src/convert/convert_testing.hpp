// SPDX-License-Identifier: Apache-2.0
// Shared by tests of conversions: safetensors files made from values, and requests for them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/format_list.hpp"
#include "formats/format_testing.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::file_conversion::testing {

using formats::testing::file_content;
using formats::testing::FileTensor;
using formats::testing::make_tensor;
using formats::testing::TempFolder;

inline FileTensor floats(std::string name, const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_tensor(std::move(name), DType::float32, {static_cast<std::int64_t>(values.size())}, std::move(bytes));
}

// Returns values that no narrow type holds exactly, different in every place.
inline std::vector<float> many_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 8191) * 0.37f - 1234.5f;
  return values;
}

inline std::string write_safetensors(const TempFolder& folder, const std::string& name,
                                     const std::vector<FileTensor>& tensors, const formats::Metadata& metadata = {}) {
  const std::string path = folder.file(name);
  const Result<void> written = formats::testing::write_all(formats::safetensors_format, path, tensors,
                                                           {.metadata = metadata, .source_format = {}});
  EXPECT_TRUE(written.ok()) << written.error().describe();
  return path;
}

inline std::vector<FileTensor> read_safetensors(const std::string& path) {
  Result<std::vector<FileTensor>> tensors = formats::testing::read_all(formats::safetensors_format, path);
  EXPECT_TRUE(tensors.ok()) << tensors.error().describe();
  return tensors.ok() ? std::move(tensors).value() : std::vector<FileTensor>();
}

inline ConvertRequest request(std::string input, std::string output, DType to) {
  ConvertRequest request;
  request.input = std::move(input);
  request.output = std::move(output);
  request.to = to;
  return request;
}

// Converts `bytes` of type `from` to `to` by the library itself: other tests check conversions.
inline std::string cast_bytes(const std::string& bytes, DType from, DType to, std::size_t count,
                              const CastOptions& options = {}) {
  const auto elements = std::as_bytes(std::span(bytes));
  const Result<Tensor> source =
      Tensor::own(from, {static_cast<std::int64_t>(count)}, {elements.begin(), elements.end()});
  const Result<Tensor> result = source ? cast(*source, to, options) : source;
  if (!result) {
    ADD_FAILURE() << result.error().describe();
    return {};
  }
  return std::string(reinterpret_cast<const char*>(result->bytes().data()), result->bytes().size());
}

}  // namespace tensorcast::file_conversion::testing
