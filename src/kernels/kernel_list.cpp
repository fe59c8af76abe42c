// SPDX-License-Identifier: Apache-2.0
// All kernels of all targets in one table, filled once.
#include <array>

#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

constexpr std::size_t pair_count = number_type_count * (number_type_count - 1);

std::array<KernelRows, 3> sources_of(Target target) noexcept {
  const Ops& ops = ops_of(target);
  return {ops.float_source_rows(), ops.integer_source_rows(), ops.byte_source_rows()};
}

class Registry {
 public:
  Registry() noexcept {
    for (std::size_t target = 0; target < target_count; ++target) {
      std::size_t size = 0;
      for (const KernelRows source : sources_of(static_cast<Target>(target))) {
        for (const Kernel& kernel : source) {
          if (size == pair_count) return;
          Kernel& row = rows_[target][size++];
          row = kernel;
          const std::size_t from = row_number(kernel.from), to = row_number(kernel.to);
          by_pair_[target][from][to] = &row;
          const Kernel* const portable = by_pair_[static_cast<std::size_t>(Target::portable)][from][to];
          few_by_pair_[target][from][to] = portable != nullptr && portable->algorithm == "byte table" ? portable : &row;
        }
      }
      sizes_[target] = size;
    }
  }

  [[nodiscard]] KernelRows rows(Target target) const noexcept {
    const auto index = static_cast<std::size_t>(target);
    return KernelRows(rows_[index]).first(sizes_[index]);
  }
  [[nodiscard]] const Kernel* find(Target target, DType from, DType to) const noexcept {
    return at(by_pair_, target, from, to);
  }
  [[nodiscard]] const Kernel* find_few(Target target, DType from, DType to) const noexcept {
    return at(few_by_pair_, target, from, to);
  }

 private:
  std::array<std::array<Kernel, pair_count>, target_count> rows_ = {};
  std::array<std::size_t, target_count> sizes_ = {};
  using ByPair =
      std::array<std::array<std::array<const Kernel*, dtype_table.size()>, dtype_table.size()>, target_count>;

  // The position of a type's row in the table; below 0 for numbers of no type.
  static int index_of(DType dtype) noexcept {
    const int place = detail::place_of(dtype);
    return place < 0 ? -1 : dtype_detail::row_index[static_cast<std::size_t>(place)];
  }
  static const Kernel* at(const ByPair& pairs, Target target, DType from, DType to) noexcept {
    const int row = index_of(from), column = index_of(to);
    if (row < 0 || column < 0) return nullptr;
    return pairs[static_cast<std::size_t>(target)][static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }

  ByPair by_pair_ = {};
  ByPair few_by_pair_ = {};
};

const Registry& registry() noexcept {
  static const Registry instance;
  return instance;
}

}  // namespace

std::span<const Kernel> kernels(Target target) noexcept { return registry().rows(target); }

const Kernel* find_kernel(Target target, DType from, DType to) noexcept { return registry().find(target, from, to); }

const Kernel* find_few_kernel(Target target, DType from, DType to) noexcept {
  return registry().find_few(target, from, to);
}

}  // namespace tensorcast::kernels
