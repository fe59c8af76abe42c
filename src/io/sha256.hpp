// SHA-256, by OpenSSL's libcrypto, which uses the CPU's instructions for it.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

struct evp_md_ctx_st;

namespace tensorcast::io {

class Sha256 {
 public:
  Sha256();  // throws std::bad_alloc
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  // Returns 64 hexadecimal digits. Call once.
  [[nodiscard]] std::string digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace tensorcast::io
