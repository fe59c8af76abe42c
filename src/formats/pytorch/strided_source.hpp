// The elements of a strided tensor in C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/pytorch/pickle_values.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::pytorch {

class StridedSource {
 public:
  // Reads bytes of the storage at an offset.
  using ReadStorage = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> out)>;

  // All elements of `tensor` lie inside the storage of `storage_bytes`. `swap`: the storage has the other byte order.
  StridedSource(const StridedTensor& tensor, std::uint64_t storage_bytes, bool swap, ReadStorage read);

  // Reads the bytes [offset, offset + out.size()) of the elements. Memory: blocks of 16 MiB. Errors: those of `read`.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  struct Dimension {
    std::uint64_t extent = 0;
    std::uint64_t stride = 0;  // in the storage, in items
    std::uint64_t step = 0;    // in C order, in items
  };

  [[nodiscard]] Result<void> load_block(std::uint64_t item);
  [[nodiscard]] Result<void> gather(std::uint64_t first, std::vector<Dimension> dimensions);
  // Copies items `stride` apart in the storage to every `step`-th item of the block.
  [[nodiscard]] Result<void> copy_run(std::uint64_t item, const Dimension& run, std::uint64_t target, bool ahead);
  void swap_bytes(std::span<std::byte> items) const;

  std::uint64_t item_bytes_;
  std::uint64_t word_bytes_;  // 1 unless bytes are swapped
  std::uint64_t offset_;      // of the first element, in items
  std::uint64_t storage_bytes_;
  ReadStorage read_;
  bool direct_ = false;                // the storage has the bytes as they are
  std::vector<Dimension> dimensions_;  // without those of one element
  std::uint64_t block_begin_ = 0;      // in bytes, C order
  std::vector<std::byte> block_;
  std::uint64_t window_begin_ = 0;  // in bytes of the storage
  std::vector<std::byte> window_;
};

// Reports whether the elements are in C order without gaps.
[[nodiscard]] bool is_contiguous(const StridedTensor& tensor);

}  // namespace tensorcast::formats::pytorch
