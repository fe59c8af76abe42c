// SPDX-License-Identifier: Apache-2.0
#include "cast/prepared.hpp"

#include <cstring>

#include "c_api/c_call.hpp"
#include "dtype/try.hpp"

namespace {

using namespace tensorcast::c_api;
using tensorcast::DType;
using tensorcast::Prepared;
using tensorcast::Result;

constexpr std::size_t words = Prepared::size / sizeof(std::uint64_t);
static_assert(sizeof(tc_prepared_cast::opaque) >= Prepared::size + sizeof(std::uint64_t));

// A sum that differs if one word does. Another process has its functions at other addresses, and so has another sum.
std::uint64_t check_of(const std::uint64_t* state) noexcept {
  static const char here = 0;
  std::uint64_t sum = reinterpret_cast<std::uintptr_t>(&here) + 1;
  for (std::size_t i = 0; i < words; ++i) sum += state[i] * (0x9e3779b97f4a7c15 * (2 * i + 1));
  return sum;
}

}  // namespace

extern "C" {

tc_status tc_prepare_cast(tc_dtype from, tc_dtype to, const tc_cast_options* options, tc_prepared_cast* prepared) {
  return run([&]() -> Result<void> {
    if (prepared == nullptr) return invalid("the prepared cast is null");
    const tc_cast_options read = TRY(read_options(options));
    const Prepared made = TRY(tensorcast::prepare(static_cast<DType>(from), static_cast<DType>(to), options_of(read)));
    tc_prepared_cast result = TC_PREPARED_CAST_INIT;
    std::memcpy(result.opaque, &made, sizeof made);
    result.opaque[words] = check_of(result.opaque);
    *prepared = result;
    return {};
  });
}

tc_status tc_run_prepared(const tc_prepared_cast* prepared, const void* src, void* dst, size_t count) {
  const bool is_prepared = prepared != nullptr && check_of(prepared->opaque) == prepared->opaque[words];
  const auto* const cast = reinterpret_cast<const Prepared*>(prepared);
  const auto* const from = static_cast<const std::byte*>(src);
  auto* const to = static_cast<std::byte*>(dst);
  if (is_prepared && cast->run_kernel(from, to, count)) [[likely]]
    return TC_OK;
  return run([&]() -> Result<void> {
    if (!is_prepared) {
      return invalid("tc_prepare_cast() did not fill this struct, or it has changed since",
                     "call tc_prepare_cast() and check its status");
    }
    return cast->run(from, to, count);
  });
}

}  // extern "C"
