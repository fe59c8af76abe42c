// SPDX-License-Identifier: Apache-2.0
// Runs the engine on elements and compares every bit, event and error with the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle.hpp"

namespace oracle {

// Dense storage, low bits first (D11).
std::vector<std::byte> pack(Type type, std::span<const std::uint64_t> codes);
std::vector<std::uint64_t> unpack(Type type, std::span<const std::byte> storage, std::size_t count);

struct CAbiResult {
  tc_status status = TC_OK;
  std::string message;               // of a failure
  std::vector<std::uint64_t> codes;  // of a success
  std::string storage_fault;         // bytes written outside, tail bits that are not zero
};
// Calls tc_cast with source and target misaligned by `misalignment` bytes.
CAbiResult run_tc_cast(Type from, std::span<const std::uint64_t> codes, Type to, const tc_cast_options& options,
                       std::size_t misalignment = 0);

// Returns the options that affect a pair, in all combinations, at the opsets where rules change; and one set with every
// option that must have no effect.
std::vector<tc_cast_options> option_sets(Type from, Type to);

// "oracle_replay float32 0x43e80001 float8_e4m3fn opset=23 saturate=0": the command that shows one element again.
std::string replay_command(Type from, std::uint64_t code, Type to, const tc_cast_options& options);

// Converts `codes` under each of `sets` (which share their scale) by tc_cast, by codec::cast_code and by cast() with a
// report. Returns the first few disagreements with their replay commands; empty when all is right.
std::vector<std::string> disagreements(Type from, std::span<const std::uint64_t> codes, Type to,
                                       std::span<const tc_cast_options> sets);

}  // namespace oracle
