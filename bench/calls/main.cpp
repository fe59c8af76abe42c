// SPDX-License-Identifier: Apache-2.0
// tensorcast_calls_bench: nanoseconds a call of few elements, beside a loop by hand and memcpy; and of rows of blocks,
// in the caller's memory and not. Lowest of 25 rounds, in turns, as calls of one kind follow each other in programs.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"
#include "tensorcast/prepared_cast.hpp"
#include "tensorcast/target.hpp"

namespace {

using namespace tensorcast;

template <class Call>
double nanoseconds(int calls, const Call& call) {
  using Clock = std::chrono::steady_clock;
  double best = INFINITY;
  for (int round = 0; round < 25; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) {
      call();
      __asm__ volatile("" : : : "memory");
    }
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / calls);
  }
  return best;
}

void require(bool holds) {
  if (!holds) std::abort();
}

std::uint16_t bfloat16_by_hand(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr std::array<std::size_t, 6> counts = {1, 4, 16, 64, 256, 1024};

// Rounds of about 200 us, which are seldom interrupted.
template <class Call>
double of_row(const Call& call) {
  constexpr double round = 2e5;
  return nanoseconds(std::clamp(static_cast<int>(round / nanoseconds(1, call)), 1, 1000), call);
}

template <class Call>
void print_row(const char* what, const Call& call) {
  std::printf("| %s |", what);
  for (const std::size_t count : counts) {
    std::printf(" %.1f |", nanoseconds(count < 100 ? 100000 : 20000, [&] { call(count); }));
  }
  std::printf("\n");
}

void measure_casts(DType from, DType to, bool by_hand) {
  std::vector<float> numbers(counts.back());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i)) * 3;
  std::vector<std::byte> src(numbers.size() * 4), dst(numbers.size() * 4);
  const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size())};
  require(cast({DType::float32, shape, std::as_bytes(std::span(numbers))},
               {from, shape, std::span(src).first(storage_bytes(from, numbers.size()))})
              .ok());
  const PreparedCast prepared = prepare_cast(from, to).value();
  tc_prepared_cast in_c = TC_PREPARED_CAST_INIT;
  const auto c_from = static_cast<tc_dtype>(from), c_to = static_cast<tc_dtype>(to);
  require(tc_prepare_cast(c_from, c_to, nullptr, &in_c) == TC_OK);
  std::printf("\n| %s to %s, ns a call |", std::string(name(from)).c_str(), std::string(name(to)).c_str());
  for (const std::size_t count : counts) std::printf(" %zu |", count);
  std::printf("\n|---|---|---|---|---|---|---|\n");
  print_row("PreparedCast", [&](std::size_t n) { require(prepared(src.data(), dst.data(), n).ok()); });
  print_row("tc_run_prepared", [&](std::size_t n) { require(tc_run_prepared(&in_c, src.data(), dst.data(), n) == 0); });
  print_row("cast", [&](std::size_t n) {
    const std::int64_t few[] = {static_cast<std::int64_t>(n)};
    require(cast({from, few, std::span(src).first(storage_bytes(from, n))},
                 {to, few, std::span(dst).first(storage_bytes(to, n))})
                .ok());
  });
  print_row("tc_cast", [&](std::size_t n) { require(tc_cast(src.data(), c_from, dst.data(), c_to, n, nullptr) == 0); });
  if (by_hand) {
    auto* const codes = reinterpret_cast<std::uint16_t*>(dst.data());
    print_row("a loop by hand", [&](std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) codes[i] = bfloat16_by_hand(numbers[i]);
    });
  }
  print_row("memcpy of the source",
            [&](std::size_t n) { std::memcpy(dst.data(), src.data(), storage_bytes(from, n)); });
}

void measure_rows(const char* scheme) {
  constexpr std::int64_t columns = 4096;
  const BlockFormat& format = *find_block_format(scheme, scheme[0] == 'q' ? "gguf" : "");
  const QuantizeOptions options{.maximum = 6.0f};
  std::vector<float> numbers(columns), decoded(columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i) * 1.7f) * 3;
  const TensorView row{DType::float32, {1, columns}, std::as_bytes(std::span(numbers))};
  const MutableTensorView out{DType::float32, {1, columns}, std::as_writable_bytes(std::span(decoded))};
  const QuantizedSizes sizes = quantized_sizes(format, row.shape, options).value();
  std::vector<std::byte> codes(sizes.codes), scales(sizes.scales);
  const QuantizedBuffers buffers{codes, scales, {}};
  const QuantizedTensor whole = quantize(row, format, options, {.threads = 1}).value();
  const BlockTensor tensor = whole.tensor();
  PreparedDequantize prepared = prepare_dequantize(tensor, DType::float32).value();
  std::printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", scheme,
              of_row([&] { require(quantize_rows(format, row, 0, buffers, options).ok()); }),
              of_row([&] { require(quantize(row, format, options, {.threads = 1}).ok()); }),
              of_row([&] { require(prepared(0, 1, decoded.data()).ok()); }),
              of_row([&] { require(dequantize(tensor, 0, out, {}, nullptr, {.threads = 1}).ok()); }));
}

}  // namespace

int main() {
  std::printf("target %s\n", std::string(name(active_target())).c_str());
  measure_casts(DType::float32, DType::bfloat16, true);
  measure_casts(DType::float32, DType::float8_e4m3fn, false);
  measure_casts(DType::float8_e4m3fn, DType::float32, false);
  std::printf(
      "\n| rows of 4096, ns | quantize_rows | quantize | PreparedDequantize | dequantize |\n|---|---|---|---|---|\n");
  for (const char* scheme : {"q4_0", "q8_0", "q4_k", "q6_k", "mxfp4", "mxfp8", "nvfp4"}) measure_rows(scheme);
  return 0;
}
