// SPDX-License-Identifier: Apache-2.0
// Single elements as C++ types, beside others' in one run: nanoseconds an element in loops over 1,024 of them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <Eigen/Core>
#define NK_DYNAMIC_DISPATCH 0
#include <numkong/cast.h>

#include "ml_dtypes/include/float8.h"
#include "ml_dtypes/include/mxfloat.h"
#include "tensorcast/element.hpp"

namespace tc = tensorcast;

namespace {

constexpr std::size_t count = 1024;

// The least of several turns, each of some loops over all elements, which write to `written`.
template <class Loop>
double nanoseconds(const void* written, const Loop& loop) {
  double least = 1e18;
  for (int turn = 0; turn < 15; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 40; ++i) {
      loop();
      asm volatile("" ::"r"(written) : "memory");
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count() / 40 / count);
  }
  return least;
}

std::vector<float> numbers() {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = std::sin(static_cast<float>(i)) * 3;
  return result;
}

void show(const char* who, double encode, double decode) { std::printf("  %-12s %6.2f %6.2f", who, encode, decode); }

// A class with a constructor from float, an operator float and ==.
template <class T>
void measure(const char* who) {
  const std::vector<float> src = numbers();
  std::vector<float> back(count);
  std::vector<T> codes(count);
  const double encode = nanoseconds(codes.data(), [&] {
    for (std::size_t i = 0; i < count; ++i) codes[i] = T(src[i]);
  });
  const double decode = nanoseconds(back.data(), [&] {
    for (std::size_t i = 0; i < count; ++i) back[i] = static_cast<float>(codes[i]);
  });
  const double equal = nanoseconds(codes.data(), [&] {
    int found = 0;
    for (std::size_t i = 1; i < count; ++i) found += codes[i] == codes[i - 1] ? 1 : 0;
    asm volatile("" ::"r"(found));
  });
  show(who, encode, decode);
  std::printf(" %6.2f\n", equal);
}

// Functions: encode(number, code) and decode(code, number).
template <class Code, class Encode, class Decode>
void measure(const char* who, const Encode& encode, const Decode& decode) {
  const std::vector<float> src = numbers();
  std::vector<float> back(count);
  std::vector<Code> codes(count);
  const double encoded = nanoseconds(codes.data(), [&] {
    for (std::size_t i = 0; i < count; ++i) encode(&src[i], &codes[i]);
  });
  const double decoded = nanoseconds(back.data(), [&] {
    for (std::size_t i = 0; i < count; ++i) decode(&codes[i], &back[i]);
  });
  show(who, encoded, decoded);
  std::printf("\n");
}

void title(const char* type) { std::printf("%s\n", type); }

// CUDA's functions for the host: to a code of one byte, and by float16 back.
template <__nv_fp8_interpretation_t kind>
void measure_float8() {
  measure<std::uint8_t>(
      "CUDA", [](const float* x, std::uint8_t* code) { *code = __nv_cvt_float_to_fp8(*x, __NV_SATFINITE, kind); },
      [](const std::uint8_t* code, float* x) { *x = __half2float(__half(__nv_cvt_fp8_to_halfraw(*code, kind))); });
}
template <__nv_fp6_interpretation_t kind>
void measure_float6() {
  measure<std::uint8_t>(
      "CUDA", [](const float* x, std::uint8_t* code) { *code = __nv_cvt_float_to_fp6(*x, kind, cudaRoundNearest); },
      [](const std::uint8_t* code, float* x) { *x = __half2float(__half(__nv_cvt_fp6_to_halfraw(*code, kind))); });
}

}  // namespace

int main() {
  std::printf("ns an element: float32 to the type, back, ==\n");
  title("float8_e4m3fn");
  measure<tc::float8_e4m3fn>("tensorcast");
  measure<ml_dtypes::float8_e4m3fn>("ml_dtypes");
  measure<nk_e4m3_t>("NumKong", nk_f32_to_e4m3_serial, nk_e4m3_to_f32_serial);
  measure_float8<__NV_E4M3>();
  title("float8_e5m2");
  measure<tc::float8_e5m2>("tensorcast");
  measure<ml_dtypes::float8_e5m2>("ml_dtypes");
  measure<nk_e5m2_t>("NumKong", nk_f32_to_e5m2_serial, nk_e5m2_to_f32_serial);
  measure_float8<__NV_E5M2>();
  title("float8_e4m3fnuz");
  measure<tc::float8_e4m3fnuz>("tensorcast");
  measure<ml_dtypes::float8_e4m3fnuz>("ml_dtypes");
  title("float8_e5m2fnuz");
  measure<tc::float8_e5m2fnuz>("tensorcast");
  measure<ml_dtypes::float8_e5m2fnuz>("ml_dtypes");
  title("float8_e4m3b11fnuz");
  measure<tc::float8_e4m3b11fnuz>("tensorcast");
  measure<ml_dtypes::float8_e4m3b11fnuz>("ml_dtypes");
  title("float8_e4m3");
  measure<tc::float8_e4m3>("tensorcast");
  measure<ml_dtypes::float8_e4m3>("ml_dtypes");
  title("float8_e3m4");
  measure<tc::float8_e3m4>("tensorcast");
  measure<ml_dtypes::float8_e3m4>("ml_dtypes");
  title("float8_e8m0fnu");
  measure<tc::float8_e8m0fnu>("tensorcast");
  measure<ml_dtypes::float8_e8m0fnu>("ml_dtypes");
  measure<std::uint8_t>(
      "CUDA",
      [](const float* x, std::uint8_t* code) { *code = __nv_cvt_float_to_e8m0(*x, __NV_SATFINITE, cudaRoundPosInf); },
      [](const std::uint8_t* code, float* x) {
        *x = __bfloat162float(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(*code)));
      });
  title("float6_e2m3fn");
  measure<tc::float6_e2m3fn>("tensorcast");
  measure<ml_dtypes::float6_e2m3fn>("ml_dtypes");
  measure<nk_e2m3_t>("NumKong", nk_f32_to_e2m3_serial, nk_e2m3_to_f32_serial);
  measure_float6<__NV_E2M3>();
  title("float6_e3m2fn");
  measure<tc::float6_e3m2fn>("tensorcast");
  measure<ml_dtypes::float6_e3m2fn>("ml_dtypes");
  measure<nk_e3m2_t>("NumKong", nk_f32_to_e3m2_serial, nk_e3m2_to_f32_serial);
  measure_float6<__NV_E3M2>();
  title("float4_e2m1fn");
  measure<tc::float4_e2m1fn>("tensorcast");
  measure<ml_dtypes::float4_e2m1fn>("ml_dtypes");
  measure<std::uint8_t>(
      "CUDA",
      [](const float* x, std::uint8_t* code) { *code = __nv_cvt_float_to_fp4(*x, __NV_E2M1, cudaRoundNearest); },
      [](const std::uint8_t* code, float* x) { *x = __half2float(__half(__nv_cvt_fp4_to_halfraw(*code, __NV_E2M1))); });
  title("bfloat16");
  measure<tc::bfloat16>("tensorcast");
  measure<Eigen::bfloat16>("Eigen");
  measure<nk_bf16_t>("NumKong", nk_f32_to_bf16_serial, nk_bf16_to_f32_serial);
  measure<__nv_bfloat16>(
      "CUDA", [](const float* x, __nv_bfloat16* code) { *code = __float2bfloat16_rn(*x); },
      [](const __nv_bfloat16* code, float* x) { *x = __bfloat162float(*code); });
  title("float16");
  measure<tc::float16>("tensorcast");
  measure<Eigen::half>("Eigen");
  measure<nk_f16_t>("NumKong", nk_f32_to_f16_serial, nk_f16_to_f32_serial);
  measure<__half>(
      "CUDA", [](const float* x, __half* code) { *code = __float2half_rn(*x); },
      [](const __half* code, float* x) { *x = __half2float(*code); });
}
