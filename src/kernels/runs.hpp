// Numbers in runs that share a scale, and ggml's blocks, which become such runs.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "tensorcast/block.hpp"

namespace tensorcast::kernels {

// One of each for a run. Null zeros are 0; null biases add nothing.
struct RunParameters {
  const float* scales = nullptr;
  const float* zeros = nullptr;
  const float* biases = nullptr;
};

// Numbers that share parameters: `run_of_all`, or 1, 16 or 32.
inline constexpr unsigned run_of_all = 0;

// The step of ScaleRunsFn's count: buffers and parameters are readable, and the target is writable, up to it.
inline constexpr std::size_t run_step = 64;

// Element i becomes (src[i] - zero) * scale + bias, each operation rounded to float32, and then rounded to the target.
// `count` is a multiple of run_step. `src` and `dst` have any alignment and are disjoint.
using ScaleRunsFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& parameters);

// A chunk of ggml's blocks as integers, with parameters for each run of them.
struct GgufRuns {
  static constexpr std::size_t max_elements = 2048;

  std::int8_t q[max_elements];
  float scales[max_elements / 16];
  float biases[max_elements / 16];
};

// Unpacks `blocks` blocks, of at most GgufRuns::max_elements elements.
using UnpackGgufFn = void (*)(const std::byte* src, std::size_t blocks, GgufRuns& runs);

}  // namespace tensorcast::kernels
