// SPDX-License-Identifier: Apache-2.0
// Reads the .bin file beside an IR: the bytes of its constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorcast/tensor.hpp"

namespace tensorcast::models::openvino_ir {

// Constants of equal offset and size share their bytes, so memory is not larger than the file.
class Weights {
 public:
  struct Source {
    std::uint64_t size = 0;
    std::string path;  // for messages
    std::function<Result<void>(std::uint64_t offset, std::span<std::byte>)> read;
  };
  // Called for the first constant; a model without constants needs no file.
  using Open = std::function<Result<Source>()>;

  explicit Weights(Open open) : open_(std::move(open)) {}

  // Returns a constant. `u1` becomes uint8, one byte per element. Errors: parse: a range outside the file, constants
  // that overlap partly; io.
  [[nodiscard]] Result<Tensor> constant(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset,
                                        std::uint64_t size);

 private:
  Result<Tensor> read(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset, std::uint64_t size);

  Open open_;
  std::optional<Source> source_;
  std::uint64_t kept_ = 0;
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // offset and size
  std::map<Range, std::shared_ptr<const std::vector<std::byte>>> ranges_;
  std::map<Range, std::shared_ptr<const std::vector<std::byte>>> unpacked_;  // u1, a byte for every bit
};

}  // namespace tensorcast::models::openvino_ir
