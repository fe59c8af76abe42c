// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

DType SourceTypes::of(std::string_view tensor) const noexcept {
  const auto* found = find_row(
      named, [](const auto& entry) -> std::string_view { return entry.first; }, tensor);
  return found == nullptr ? all : found->second;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::formats {

Result<StringBuffer> Reader::read_strings(std::size_t, std::uint64_t, std::size_t) {
  return unsupported("this format has no strings");
}

Result<StringBuffer> read_all_strings(Reader& reader, std::size_t index, io::MemoryBudget budget) {
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const std::uint64_t count = reader.tensors()[index].count;
  std::uint64_t offset_bytes = 0;
  if (__builtin_mul_overflow(count + 1, sizeof(std::int64_t), &offset_bytes)) return budget.exceeded();
  TRY(budget.take(offset_bytes));
  StringBuffer all;
  all.offsets.reserve(count + 1);
  all.offsets.push_back(0);
  while (all.offsets.size() <= count) {
    const StringBuffer block = TRY(reader.read_strings(index, all.offsets.size() - 1, block_bytes));
    TRY(budget.take_grown<char>(block.data.size()));
    const std::int64_t before = all.offsets.back();
    all.data.insert(all.data.end(), block.data.begin(), block.data.end());
    for (std::size_t i = 1; i < block.offsets.size(); ++i) all.offsets.push_back(before + block.offsets[i]);
  }
  return all;
}

Result<void> Writer::append_strings(const StringBuffer&) { return unsupported("this format cannot hold strings"); }

}  // namespace tensorcast::formats
