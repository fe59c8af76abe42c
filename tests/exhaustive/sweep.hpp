// SPDX-License-Identifier: Apache-2.0
// Kernels of one instruction set against the oracle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle.hpp"
#include "tensorcast/target.hpp"

namespace oracle {

struct SweepResult {
  std::uint64_t compared = 0;
  std::uint64_t mismatches = 0;
  std::string first_mismatch;  // with the command that replays it
};

// float32 codes, all 2^32 of them or one block in `stride`, spread over `threads`.
SweepResult sweep_float32(tensorcast::Target target, Type to, const tc_cast_options& options, unsigned stride,
                          unsigned threads);

// Any codes of any pair, element by element, on each of the targets.
SweepResult compare_codes(std::span<const tensorcast::Target> targets, Type from, std::span<const std::uint64_t> codes,
                          Type to, const tc_cast_options& options);

// Windows of consecutive codes around each place where a 64-bit source changes its result.
std::vector<std::uint64_t> neighbourhood_codes(Type from, Type to, std::size_t budget);

}  // namespace oracle
