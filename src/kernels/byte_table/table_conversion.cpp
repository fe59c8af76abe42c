// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/table_conversion.hpp"

#include "codec/packing.hpp"
#include "kernels/byte_table/six_bit_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

// Codes of six bits are looked up as those of the type that holds them.
DType code_type(DType from) { return byte_table::has_six_bits(row(from)) ? byte_table::six_bit_hub : from; }

}  // namespace

TableConversion::TableConversion(Target target, DType from, DType to, const codec::Policy& policy) noexcept
    : reader_(byte_table::fill_table(ops_of(target).table_loops(), code_type(from), to, policy, table_.data())),
      target_(target),
      from_(from),
      to_(to) {
  static_assert(byte_table::most_table_bytes(DType::int2, DType::float64) <= most_bytes);
}

TableConversion::TableConversion(Target target, const std::array<std::uint8_t, 256>& outputs) noexcept
    : reader_(byte_table::fill_byte_table(ops_of(target).table_loops(), outputs, table_.data())),
      target_(target),
      from_(DType::uint8),
      to_(DType::uint8) {}

void TableConversion::run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  if (count == 0) return;
  const Ops& ops = ops_of(target_);
  const auto look_up = [this](const std::byte* codes, std::byte* results, std::size_t n) {
    reader_(codes, results, n, table_.data());
  };
  const auto convert = [&](const std::byte* codes, std::byte* results, std::size_t n) {
    if (!byte_table::has_six_bits(row(to_))) return look_up(codes, results, n);
    byte_table::pack_pieces(ops, codes, code_type(from_), results, n, look_up);
  };
  if (byte_table::has_six_bits(row(from_))) {
    byte_table::unpack_pieces(ops, from_, src, dst, to_, count, convert);
  } else {
    convert(src, dst, count);
  }
  codec::clear_tail(to_, dst, count);
}

}  // namespace tensorcast::kernels
