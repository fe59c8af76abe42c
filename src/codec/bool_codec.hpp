// SPDX-License-Identifier: Apache-2.0
// One byte a truth value: every nonzero byte reads as true, and true is written as 1.
#pragma once

#include <cstdint>

#include "codec/encoded.hpp"
#include "codec/real.hpp"

namespace tensorcast::codec {

[[nodiscard]] Real decode_bool(std::uint64_t bits) noexcept;
[[nodiscard]] Encoded encode_bool(const Real& value) noexcept;  // D7: false for zeros alone

}  // namespace tensorcast::codec
