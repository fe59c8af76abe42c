// SPDX-License-Identifier: Apache-2.0
// A reader that has the tensors of another, and more or fewer of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/format.hpp"

namespace tensorcast::formats {

// All but reading tensors is as the other reader has it.
class WrappedReader : public Reader {
 public:
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  [[nodiscard]] const Metadata& metadata() const override { return inner_.metadata(); }
  [[nodiscard]] bool compressed() const override { return inner_.compressed(); }
  [[nodiscard]] std::string_view native_metadata() const override { return inner_.native_metadata(); }
  [[nodiscard]] std::string_view other_data() const override { return inner_.other_data(); }
  [[nodiscard]] const std::vector<std::string>& warnings() const override { return inner_.warnings(); }
  [[nodiscard]] Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first,
                                                  std::size_t block_bytes) override {
    return inner_.read_strings(index, first, block_bytes);
  }

 protected:
  // `inner` outlives it.
  WrappedReader(Reader& inner, std::vector<TensorInfo> tensors) : inner_(inner), tensors_(std::move(tensors)) {}

  Reader& inner_;
  std::vector<TensorInfo> tensors_;
};

// Some tensors of another reader.
class ChosenTensors final : public WrappedReader {
 public:
  explicit ChosenTensors(Reader& inner) : WrappedReader(inner, {}) {}

  // Adds the tensor at a place of the other reader.
  void add(std::size_t place) { add(place, inner_.tensors()[place].name); }
  void add(std::size_t place, const std::string& new_name) {
    tensors_.push_back(inner_.tensors()[place]);
    tensors_.back().name = new_name;
    places_.push_back(place);
  }
  // Returns the place of a tensor in the other reader.
  [[nodiscard]] std::size_t place_of(std::size_t index) const { return places_[index]; }
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return inner_.read(places_[index], offset, out);
  }
  [[nodiscard]] Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first,
                                                  std::size_t block_bytes) override {
    return inner_.read_strings(places_[index], first, block_bytes);
  }

 private:
  std::vector<std::size_t> places_;
};

}  // namespace tensorcast::formats
