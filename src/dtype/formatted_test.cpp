// SPDX-License-Identifier: Apache-2.0
#include "dtype/formatted.hpp"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace tensorcast {
namespace {

TEST(Formatted, PutsArgumentsInTheirPlaces) {
  const std::string owned = "text";
  EXPECT_EQ(formatted("{} of {}: {:.3g}, {}", std::uint64_t{3}, owned, 0.12345, std::string_view("view")),
            "3 of text: 0.123, view");
  EXPECT_EQ(formatted("0x{:04X}", 0x2e), "0x002E");
}

TEST(Formatted, JoinsWords) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined(std::array<std::string_view, 3>{"a", "b", "c"}), "a, b, c");
}

}  // namespace
}  // namespace tensorcast
