#include "formats/format.hpp"

namespace tensorcast::formats {

Result<StringBuffer> Reader::read_strings(std::size_t) {
  return Error{.code = ErrorCode::unsupported, .message = "this format has no strings"};
}

Result<void> Writer::append_strings(const StringBuffer&) {
  return Error{.code = ErrorCode::unsupported, .message = "this format cannot hold strings"};
}

}  // namespace tensorcast::formats
