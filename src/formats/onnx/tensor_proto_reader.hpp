// SPDX-License-Identifier: Apache-2.0
// Reads a TensorProto, alone in its file or inside a model, with elements in any of its fields or outside.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "formats/onnx/tensor_proto_outline.hpp"
#include "formats/onnx/value_stream.hpp"
#include "io/input_file.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::formats::onnx {

class TensorProtoReader final : public Reader {
 public:
  // `message` is a range of `file`, which outlives the reader and whose folder holds the external data, if any.
  // Errors: parse, unsupported, io; Error::file and Error::tensor name the place.
  [[nodiscard]] static Result<std::unique_ptr<TensorProtoReader>> open(const io::InputFile& file, ByteRange message);

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return outline_.metadata; }
  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first, std::size_t block_bytes) override;

  [[nodiscard]] const Outline& outline() const noexcept { return outline_; }
  // Returns the file of external data; null if there is none.
  [[nodiscard]] const io::InputFile* external_file() const noexcept { return external_ ? &*external_ : nullptr; }

 private:
  TensorProtoReader(const io::InputFile& file, ByteRange message, Outline outline);
  [[nodiscard]] Result<void> open_external();
  [[nodiscard]] Result<void> read_from(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Error located(Error error) const;
  template <class T>
  [[nodiscard]] Result<T> located(Result<T> result) const {
    return result ? std::move(result) : located(std::move(result).error());
  }

  const io::InputFile& file_;
  Outline outline_;
  std::vector<TensorInfo> tensors_;
  ValueStream values_;
  std::optional<io::InputFile> external_;
};

}  // namespace tensorcast::formats::onnx
