#include "cast/byte_tables.hpp"

#include <array>
#include <utility>

#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

constexpr std::size_t planes_min_bytes = std::size_t{1} << 17;

constexpr std::size_t max_kept = 32;  // of some 30 KB each

struct Kept {
  std::mutex mutex;
  std::array<std::shared_ptr<const ByteTables>, max_kept> tables;
  std::size_t oldest = 0;
};

Kept& kept() {
  static Kept all;
  return all;
}

}  // namespace

ByteTables::ByteTables(DType from, DType to, const codec::Policy& policy) : from_(from), to_(to), policy_(policy) {
  for (std::size_t code = 0; code < std::size_t{1} << bit_width(from); ++code) {
    fates_.of[code] = fate_of(from, code, to, policy);
  }
  fates_.set_squares();
}

// Not locked while tables are made: other threads may need others, and two that make the same ones do no harm.
std::shared_ptr<const ByteTables> ByteTables::of(DType from, DType to, const codec::Policy& policy) {
  Kept& all = kept();
  const auto find = [&]() -> std::shared_ptr<const ByteTables> {
    for (const auto& tables : all.tables) {
      if (tables && tables->are_for(from, to, policy)) return tables;
    }
    return nullptr;
  };
  {
    const std::scoped_lock lock(all.mutex);
    if (auto tables = find()) return tables;
  }
  auto made = std::make_shared<const ByteTables>(from, to, policy);
  const std::scoped_lock lock(all.mutex);
  if (auto tables = find()) return tables;
  all.tables[all.oldest] = made;
  all.oldest = (all.oldest + 1) % max_kept;
  return made;
}

const BytePlanes* ByteTables::planes_for(std::size_t more_bytes) const {
  if (const BytePlanes* planes = made_planes()) return planes;
  if (bytes_seen_.load(std::memory_order_relaxed) < planes_min_bytes) {
    bytes_seen_.fetch_add(more_bytes, std::memory_order_relaxed);
    return nullptr;
  }
  std::call_once(once_, [&] {
    planes_ = BytePlanes::make(from_, fates_);
    made_.store(planes_.get(), std::memory_order_release);
  });
  return planes_.get();
}

}  // namespace tensorcast
