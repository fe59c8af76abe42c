// SPDX-License-Identifier: Apache-2.0
#include "codec/reference_cast.hpp"

#include "codec/bool_codec.hpp"
#include "codec/float_codec.hpp"
#include "codec/integer_codec.hpp"
#include "codec/packing.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast::codec {

Error does_not_fit(DType from, std::uint64_t bits, DType to, const Policy& policy, std::size_t index) {
  Policy brief;
  brief.float_string = FloatString::shortest;
  std::string value;
  append_text(from, bits, brief, value);
  if (policy.scale != 1.0) value += formatted(" times scale {}", policy.scale);
  return Error{.code = ErrorCode::out_of_range,
               .message = formatted("value {} {} {} (from {})", value, refusal(policy), name(to), name(from)),
               .element = index};
}

Real decode(DType from, std::uint64_t bits) noexcept {
  switch (family(from)) {
    case Family::boolean:
      return decode_bool(bits);
    case Family::integer:
      return decode_integer(from, bits);
    case Family::floating:
      return decode_float(from, bits);
    case Family::text:  // no code of one element; decode_text() reads it
      break;
  }
  return {};
}

Encoded encode(const Real& value, DType to, const Policy& policy, std::uint32_t random) noexcept {
  Encoded encoded;
  switch (family(to)) {
    case Family::boolean:
      encoded = encode_bool(value);
      if (policy.inexact_is_error && value.kind == Real::Kind::infinite) return {.events = event_error};
      break;
    case Family::integer:
      encoded = encode_integer(value, to, policy, random);
      break;
    case Family::floating:
      encoded = encode_float(value, to, policy, random);
      break;
    case Family::text:  // no code of one element; append_text() writes it
      break;
  }
  // Every other event changes a value.
  if (policy.inexact_is_error && encoded.events != 0) return {.events = event_error};
  return encoded;
}

Encoded cast_code(DType from, std::uint64_t bits, DType to, const Policy& policy, std::uint32_t random) noexcept {
  if (policy.scale != 1.0) return encode(scaled(decode(from, bits), policy.scale), to, policy, random);
  if (from == to) return {.bits = bits};
  return encode(decode(from, bits), to, policy, random);
}

Result<void> reference_cast(const std::byte* src, DType from, std::byte* dst, DType to, std::size_t count,
                            const Policy& policy, std::uint64_t first) {
  // Ascending order makes src == dst safe: what is written never reaches beyond what has been read.
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = load_code(from, src, i);
    const Encoded encoded = cast_code(from, bits, to, policy, random_of(policy, first + i));
    if ((encoded.events & event_error) != 0) return does_not_fit(from, bits, to, policy, i);
    store_code(to, dst, i, encoded.bits);
  }
  if (count != 0) clear_tail(to, dst, count);
  return {};
}

}  // namespace tensorcast::codec
