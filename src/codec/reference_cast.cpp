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
               .message = formatted("value {} does not fit {} (from {})", value, name(to), name(from)),
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

Encoded encode(const Real& value, DType to, const Policy& policy) noexcept {
  switch (family(to)) {
    case Family::boolean:
      return encode_bool(value);
    case Family::integer:
      return encode_integer(value, to, policy);
    case Family::floating:
      return encode_float(value, to, policy);
    case Family::text:  // no code of one element; append_text() writes it
      break;
  }
  return {};
}

Encoded cast_code(DType from, std::uint64_t bits, DType to, const Policy& policy) noexcept {
  if (policy.scale != 1.0) return encode(scaled(decode(from, bits), policy.scale), to, policy);
  if (from == to) return {.bits = bits};
  return encode(decode(from, bits), to, policy);
}

Result<void> reference_cast(const std::byte* src, DType from, std::byte* dst, DType to, std::size_t count,
                            const Policy& policy) {
  // Ascending order makes src == dst safe: what is written never reaches beyond what has been read.
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = load_code(from, src, i);
    const Encoded encoded = cast_code(from, bits, to, policy);
    if ((encoded.events & event_error) != 0) return does_not_fit(from, bits, to, policy, i);
    store_code(to, dst, i, encoded.bits);
  }
  if (count != 0) clear_tail(to, dst, count);
  return {};
}

}  // namespace tensorcast::codec
