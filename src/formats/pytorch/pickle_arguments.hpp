// SPDX-License-Identifier: Apache-2.0
// The arguments of a call in a pickle, with checked types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

class Arguments {
 public:
  // `tuple` is a container among `objects`, which outlive this.
  Arguments(const Objects& objects, Ref tuple) : objects_(objects), tuple_(tuple) {}

  [[nodiscard]] std::size_t count() const { return objects_[tuple_].items.size(); }
  // Errors of all: parse.
  [[nodiscard]] Result<Ref> at(std::size_t index) const;
  [[nodiscard]] Result<Ref> at(std::size_t index, Kind kind) const;
  [[nodiscard]] Result<std::uint64_t> size_at(std::size_t index) const;               // a non-negative integer
  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_at(std::size_t index) const;  // of a tuple or list

 private:
  const Objects& objects_;
  Ref tuple_;
};

// Adds a tensor to `objects`. Errors: unsupported (memory).
[[nodiscard]] Result<Ref> add_tensor(Objects& objects, StridedTensor tensor);

}  // namespace tensorcast::formats::pytorch
