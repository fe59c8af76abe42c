// tensorcast_curve_bench FILE.json [GIB]: time per element from 64 elements to GIB (8) of source and target together,
// beside memcpy of as many bytes, through the C interface; and what unaligned memory and odd counts cost.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tensorcast/c_api.h"
#include "tensorcast/dtype.hpp"

namespace {

using namespace tensorcast;
using Json = nlohmann::ordered_json;

struct Pair {
  DType from, to;
};
constexpr Pair pairs[] = {{DType::float32, DType::bfloat16},
                          {DType::float32, DType::float8_e4m3fn},
                          {DType::float8_e4m3fn, DType::bfloat16},
                          {DType::int4, DType::float16}};
// Wider and narrower, by table and computed, of packed elements, and by a mere copy of bits.
constexpr Pair placed_pairs[] = {{DType::float32, DType::float8_e4m3fn},
                                 {DType::float8_e4m3fn, DType::float32},
                                 {DType::float32, DType::float16},
                                 {DType::float16, DType::float32},
                                 {DType::float32, DType::bfloat16},
                                 {DType::bfloat16, DType::float32},
                                 {DType::float8_e4m3fn, DType::bfloat16},
                                 {DType::int4, DType::float16},
                                 {DType::float32, DType::int4},
                                 {DType::float64, DType::float32},
                                 {DType::uint8, DType::float32},
                                 {DType::int64, DType::int32},
                                 {DType::int32, DType::uint32}};

double seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// A cache line more than asked for, so that it can be used unaligned. All pages exist.
Memory memory_of(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(page, (bytes + 64 + page - 1) / page * page)));
  if (memory) std::memset(memory.get(), 0x3c, bytes + 64);  // an ordinary number in every type
  return memory;
}

// Best of some bursts that take a while.
template <class Work>
double best_ns(Work work) {
  work();
  std::size_t calls = 1;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 7;) {
    const double start = seconds();
    for (std::size_t i = 0; i < calls; ++i) work();
    const double took = seconds() - start;
    if (took < 100e-6) {
      calls *= 4;
      continue;
    }
    best = std::min(best, took * 1e9 / static_cast<double>(calls));
    if (took > 0.3 && ++round >= 2) break;
    ++round;
  }
  return best;
}

double cast_ns(const Pair& pair, const std::byte* src, std::byte* dst, std::size_t count) {
  return best_ns([&] {
    tc_cast(src, static_cast<tc_dtype>(pair.from), dst, static_cast<tc_dtype>(pair.to), count, nullptr);
    asm volatile("" : : "r"(dst) : "memory");
  });
}

Json curve_of(const Pair& pair, std::size_t most_bytes) {
  Json points = Json::array();
  const auto bits = static_cast<std::size_t>(bit_width(pair.from) + bit_width(pair.to));
  const std::size_t most = most_bytes * 8 / bits / 64 * 64;
  for (std::size_t count = 64, last = 0; count != last; last = count, count = std::min(count * 4, most)) {
    const std::size_t src_bytes = storage_bytes(pair.from, count);
    const std::size_t dst_bytes = storage_bytes(pair.to, count);
    const std::size_t half = (src_bytes + dst_bytes) / 2;
    double ns = 0.0;
    double memcpy_ns = 0.0;
    {
      const Memory src = memory_of(src_bytes), dst = memory_of(dst_bytes);
      if (!src || !dst) break;
      ns = cast_ns(pair, src.get(), dst.get(), count);
    }
    {
      const Memory src = memory_of(half), dst = memory_of(half);
      if (!src || !dst) break;
      memcpy_ns = best_ns([&] {
        std::memcpy(dst.get(), src.get(), half);
        asm volatile("" : : "r"(dst.get()) : "memory");
      });
    }
    fmt::print("{:>8} -> {:<14} {:>12} elements {:>10.4f} ns each, memcpy {:>10.4f}\n", name(pair.from), name(pair.to),
               count, ns / static_cast<double>(count), memcpy_ns / static_cast<double>(count));
    std::fflush(stdout);
    points.push_back({{"count", count}, {"bytes", src_bytes + dst_bytes}, {"ns", ns}, {"memcpy_ns", memcpy_ns}});
  }
  return {{"from", name(pair.from)}, {"to", name(pair.to)}, {"points", points}};
}

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// 64 MiB at every combination of aligned and not, whole and odd; ratios to the aligned, whole one. Each is measured in
// turns with the aligned one, before and after it, so that both see the same state of the machine; the median of turns.
Json placement_of(const Pair& pair) {
  struct Place {
    const char* name;
    std::size_t src, dst, fewer;
  };
  constexpr std::size_t turns = 25;
  constexpr Place aligned = {"", 0, 0, 0};
  constexpr Place places[] = {aligned,  // again: how far from 1 is noise
                              {"source at 1", 1, 0, 0},
                              {"target at 1", 0, 1, 0},
                              {"both at 17", 17, 17, 0},
                              {"odd count", 0, 0, 7},
                              {"odd and at 3", 3, 3, 5}};
  const auto bits = static_cast<std::size_t>(bit_width(pair.from) + bit_width(pair.to));
  const std::size_t count = (std::size_t{64} << 20) * 8 / bits / 64 * 64;
  const Memory src = memory_of(storage_bytes(pair.from, count)), dst = memory_of(storage_bytes(pair.to, count));
  if (!src || !dst) return {};
  const auto time_of = [&](const Place& place) {
    const double start = seconds();
    tc_cast(src.get() + place.src, static_cast<tc_dtype>(pair.from), dst.get() + place.dst,
            static_cast<tc_dtype>(pair.to), count - place.fewer, nullptr);
    return (seconds() - start) / static_cast<double>(count - place.fewer);
  };
  std::vector<double> ratios[std::size(places)];
  for (std::size_t turn = 0; turn < turns; ++turn) {
    double before = time_of(aligned);
    for (std::size_t i = 0; i < std::size(places); ++i) {
      const double time = time_of(places[i]);
      const double after = time_of(aligned);
      ratios[i].push_back(2.0 * time / (before + after));
      before = after;
    }
  }
  Json row = {{"from", name(pair.from)}, {"to", name(pair.to)}};
  for (std::size_t i = 0; i < std::size(places); ++i) {
    row[i == 0 ? "aligned again" : places[i].name] = median(std::move(ratios[i]));
  }
  fmt::print("{}\n", row.dump());
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: tensorcast_curve_bench FILE.json [GIB]\n");
    return 2;
  }
  const double gib = argc > 2 ? std::strtod(argv[2], nullptr) : 8.0;
  Json document = {{"version", tc_version()}, {"curves", Json::array()}, {"placement", Json::array()}};
  for (const Pair& pair : placed_pairs) document["placement"].push_back(placement_of(pair));
  for (const Pair& pair : pairs) {
    document["curves"].push_back(curve_of(pair, static_cast<std::size_t>(gib * 0x1p30)));
  }
  std::ofstream out(argv[1]);
  out << document.dump(1) << '\n';
  if (!out.flush()) {
    fmt::print(stderr, "tensorcast_curve_bench: cannot write {}\n", argv[1]);
    return 1;
  }
}
