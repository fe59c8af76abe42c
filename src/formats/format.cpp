#include "formats/format.hpp"

#include <algorithm>

namespace tensorcast {

DType SourceTypes::of(std::string_view tensor) const noexcept {
  const auto found = std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == tensor; });
  return found == named.end() ? all : found->second;
}

}  // namespace tensorcast

namespace tensorcast::formats {

Result<StringBuffer> Reader::read_strings(std::size_t) {
  return Error{.code = ErrorCode::unsupported, .message = "this format has no strings"};
}

Result<void> Writer::append_strings(const StringBuffer&) {
  return Error{.code = ErrorCode::unsupported, .message = "this format cannot hold strings"};
}

}  // namespace tensorcast::formats
