// SPDX-License-Identifier: Apache-2.0
// tensorcast_transposes_bench: casts of about 16 Mi elements in another order, to C order: the time over that of the
// dense cast of as many elements, on one thread and on all. All pages exist and are huge. The median of neighbouring
// turns.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tensorcast/cast.hpp"
#include "tensorcast/strided.hpp"
#include "tensorcast/target.hpp"

namespace {

using namespace tensorcast;

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

struct Pair {
  DType from, to;
};
constexpr Pair pairs[] = {
    {DType::float32, DType::bfloat16},      {DType::float32, DType::float16}, {DType::float32, DType::float8_e4m3fn},
    {DType::float32, DType::float8_e5m2},   {DType::float32, DType::int8},    {DType::float32, DType::boolean},
    {DType::float32, DType::float4_e2m1fn}, {DType::float32, DType::int4},    {DType::float32, DType::float32},
    {DType::float64, DType::float32},       {DType::float64, DType::float16}, {DType::int64, DType::int32},
    {DType::int64, DType::float32},         {DType::float16, DType::float32}, {DType::bfloat16, DType::float32},
    {DType::float16, DType::bfloat16},      {DType::bfloat16, DType::int8},   {DType::uint8, DType::float32},
    {DType::uint8, DType::float16},         {DType::uint8, DType::uint8},     {DType::float8_e4m3fn, DType::bfloat16}};

struct Order {
  const char* name;
  Shape shape;                    // of the source, in C order
  std::vector<std::size_t> axes;  // of the target: axis i of it is axis axes[i] of the source
};
const Order orders[] = {
    {"4096x4096", {4096, 4096}, {1, 0}},
    {"4160x4160", {4160, 4160}, {1, 0}},
    {"4000x4104", {4000, 4104}, {1, 0}},
    {"4095x4097", {4095, 4097}, {1, 0}},
    {"5000x3000", {5000, 3000}, {1, 0}},
    {"1000x16000", {1000, 16000}, {1, 0}},
    {"16000x1000", {16000, 1000}, {1, 0}},
    {"64,64,4096:201", {64, 64, 4096}, {2, 0, 1}},
    {"64,64,4096:102", {64, 64, 4096}, {1, 0, 2}},
    {"8,32,512,128:0213", {8, 32, 512, 128}, {0, 2, 1, 3}},
    {"8,8,512,512:0213", {8, 8, 512, 512}, {0, 2, 1, 3}},
    {"4,8,512,1024:0213", {4, 8, 512, 1024}, {0, 2, 1, 3}},
    {"4,8,256,2048:0213", {4, 8, 256, 2048}, {0, 2, 1, 3}},
    {"224x224x3 to CHW", {224, 224, 3}, {2, 0, 1}},
    {"3x224x224 to HWC", {3, 224, 224}, {1, 2, 0}},
    {"to NHWC 64", {16, 64, 128, 128}, {0, 2, 3, 1}},
    {"to NCHW 64", {16, 128, 128, 64}, {0, 3, 1, 2}},
    {"to NHWC 3", {85, 3, 256, 256}, {0, 2, 3, 1}},
    {"to NCHW 3", {85, 256, 256, 3}, {0, 3, 1, 2}},
    {"to NHWC 4", {64, 4, 256, 256}, {0, 2, 3, 1}},
    {"to NCHW 4", {64, 256, 256, 4}, {0, 3, 1, 2}},
    {"to NHWC 2", {128, 2, 256, 256}, {0, 2, 3, 1}},
    {"to NCHW 2", {128, 256, 256, 2}, {0, 3, 1, 2}},
};

std::byte* allocate(std::size_t bytes) {
  void* const base =
      ::mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) std::abort();
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  auto* const data = reinterpret_cast<std::byte*>((address + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes);
  ::madvise(data, bytes, MADV_HUGEPAGE);
  std::fill_n(data, bytes, std::byte{});
  return data;
}

template <class Call>
double milliseconds(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  if (!call()) std::abort();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

struct Measured {
  double ratio = 0, turned_ms = 0, dense_ms = 0;  // the median; the lowest of each
};

Measured measure(const Pair& pair, const Order& order, const std::byte* src, std::byte* dst, int threads, int rounds) {
  const std::size_t rank = order.shape.size();
  std::vector<std::int64_t> strides(rank), shape, moved;
  std::int64_t count = 1;
  const std::int64_t item = std::max(1, bit_width(pair.from) / 8);
  for (std::size_t axis = rank; axis-- > 0; count *= order.shape[axis]) strides[axis] = count * item;
  for (const std::size_t axis : order.axes) {
    shape.push_back(order.shape[axis]);
    moved.push_back(strides[axis]);
  }
  const StridedView dense{.dtype = pair.from, .shape = shape, .data = src};
  const StridedView turned{.dtype = pair.from, .shape = shape, .strides = moved, .data = src};
  const MutableStridedView target{.dtype = pair.to, .shape = shape, .data = dst};
  const Execution execution{.threads = threads};
  std::vector<double> ratios;
  Measured best{0, 1e9, 1e9};
  for (int round = 0; round <= rounds; ++round) {
    const double in_order = milliseconds([&] { return cast_strided(dense, target, {}, execution).ok(); });
    const double other = milliseconds([&] { return cast_strided(turned, target, {}, execution).ok(); });
    if (round == 0) continue;
    ratios.push_back(other / in_order);
    best.dense_ms = std::min(best.dense_ms, in_order);
    best.turned_ms = std::min(best.turned_ms, other);
  }
  best.ratio = median(ratios);
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 9;
  std::size_t offset = 0;
  std::string in_pair, in_order;
  CLI::App app("What a cast in another order takes, as a ratio to the dense cast of as many elements.");
  app.add_option("--rounds", rounds, "times that each is measured")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--pairs", in_pair, "only pairs with this text in their names, as in 'float32 to bfloat16'");
  app.add_option("--orders", in_order, "only orders with this text in their names, as in '4096x4096'");
  app.add_option("--offset", offset, "bytes between the begin of a page and arrays: malloc's have 16")
      ->check(CLI::Range(std::size_t{0}, huge_page_bytes));
  CLI11_PARSE(app, argc, argv);
  constexpr std::size_t most = std::size_t{17} << 20;
  std::byte* const numbers = allocate(most * 4);
  std::byte* const src = allocate(most * 8 + huge_page_bytes) + offset;
  std::byte* const dst = allocate(most * 4 + huge_page_bytes) + offset;
  std::mt19937 engine(1);
  std::normal_distribution<float> normal(0, 8);
  constexpr std::size_t period = 65521;
  auto* const number = reinterpret_cast<float*>(numbers);
  for (std::size_t i = 0; i < most; ++i) number[i] = i < period ? normal(engine) : number[i - period];
  fmt::print("{}: the ratio on one thread and on all; milliseconds of both on all\n", name(active_target()));
  for (const Pair& pair : pairs) {
    const std::string pair_name = fmt::format("{} to {}", name(pair.from), name(pair.to));
    if (pair_name.find(in_pair) == std::string::npos) continue;
    if (!cast_strided({.dtype = DType::float32, .shape = {most}, .data = numbers},
                      {.dtype = pair.from, .shape = {most}, .data = src}, {}))
      std::abort();
    for (const Order& order : orders) {
      if (std::string_view(order.name).find(in_order) == std::string_view::npos) continue;
      const Measured one = measure(pair, order, src, dst, 1, rounds);
      const Measured all = measure(pair, order, src, dst, 0, rounds);
      fmt::print("| {:<26} | {:<18} | {:.2f} | {:.2f} | {:.1f} / {:.1f} ms |\n", pair_name, order.name, one.ratio,
                 all.ratio, all.turned_ms, all.dense_ms);
      std::fflush(stdout);
    }
  }
  return 0;
}
