// The rows of all pairs whose source has 8 bits or fewer: a kernel finds its table and runs the engine's loop.
#include <array>
#include <utility>

#include "codec/reference_cast.hpp"
#include "kernels/narrow/loops.hpp"
#include "kernels/narrow/six_bits.hpp"
#include "kernels/narrow/table.hpp"
#include "kernels/narrow/variants.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace narrow {
namespace {

template <Layout layout>
void run_loop(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr std::size_t index = layout_list<layout.engine>.index_of(layout);
  if constexpr (layout.engine == Engine::scalar) scalar_loops[index](src, dst, count, table);
#if defined(__x86_64__)
  if constexpr (layout.engine == Engine::avx2) avx2_loops[index](src, dst, count, table);
  if constexpr (layout.engine == Engine::avx512) avx512_loops[index](src, dst, count, table);
  if constexpr (layout.engine == Engine::avx512vbmi) avx512vbmi_loops[index](src, dst, count, table);
#endif
}

// Until the slot has the table of this policy: makes one on the stack, uses it and offers it.
template <Layout layout, std::size_t size>
[[gnu::noinline, gnu::cold]] void convert_first(const std::byte* src, DType from, std::byte* dst, DType to,
                                                std::size_t count, const codec::Policy& policy, TableSlot<size>& slot) {
  alignas(64) std::byte table[size];
  fill_table(layout, from, to, policy, table);
  slot.offer(table);
  run_loop<layout>(src, dst, count, table);
}

template <Layout layout, DType from, DType to>
void convert_by_table(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy) {
  constexpr Choice choice = choice_of(from, to);
  static constinit TableSlot<layout.table_bytes()> slots[variant_count(choice)];
  auto& slot = slots[variant_of<choice>(policy)];
  if (const std::byte* table = slot.find(); table != nullptr) [[likely]] {
    run_loop<layout>(src, dst, count, table);
  } else {
    convert_first<layout>(src, from, dst, to, count, policy, slot);
  }
  if constexpr (is_packed(to)) {
    const std::size_t used_bits = count * row(to).bits % 8;
    if (used_bits != 0) dst[count * row(to).bits / 8] &= static_cast<std::byte>((1u << used_bits) - 1);
  }
}

template <Layout layout, DType from, DType to>
void convert(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy) {
  if (count == 0) return;
  if constexpr (layout.form == Form::none) {
    run_loop<layout>(src, dst, count, nullptr);
  } else {
    convert_by_table<layout, from, to>(src, dst, count, policy);
  }
}

template <Target target, Layout layout, DType from, DType to>
void convert_to_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy) {
  pack_pieces(ops_of(target), src, from, dst, count, [&](const std::byte* piece, std::byte* codes, std::size_t n) {
    convert_by_table<layout, from, to>(piece, codes, n, policy);
  });
}

template <Target target, DType from, DType to>
void convert_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy) {
  const Ops& ops = ops_of(target);
  if constexpr (to == six_bit_hub) {
    ops.look_up_six_bits(src, dst, count, hub_codes(from));
  } else {
    const KernelFn convert_hub = find_kernel(target, six_bit_hub, to)->run;
    unpack_pieces(ops, from, src, dst, to, count, [&](const std::byte* codes, std::byte* piece, std::size_t n) {
      convert_hub(codes, piece, n, policy);
    });
  }
}

constexpr std::string_view algorithm(const Layout& layout) {
  switch (layout.form) {
    case Form::elements:
      return "scalar table";
    case Form::bytes:
      return layout.index_bits < 8 ? "byte shuffle" : "byte permute";
    case Form::words:
      return "word permute";
    case Form::chains:
      return "chains of byte shuffles";
    case Form::rows:
      return "byte shuffles of rows";
    case Form::powers:
      return "shift";
    case Form::truncated:
      return "fused, rare codes by table";
    case Form::none:
      break;
  }
  return "fused";
}

struct Pair {
  DType from = DType::undefined;
  DType to = DType::undefined;
};

constexpr std::size_t pair_count = [] {
  std::size_t count = 0;
  for (const DTypeRow& from : dtype_table) count += is_narrow(from) ? number_type_count - 1 : 0;
  return count;
}();

constexpr std::array<Pair, pair_count> pairs = [] {
  std::array<Pair, pair_count> all = {};
  std::size_t i = 0;
  for (const DTypeRow& from : dtype_table) {
    for (const DTypeRow& to : dtype_table) {
      if (is_narrow(from) && to.family != Family::text && to.id != from.id) all[i++] = {from.id, to.id};
    }
  }
  return all;
}();

template <Target target, DType from, DType to>
constexpr Kernel kernel() {
  if constexpr (has_six_bits(row(from))) {
    return {from, to, convert_six_bits<target, from, to>, "by way of float8"};
  } else {
    constexpr Layout layout = layout_of(target, from, to);
    constexpr KernelFn run =
        has_six_bits(row(to)) ? convert_to_six_bits<target, layout, from, to> : convert<layout, from, to>;
    return {from, to, run, algorithm(layout)};
  }
}

template <Target target, std::size_t... i>
constexpr std::array<Kernel, pair_count> make_kernels(std::index_sequence<i...>) {
  return {kernel<target, pairs[i].from, pairs[i].to>()...};
}

template <Target target>
constinit const std::array<Kernel, pair_count> rows = make_kernels<target>(std::make_index_sequence<pair_count>());

}  // namespace

const std::uint8_t* hub_codes(DType from) noexcept {
  static const auto tables = [] {
    std::array<std::array<std::uint8_t, 64>, dtype_table.size()> all = {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has_six_bits(dtype_table[i])) continue;
      for (std::size_t code = 0; code < all[i].size(); ++code) {
        all[i][code] = static_cast<std::uint8_t>(codec::cast_code(dtype_table[i].id, code, six_bit_hub, {}).bits);
      }
    }
    return all;
  }();
  return tables[static_cast<std::size_t>(&row(from) - dtype_table.data())].data();
}

}  // namespace narrow

KernelRows narrow_kernels(Target target) noexcept {
  switch (target) {
#if defined(__x86_64__)
    case Target::avx512vbmi:
      return narrow::rows<Target::avx512vbmi>;
    case Target::avx512:
      return narrow::rows<Target::avx512>;
    case Target::avx2:
      return narrow::rows<Target::avx2>;
#endif
    default:
      return narrow::rows<Target::portable>;
  }
}

}  // namespace tensorcast::kernels
