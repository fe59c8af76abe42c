// SPDX-License-Identifier: Apache-2.0
// For tests that compare a list of options with its struct.
#pragma once

#include <cstddef>

namespace tensorcast::options {

// Becomes a member of any type.
struct AnyMember {
  template <class Member>
  constexpr operator Member() const {  // NOLINT
    return Member{};
  }
};

// How many members an aggregate has.
template <class Struct, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { Struct{Members{}..., AnyMember{}}; }) {
    return member_count<Struct, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

}  // namespace tensorcast::options
