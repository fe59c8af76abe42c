// Exact decimals, which can have a thousand digits, in the space that there is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tcast {

// At most `width` columns. What is too long loses its middle; a very large or small number becomes
// "5.8774717541114…e-39", because its size says more than its last digits.
[[nodiscard]] std::string shortened_decimal(std::string_view exact, std::size_t width);

// At most three digits, with a sign: "+2.44e-05". Any exponent.
[[nodiscard]] std::string rounded_decimal(std::string_view exact);

}  // namespace tcast
