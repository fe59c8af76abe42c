#include "kernels/narrow/table_conversion.hpp"

#include <algorithm>
#include <cstring>

#include "codec/packing.hpp"
#include "kernels/narrow/six_bits.hpp"
#include "kernels/narrow/table.hpp"

namespace tensorcast::kernels {
namespace narrow {
namespace {

template <Engine engine>
Loop find_loop(const Loops& loops, const Layout& layout) {
  return loops[layout_list<engine>.index_of(layout)];
}

Loop loop_of(const Layout& layout) {
  switch (layout.engine) {
    case Engine::scalar:
      break;
#if defined(__x86_64__)
    case Engine::avx2:
      return find_loop<Engine::avx2>(avx2_loops, layout);
    case Engine::avx512:
      return find_loop<Engine::avx512>(avx512_loops, layout);
    case Engine::avx512vbmi:
      return find_loop<Engine::avx512vbmi>(avx512vbmi_loops, layout);
#else
    default:
      break;
#endif
  }
  return find_loop<Engine::scalar>(scalar_loops, layout);
}

constexpr std::size_t largest_table() {
  std::size_t most = 0;
  for (const Target target : all_targets) {
    for (const DTypeRow& from : dtype_table) {
      for (const DTypeRow& to : dtype_table) {
        if (!has_tables(from) || to.family == Family::text) continue;
        const std::size_t bytes = general_layout(target, from.id, to.id).table_bytes();
        most = bytes > most ? bytes : most;
      }
    }
  }
  return most;
}

}  // namespace
}  // namespace narrow

bool TableConversion::pays(Target target, DType from, DType to, std::size_t count) noexcept {
  constexpr std::size_t per_code = 256;  // elements that another way converts while the reference looks at one code
  constexpr std::size_t layout_cost = 4096;
  if (bit_width(from) > 8) return false;
  if (narrow::has_six_bits(row(from))) from = narrow::six_bit_hub;
  const std::size_t codes = std::size_t{1} << narrow::index_bits_of_element(from);
  if (codes == 256 && to == DType::float64 && !narrow::multiplies(target, to)) return false;
  return count >= std::max(codes * per_code, layout_cost);
}

TableConversion::TableConversion(Target target, DType from, DType to, const codec::Policy& policy) noexcept
    : target_(target), from_(from), to_(to) {
  if (narrow::has_six_bits(row(from))) from = narrow::six_bit_hub;
  static_assert(narrow::largest_table() <= most_bytes);
  narrow::Layout layout = narrow::general_layout(target, from, to);
  // Zero makes NaN of infinity, whose sign the specification states: that is no product of the CPU.
  if (layout.is_scaled && policy.scale == 0.0) layout = narrow::scalar_layout(from, to);
  codec::Policy for_outputs = policy;
  if (layout.is_scaled) for_outputs.scale = 1.0;
  const narrow::Outputs outputs = narrow::outputs_of(layout, from, to, for_outputs);
  if (layout.is_scaled) {
    std::memcpy(table_.data() + layout.planes_bytes(), &policy.scale, sizeof policy.scale);
  } else if (from != to) {  // most scales leave as many bytes zero, or no more than a sign, as the pair itself has
    const narrow::Layout own = narrow::layout_of(target, from, to);
    const bool in_planes = own.form == narrow::Form::bytes || own.form == narrow::Form::words;
    if (in_planes && own.index_elements == layout.index_elements && narrow::fits_planes(own, outputs)) layout = own;
  }
  loop_ = narrow::loop_of(layout);
  narrow::lay_out(layout, outputs, table_.data());
}

TableConversion::TableConversion(Target target, const std::array<std::uint8_t, 256>& outputs) noexcept
    : target_(target), from_(DType::uint8), to_(DType::uint8) {
  const narrow::Layout layout = narrow::general_layout(target, DType::uint8, DType::uint8);
  loop_ = narrow::loop_of(layout);
  narrow::Outputs stored = {};
  for (std::size_t i = 0; i < outputs.size(); ++i) stored[i][0] = std::byte{outputs[i]};
  narrow::lay_out(layout, stored, table_.data());
}

void TableConversion::run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  if (count == 0) return;
  const Ops& ops = ops_of(target_);
  const auto look_up = [this](const std::byte* codes, std::byte* results, std::size_t n) {
    loop_(codes, results, n, table_.data());
  };
  const auto convert = [&](const std::byte* codes, std::byte* results, std::size_t n) {
    if (!narrow::has_six_bits(row(to_))) return look_up(codes, results, n);
    const DType from = narrow::has_six_bits(row(from_)) ? narrow::six_bit_hub : from_;
    narrow::pack_pieces(ops, codes, from, results, n, look_up);
  };
  if (narrow::has_six_bits(row(from_))) {
    narrow::unpack_pieces(ops, from_, src, dst, to_, count, convert);
  } else {
    convert(src, dst, count);
  }
  codec::clear_tail(to_, dst, count);
}

}  // namespace tensorcast::kernels
