// Tables: filled by the reference once, then shared by all threads without locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codec/policy.hpp"
#include "kernels/narrow/layout.hpp"

namespace tensorcast::kernels::narrow {

// What each index becomes, as it is stored.
using Outputs = std::array<std::array<std::byte, 32>, 256>;  // of at most four float64

// Writes layout.table_bytes() bytes.
void lay_out(const Layout& layout, const Outputs& outputs, std::byte* table) noexcept;

// What codec::cast_code says of every index.
[[nodiscard]] Outputs outputs_of(const Layout& layout, DType from, DType to, const codec::Policy& policy) noexcept;

// Whether a layout in planes, made for another policy, holds these too.
[[nodiscard]] bool fits_planes(const Layout& layout, const Outputs& outputs) noexcept;

// Lays out what codec::cast_code says.
void fill_table(const Layout& layout, DType from, DType to, const codec::Policy& policy, std::byte* table) noexcept;

// A place in static memory for one table. The first thread that offers a table fills it; a thread that comes before it
// is full uses a table of its own instead of waiting.
template <std::size_t size>
class TableSlot {
 public:
  [[nodiscard]] const std::byte* find() const noexcept {
    return state_.load(std::memory_order_acquire) == State::full ? table_ : nullptr;
  }

  void offer(const std::byte* table) noexcept {
    State expected = State::empty;
    if (!state_.compare_exchange_strong(expected, State::being_filled, std::memory_order_relaxed)) return;
    std::memcpy(table_, table, size);
    state_.store(State::full, std::memory_order_release);
  }

 private:
  enum class State : std::uint8_t { empty, being_filled, full };

  alignas(64) std::byte table_[size] = {};
  std::atomic<State> state_ = State::empty;
};

}  // namespace tensorcast::kernels::narrow
