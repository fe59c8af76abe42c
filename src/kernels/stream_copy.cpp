#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/kernel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensorcast::kernels {

#if defined(__x86_64__)
namespace {

constexpr std::size_t line_bytes = 64;

// Whole lines to an address at a line's start. A store as wide as the target has leaves for memory soonest; attributes
// instead of files of their own, because nothing here is shared with other code.
__attribute__((target("avx512f"))) void stream_lines_512(const std::byte* src, std::byte* dst, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, src += line_bytes, dst += line_bytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), _mm512_loadu_si512(src));
  }
}

__attribute__((target("avx"))) void stream_lines_256(const std::byte* src, std::byte* dst, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, src += line_bytes, dst += line_bytes) {
    const auto* const from = reinterpret_cast<const __m256i*>(src);
    auto* const to = reinterpret_cast<__m256i*>(dst);
    const __m256i low = _mm256_loadu_si256(from);
    const __m256i high = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
  }
}

void stream_lines_128(const std::byte* src, std::byte* dst, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, src += line_bytes, dst += line_bytes) {
    const auto* const from = reinterpret_cast<const __m128i*>(src);
    auto* const to = reinterpret_cast<__m128i*>(dst);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const __m128i d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
}

void stream_lines(Target target, const std::byte* src, std::byte* dst, std::size_t lines) {
  if (target >= Target::avx512) return stream_lines_512(src, dst, lines);
  if (target == Target::avx2) return stream_lines_256(src, dst, lines);
  stream_lines_128(src, dst, lines);
}

}  // namespace

// All stores wait behind one to a page whose address is not translated yet, and no hardware looks ahead for them. So
// each page is asked for when the stores have nearly reached it: 0.6 to 0.95 of the time without.
void stream_copy(Target target, const std::byte* src, std::byte* dst, std::size_t bytes) noexcept {
  constexpr std::size_t page_bytes = 4096;
  const std::size_t misaligned = (0 - reinterpret_cast<std::uintptr_t>(dst)) % line_bytes;
  if (bytes >= misaligned + line_bytes) {
    std::memcpy(dst, src, misaligned);
    src += misaligned;
    dst += misaligned;
    bytes -= misaligned;
    while (bytes >= line_bytes) {
      const std::size_t streamed = std::min(bytes, page_bytes) / line_bytes * line_bytes;
      const auto next = reinterpret_cast<std::uintptr_t>(dst) + streamed;
      if (next % page_bytes < streamed) __builtin_prefetch(reinterpret_cast<const void*>(next));
      stream_lines(target, src, dst, streamed / line_bytes);
      src += streamed;
      dst += streamed;
      bytes -= streamed;
    }
  }
  if (bytes != 0) std::memcpy(dst, src, bytes);
}

void stream_fence() noexcept { _mm_sfence(); }

#else

void stream_copy(Target, const std::byte* src, std::byte* dst, std::size_t bytes) noexcept {
  std::memcpy(dst, src, bytes);
}

void stream_fence() noexcept {}

#endif

}  // namespace tensorcast::kernels
