// SPDX-License-Identifier: Apache-2.0
// Whether chunks fill a tensor.
#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "formats/pytorch/distributed_metadata.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::pytorch {
namespace {

bool overlap(const TensorChunk& a, const TensorChunk& b) {
  for (std::size_t i = 0; i < a.offsets.size(); ++i) {
    if (a.offsets[i] + a.sizes[i] <= b.offsets[i] || b.offsets[i] + b.sizes[i] <= a.offsets[i]) return false;
  }
  return true;
}

// Returns the dimension in which the chunks have the most different offsets, so that few are side by side in it.
std::size_t most_divided(std::size_t rank, const std::vector<const TensorChunk*>& chunks) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t dimension = 0; dimension < rank; ++dimension) {
    std::vector<std::int64_t> offsets;
    for (const TensorChunk* chunk : chunks) offsets.push_back(chunk->offsets[dimension]);
    std::ranges::sort(offsets);
    const auto different = static_cast<std::size_t>(std::ranges::unique(offsets).begin() - offsets.begin());
    if (different > most) {
      most = different;
      best = dimension;
    }
  }
  return best;
}

}  // namespace

Result<void> check_chunks(const std::vector<std::int64_t>& shape, const std::vector<TensorChunk>& chunks) {
  const Result<std::size_t> count = element_count(shape);
  if (!count) return damaged_distributed(count.error().message);
  std::uint64_t filled = 0;
  std::vector<const TensorChunk*> boxes;
  for (const TensorChunk& chunk : chunks) {
    if (chunk.offsets.size() != shape.size() || chunk.sizes.size() != shape.size()) {
      return damaged_distributed("a chunk has other dimensions than its tensor");
    }
    std::uint64_t volume = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (chunk.offsets[i] > shape[i] || chunk.sizes[i] > shape[i] - chunk.offsets[i]) {
        return damaged_distributed("a chunk reaches out of its tensor");
      }
      volume *= static_cast<std::uint64_t>(chunk.sizes[i]);  // at most *count, unless that is 0
    }
    if (volume == 0 || *count == 0) continue;
    if (volume > *count - filled) return damaged_distributed("the chunks of the tensor overlap");
    filled += volume;
    boxes.push_back(&chunk);
  }
  if (filled != *count) {
    return damaged_distributed(fmt::format("{} of {} elements of the tensor are in no chunk", *count - filled, *count));
  }
  if (boxes.size() < 2) return {};
  const std::size_t along = most_divided(shape.size(), boxes);
  std::ranges::sort(boxes, {}, [&](const TensorChunk* chunk) { return chunk->offsets[along]; });
  constexpr std::uint64_t most_comparisons = 300'000'000;
  std::uint64_t comparisons = 0;
  std::vector<const TensorChunk*> beside;
  for (const TensorChunk* chunk : boxes) {
    comparisons += beside.size();
    if (comparisons > most_comparisons) return unsupported("the tensor has too many chunks side by side");
    std::erase_if(beside, [&](const TensorChunk* other) {
      return other->offsets[along] + other->sizes[along] <= chunk->offsets[along];
    });
    for (const TensorChunk* other : beside) {
      if (overlap(*chunk, *other)) return damaged_distributed("the chunks of the tensor overlap");
    }
    beside.push_back(chunk);
  }
  return {};
}

}  // namespace tensorcast::formats::pytorch
