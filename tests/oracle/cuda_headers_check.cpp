// SPDX-License-Identifier: Apache-2.0
// cuda_headers_check [PATTERNS]: NVIDIA's own conversions (the host paths of the CUDA headers) against tc_cast.
// The differences that docs/semantics.md section 2 lists are exceptions with a name here; any other difference is an
// error.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.hpp"
#include "samples.hpp"

namespace {

using namespace oracle;

enum class Excepted {
  nan_code,         // any NaN is accepted: CUDA drops signs and payloads
  negative_source,  // CUDA takes the magnitude for float8_e8m0fnu
};

struct Comparison {
  const char* name;
  Type to;
  tc_cast_options options;
  std::vector<Excepted> excepted;
  std::uint64_t (*from_float)(float);
  std::uint64_t (*from_double)(double);
};

bool has(const Comparison& comparison, Excepted exception) {
  for (const Excepted one : comparison.excepted) {
    if (one == exception) return true;
  }
  return false;
}

tc_cast_options with(int opset, int saturate, int round_mode) {
  tc_cast_options options = default_options();
  options.opset = opset;
  options.saturate = saturate;
  options.round_mode = round_mode;
  return options;
}

std::vector<Comparison> comparisons() {
  const std::vector<Excepted> nan = {Excepted::nan_code};
  return {
      {"float8_e4m3fn, saturate", e4m3fn, with(0, 1, 0), nan,
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }},
      {"float8_e4m3fn, no saturate", e4m3fn, with(0, 0, 0), nan,
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E4M3); }},
      {"float8_e5m2, saturate", e5m2, with(0, 1, 0), nan,
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2); }},
      {"float8_e5m2, no saturate", e5m2, with(0, 0, 0), nan,
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E5M2); }},
      {"float8_e8m0fnu, up, saturate",
       e8m0,
       with(0, 1, 0),
       {Excepted::negative_source},
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); }},
      {"float8_e8m0fnu, down, saturate",
       e8m0,
       with(0, 1, 1),
       {Excepted::negative_source},
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_e8m0(x, __NV_SATFINITE, cudaRoundZero); }},
      // Opset 23 gives +6 for NaN, as CUDA does; 24 and newer give -0.
      {"float4_e2m1fn, opset 23",
       e2m1,
       with(23, 1, 0),
       {},
       [](float x) -> std::uint64_t { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); },
       [](double x) -> std::uint64_t { return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest); }},
      {"float16", f16, with(0, 1, 0), nan, [](float x) -> std::uint64_t { return __half_raw(__float2half_rn(x)).x; },
       [](double x) -> std::uint64_t { return __half_raw(__double2half(x)).x; }},
      {"bfloat16", bf16, with(0, 1, 0), nan,
       [](float x) -> std::uint64_t { return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x; },
       [](double x) -> std::uint64_t { return __nv_bfloat16_raw(__double2bfloat16(x)).x; }},
  };
}

bool agree(const Comparison& comparison, bool negative_source, std::uint64_t ours, std::uint64_t theirs) {
  if (ours == theirs) return true;
  if (has(comparison, Excepted::negative_source) && negative_source) return true;
  return has(comparison, Excepted::nan_code) && all_codes(comparison.to)[ours].nan() &&
         all_codes(comparison.to)[theirs].nan();
}

struct Counts {
  std::uint64_t compared = 0, different = 0;
};

void compare(const Comparison& comparison, Type from, const std::vector<std::uint64_t>& codes, Counts& counts) {
  const CAbiResult ours = run_tc_cast(from, codes, comparison.to, comparison.options);
  if (ours.status != TC_OK) {
    std::fprintf(stderr, "%s: tc_cast fails: %s\n", comparison.name, ours.message.c_str());
    ++counts.different;
    return;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto as_float = std::bit_cast<float>(static_cast<std::uint32_t>(codes[i]));
    const auto as_double = std::bit_cast<double>(codes[i]);
    const std::uint64_t theirs = from == f32 ? comparison.from_float(as_float) : comparison.from_double(as_double);
    const bool negative = from == f32 ? std::signbit(as_float) : std::signbit(as_double);
    ++counts.compared;
    if (agree(comparison, negative, ours.codes[i], theirs)) continue;
    if (counts.different++ < 5) {
      std::fprintf(stderr, "%s: CUDA gives 0x%llx, tc_cast 0x%llx; replay: %s\n", comparison.name,
                   static_cast<unsigned long long>(theirs), static_cast<unsigned long long>(ours.codes[i]),
                   replay_command(from, codes[i], comparison.to, comparison.options).c_str());
    }
  }
}

// float32 codes spread evenly over all of them; float64 ones by chance; the boundaries of both.
bool run(std::uint64_t patterns) {
  constexpr std::size_t batch = 1 << 16;
  bool good = true;
  for (const Comparison& comparison : comparisons()) {
    Counts counts;
    for (const Type from : {f32, f64}) compare(comparison, from, boundary_codes(from, comparison.to), counts);
    const std::uint64_t step = (std::uint64_t{1} << 32) / patterns | 1;
    std::vector<std::uint64_t> codes;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += step) {
      codes.push_back(code);
      if (codes.size() < batch) continue;
      compare(comparison, f32, codes, counts);
      codes.clear();
    }
    compare(comparison, f32, codes, counts);
    for (std::uint64_t done = 0; done < patterns; done += batch) {
      compare(comparison, f64, random_codes(f64, comparison.to, done + 1, batch), counts);
    }
    std::printf("%-32s %12llu compared %8llu different\n", comparison.name,
                static_cast<unsigned long long>(counts.compared), static_cast<unsigned long long>(counts.different));
    good = good && counts.different == 0;
  }
  return good;
}

// Every code that CUDA decodes, to float16 (float8, float4) and bfloat16 (float8_e8m0fnu).
bool check_decoding() {
  bool good = true;
  const auto check = [&](Type from, Type to, auto&& theirs_of) {
    for (std::uint64_t code = 0; code <= code_mask(from); ++code) {
      const std::uint64_t ours = run_tc_cast(from, std::vector{code}, to, default_options()).codes.at(0);
      const std::uint64_t theirs = theirs_of(code);
      if (ours == theirs || (all_codes(to)[ours].nan() && all_codes(to)[theirs].nan())) continue;
      std::fprintf(stderr, "decoding %s 0x%llx: CUDA gives 0x%llx, tc_cast 0x%llx\n", info(from).name,
                   static_cast<unsigned long long>(code), static_cast<unsigned long long>(theirs),
                   static_cast<unsigned long long>(ours));
      good = false;
    }
  };
  const auto storage = [](std::uint64_t code) { return static_cast<__nv_fp8_storage_t>(code); };
  check(e4m3fn, f16, [&](auto code) -> std::uint64_t { return __nv_cvt_fp8_to_halfraw(storage(code), __NV_E4M3).x; });
  check(e5m2, f16, [&](auto code) -> std::uint64_t { return __nv_cvt_fp8_to_halfraw(storage(code), __NV_E5M2).x; });
  check(e8m0, bf16, [&](auto code) -> std::uint64_t { return __nv_cvt_e8m0_to_bf16raw(storage(code)).x; });
  check(e2m1, f16, [&](auto code) -> std::uint64_t { return __nv_cvt_fp4_to_halfraw(storage(code), __NV_E2M1).x; });
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t patterns = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000'000;
  if (patterns == 0) {
    std::fprintf(stderr, "usage: cuda_headers_check [PATTERNS]\n");
    return 2;
  }
  const bool decoding = check_decoding();
  return run(patterns) && decoding ? 0 : 1;
}
