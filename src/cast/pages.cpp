// SPDX-License-Identifier: Apache-2.0
#include "cast/pages.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tensorcast {
inline namespace TENSORCAST_ABI {

#if defined(__linux__)
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t huge_buffer_bytes = std::size_t{4} << 20;

const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// The page of an address inside a buffer.
std::byte* page_at(std::byte* inside) noexcept {
  return inside - reinterpret_cast<std::uintptr_t>(inside) % page_bytes;
}

bool is_absent(std::byte* page) noexcept {
  unsigned char is_resident = 1;
  return ::mincore(page, 1, &is_resident) == 0 && (is_resident & 1) == 0;
}

// The whole pages of a buffer.
void advise(std::byte* buffer, std::size_t bytes, int advice) noexcept {
  std::byte* const first = page_at(buffer + page_bytes - 1);
  std::byte* const end = page_at(buffer + bytes);
  if (first < end) ::madvise(first, static_cast<std::size_t>(end - first), advice);
}

// Writes to a new page. If its neighbour then exists, too, the page is huge.
bool is_huge(std::byte* buffer, std::size_t bytes) noexcept {
  if (bytes < huge_buffer_bytes) return false;
  std::byte* const middle = buffer + bytes / 2;
  std::byte* const page = middle - reinterpret_cast<std::uintptr_t>(middle) % huge_page_bytes;
  if (!is_absent(page) || !is_absent(page + page_bytes)) return false;
  *static_cast<volatile std::byte*>(page) = std::byte{};
  return !is_absent(page + page_bytes);
}

}  // namespace

Pages pages_of(std::byte* buffer, std::size_t bytes, bool may_advise) noexcept {
  constexpr std::size_t asked = 3;  // odd
  if (bytes < 2 * asked * page_bytes) return Pages::there;
  std::size_t absent = 0;
  for (std::size_t i = 0; i < asked; ++i) {
    // In the middle of equal parts: malloc has written the first page.
    if (is_absent(page_at(buffer + bytes / (2 * asked) * (2 * i + 1)))) ++absent;
  }
  if (absent <= asked / 2) return Pages::there;
  if (may_advise) advise_huge_pages(buffer, bytes);
  return is_huge(buffer, bytes) ? Pages::new_huge : Pages::new_small;
}

void populate(std::byte* buffer, std::size_t bytes) noexcept {
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which older headers lack
  advise(buffer, bytes, populate_write);
}

void advise_huge_pages(std::byte* buffer, std::size_t bytes) noexcept {
  if (bytes >= huge_buffer_bytes) advise(buffer, bytes, MADV_HUGEPAGE);
}

#else

Pages pages_of(std::byte*, std::size_t, bool) noexcept { return Pages::there; }
void populate(std::byte*, std::size_t) noexcept {}
void advise_huge_pages(std::byte*, std::size_t) noexcept {}

#endif

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
