// SPDX-License-Identifier: Apache-2.0
// Shortens exact decimals, which can have a thousand digits, to a given width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tcast {

// Returns at most `width` columns. A long decimal loses its middle; a very large or small number becomes
// "5.8774717541114…e-39", because its magnitude matters more than its last digits.
[[nodiscard]] std::string shortened_decimal(std::string_view exact, std::size_t width);

// Returns at most three digits with a sign, for any exponent: "+2.44e-05".
[[nodiscard]] std::string rounded_decimal(std::string_view exact);

}  // namespace tcast
