// SPDX-License-Identifier: Apache-2.0
// Writes one TensorProto, fields in ascending order as protobuf's own writers do, numbers always as raw_data.
#pragma once

#include <span>
#include <string>

#include "formats/format.hpp"
#include "io/output_file.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::formats::onnx {

class TensorProtoWriter final : public Writer {
 public:
  // `file` outlives the writer.
  TensorProtoWriter(io::OutputFile& file, TensorInfo info, const Metadata& metadata);

  // Errors: unsupported if the message would exceed protobuf's limit; io.
  [[nodiscard]] Result<void> begin();
  Result<void> append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Result<void> append_strings(const StringBuffer& strings) override;
  Result<void> finish() override;

 private:
  [[nodiscard]] std::string head() const;

  io::OutputFile& file_;
  TensorInfo info_;
  std::string tail_;  // encoded fields that follow the data
};

}  // namespace tensorcast::formats::onnx
