// SPDX-License-Identifier: Apache-2.0
// The host conversions of CUDA's headers for the scoreboard of docs/vectors.md: convert() of implementations.py calls
// it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

namespace {

template <typename To, typename From>
To bits_as(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

enum Target { e4m3, e5m2, e8m0, ue5m3, e2m3, e3m2, e2m1, f16, bf16 };

// One function for each source and target would hide which of CUDA's are called: these four, by the source.
std::uint64_t from_double(double x, int target, __nv_saturation_t ends, cudaRoundMode way) {
  switch (target) {
    case e4m3:
      return __nv_cvt_double_to_fp8(x, ends, __NV_E4M3);
    case e5m2:
      return __nv_cvt_double_to_fp8(x, ends, __NV_E5M2);
    case e8m0:
      return __nv_cvt_double_to_e8m0(x, ends, way);
    case ue5m3:
      return __nv_cvt_double_to_ue5m3(x, ends, cudaRoundNearest);
    case e2m3:
      return __nv_cvt_double_to_fp6(x, __NV_E2M3, cudaRoundNearest);
    case e3m2:
      return __nv_cvt_double_to_fp6(x, __NV_E3M2, cudaRoundNearest);
    case e2m1:
      return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest);
    case f16:
      return __half_raw(__double2half(x)).x;
    default:
      return __nv_bfloat16_raw(__double2bfloat16(x)).x;
  }
}

std::uint64_t from_float(float x, int target, __nv_saturation_t ends, cudaRoundMode way) {
  switch (target) {
    case e4m3:
      return __nv_cvt_float_to_fp8(x, ends, __NV_E4M3);
    case e5m2:
      return __nv_cvt_float_to_fp8(x, ends, __NV_E5M2);
    case e8m0:
      return __nv_cvt_float_to_e8m0(x, ends, way);
    case ue5m3:
      return __nv_cvt_float_to_ue5m3(x, ends, cudaRoundNearest);
    case e2m3:
      return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
    case e3m2:
      return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
    case e2m1:
      return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
    case f16:
      return __half_raw(__float2half_rn(x)).x;
    default:
      return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x;
  }
}

// Of float16 and bfloat16: those that have a function of their own.
template <typename Raw, typename ToFp8, typename ToFp6, typename ToFp4>
bool from_half(Raw x, int target, __nv_saturation_t ends, ToFp8 fp8, ToFp6 fp6, ToFp4 fp4, std::uint64_t& result) {
  if (target == e4m3 || target == e5m2) {
    result = fp8(x, ends, target == e4m3 ? __NV_E4M3 : __NV_E5M2);
  } else if (target == e2m3 || target == e3m2) {
    result = fp6(x, target == e2m3 ? __NV_E2M3 : __NV_E3M2, cudaRoundNearest);
  } else if (target == e2m1) {
    result = fp4(x, __NV_E2M1, cudaRoundNearest);
  } else {
    return false;
  }
  return true;
}

}  // namespace

// `mode`: 1 saturates; 2 rounds float8_e8m0fnu down. Returns 0 if CUDA has no such conversion.
extern "C" int convert(int source, int target, int mode, const std::uint64_t* codes, std::uint64_t* results,
                       int count) {
  const __nv_saturation_t ends = (mode & 1) != 0 ? __NV_SATFINITE : __NV_NOSAT;
  const cudaRoundMode way = (mode & 2) != 0 ? cudaRoundZero : cudaRoundPosInf;
  for (int i = 0; i < count; ++i) {
    bool done = true;
    if (source == 0) {
      results[i] = from_double(bits_as<double>(codes[i]), target, ends, way);
    } else if (source == 1) {
      results[i] = from_float(bits_as<float>(static_cast<std::uint32_t>(codes[i])), target, ends, way);
    } else if (source == 2) {
      __half_raw x;
      x.x = static_cast<unsigned short>(codes[i]);
      done = from_half(x, target, ends, __nv_cvt_halfraw_to_fp8, __nv_cvt_halfraw_to_fp6, __nv_cvt_halfraw_to_fp4,
                       results[i]);
    } else {
      __nv_bfloat16_raw x;
      x.x = static_cast<unsigned short>(codes[i]);
      if (target == e8m0) {
        results[i] = __nv_cvt_bfloat16raw_to_e8m0(x, ends, way);
      } else {
        done = from_half(x, target, ends, __nv_cvt_bfloat16raw_to_fp8, __nv_cvt_bfloat16raw_to_fp6,
                         __nv_cvt_bfloat16raw_to_fp4, results[i]);
      }
    }
    if (!done) return 0;
  }
  return 1;
}
