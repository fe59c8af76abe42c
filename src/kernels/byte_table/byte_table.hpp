// SPDX-License-Identifier: Apache-2.0
// Tables of all results of a pair: filled by the reference once, then shared by all threads without locks.
//
// A source of 8 bits or fewer has at most 256 codes, so its conversion under any policy is a table, exact by
// construction. The kernels only look up and order bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codec/policy.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/byte_table/loop.hpp"

namespace tensorcast::kernels::byte_table {

constexpr bool is_byte_source(const DTypeRow& type) { return type.family != Family::text && type.bits <= 8; }

constexpr bool has_six_bits(const DTypeRow& type) { return type.bits == 6; }
// In tables, a code of six bits has a byte of its own: six_bits.hpp.
constexpr int table_bits(DType to) { return has_six_bits(row(to)) ? 8 : row(to).bits; }
constexpr bool is_packed(DType type) { return row(type).bits < 8 && !has_six_bits(row(type)); }

// The loop that reads a table. All zero until there is one, so that slots need no room in the binary.
struct Reader {
  const Loop* loop = nullptr;
  int index_elements = 0;

  void operator()(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) const {
    loop->run(src, dst, count, index_elements, table);
  }
};

// Writes a table of the results of codec::cast_code for the cheapest of `loops` that can have them, else for a scalar
// loop. The size of `table` is most_table_bytes(loops, from, to).
[[nodiscard]] Reader fill_table(Loops loops, DType from, DType to, const codec::Policy& policy,
                                std::byte* table) noexcept;
// A table from bytes to bytes.
[[nodiscard]] Reader fill_byte_table(Loops loops, const std::array<std::uint8_t, 256>& outputs,
                                     std::byte* table) noexcept;

// Room for the tables of scalar loops, which have most.
constexpr std::size_t most_table_bytes(DType from, DType to) {
  const int output_bits = 8 / row(from).bits * table_bits(to);
  return 256 * static_cast<std::size_t>(output_bits < 8 ? 1 : output_bits / 8);
}

// A place in static memory for one table. The first thread that offers a table fills it; a thread that comes before it
// is full uses a table of its own instead of waiting.
template <std::size_t size>
class TableSlot {
 public:
  [[nodiscard]] const std::byte* find() const noexcept {
    return state_.load(std::memory_order_acquire) == State::full ? table_ : nullptr;
  }
  // Precondition: find() gave a table.
  [[nodiscard]] const Reader& reader() const noexcept { return reader_; }

  void offer(const Reader& reader, const std::byte* table) noexcept {
    State expected = State::empty;
    if (!state_.compare_exchange_strong(expected, State::being_filled, std::memory_order_relaxed)) return;
    reader_ = reader;
    std::memcpy(table_, table, size);
    state_.store(State::full, std::memory_order_release);
  }

 private:
  enum class State : std::uint8_t { empty, being_filled, full };

  alignas(64) std::byte table_[size] = {};
  Reader reader_;
  std::atomic<State> state_ = State::empty;
};

}  // namespace tensorcast::kernels::byte_table
