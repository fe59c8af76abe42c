// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::formats::npy {
namespace {

constexpr std::size_t version_bytes = 2;
constexpr std::size_t max_length_bytes = 4;
constexpr std::size_t max_header_bytes = std::size_t{1} << 20;  // NumPy's own limit is 10,000
constexpr std::size_t alignment = 64;
constexpr std::size_t growth_digits = 21;  // NumPy leaves room for the first dimension to grow in place

Error malformed(std::string what) { return parse_error("malformed npy header: " + std::move(what)); }

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } only: the three keys once each in any order,
// strings without escapes, a tuple of plain integers.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    if (!consume('{')) return malformed("it does not begin with {");
    while (!consume('}')) {
      TRY(parse_item());
      if (consume(',')) continue;
      if (consume('}')) break;
      return malformed(fmt::format("expected , or }} at byte {}", position_));
    }
    skip_space();
    if (position_ != text_.size()) return malformed("text after the closing }");
    for (const auto& [seen, key] :
         {std::pair{has_descr_, "descr"}, {has_order_, "fortran_order"}, {has_shape_, "shape"}}) {
      if (!seen) return malformed(fmt::format("'{}' is missing", key));
    }
    return std::move(header_);
  }

 private:
  Result<void> parse_item() {
    const std::optional<std::string_view> key = parse_string();
    if (!key) return malformed(fmt::format("expected a key at byte {}", position_));
    if (!consume(':')) return malformed(fmt::format("expected : at byte {}", position_));
    if (*key == "descr") return once(has_descr_, *key, &DictParser::parse_descr);
    if (*key == "fortran_order") return once(has_order_, *key, &DictParser::parse_order);
    if (*key == "shape") return once(has_shape_, *key, &DictParser::parse_shape);
    return malformed(fmt::format("unknown key '{}'", key->substr(0, 40)));
  }

  Result<void> once(bool& seen, std::string_view key, Result<void> (DictParser::*parse_value)()) {
    if (seen) return malformed(fmt::format("'{}' appears twice", key));
    seen = true;
    return (this->*parse_value)();
  }

  Result<void> parse_descr() {
    skip_space();
    if (peek() == '[' || peek() == '(') return parse_fields();
    const std::optional<std::string_view> descr = parse_string();
    if (!descr) return malformed("'descr' is not a string");
    header_.descr = *descr;
    return {};
  }

  // The fields of a structured array, which parse_descr() refuses: up to the end of its list.
  Result<void> parse_fields() {
    const std::size_t begin = position_;
    int depth = 0;
    do {
      const char c = peek();
      if (c == '\0') return malformed("'descr' has no end");
      if (c == '\'' || c == '"') {
        if (!parse_string()) return malformed("'descr' has a string without an end");
        continue;
      }
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      ++position_;
    } while (depth > 0);
    header_.descr = text_.substr(begin, position_ - begin);
    return {};
  }

  Result<void> parse_order() {
    if (consume_word("True")) {
      header_.fortran_order = true;
    } else if (!consume_word("False")) {
      return malformed("'fortran_order' is neither True nor False");
    }
    return {};
  }

  Result<void> parse_shape() {
    if (!consume('(')) return malformed("'shape' is not a tuple");
    bool comma = true;  // (3) is a number in Python, (3,) a tuple
    while (!consume(')')) {
      if (!comma) return malformed(fmt::format("expected , or ) at byte {}", position_));
      const std::optional<std::int64_t> dimension = parse_dimension();
      if (!dimension) return malformed("'shape' has a dimension that is not a 64-bit integer");
      if (*dimension < 0) return malformed(fmt::format("'shape' has the negative dimension {}", *dimension));
      if (header_.shape.size() == max_rank) return malformed(fmt::format("'shape' has over {} dimensions", max_rank));
      header_.shape.push_back(*dimension);
      comma = consume(',');
    }
    if (header_.shape.size() == 1 && !comma) return malformed("'shape' is not a tuple");
    return {};
  }

  std::optional<std::int64_t> parse_dimension() {
    skip_space();
    std::int64_t value = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status != std::errc{}) return std::nullopt;
    position_ += static_cast<std::size_t>(end - begin);
    if (peek() == 'L') ++position_;  // the suffix of Python 2's long integers
    return value;
  }

  std::optional<std::string_view> parse_string() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view content = text_.substr(position_ + 1, end - position_ - 1);
    if (content.find_first_of("\\\n") != std::string_view::npos) return std::nullopt;
    position_ = end + 1;
    return content;
  }

  bool consume_word(std::string_view word) {
    skip_space();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  bool consume(char c) {
    skip_space();
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  void skip_space() { position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size()); }
  [[nodiscard]] char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  std::string_view text_;
  std::size_t position_ = 0;
  Header header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

bool has_magic(std::span<const std::byte> head) noexcept {
  return head.size() >= magic.size() && std::equal(magic.begin(), magic.end(), head.begin(), [](char c, std::byte b) {
           return std::byte(static_cast<unsigned char>(c)) == b;
         });
}

Result<Header> read_header(StreamSource& source) {
  std::array<std::byte, magic.size() + version_bytes + max_length_bytes> head{};
  const std::size_t fixed_bytes = magic.size() + version_bytes;
  if (source.size() < fixed_bytes) return malformed("the file ends within it");
  TRY(source.read(0, std::span(head).first(fixed_bytes)));
  if (!has_magic(head)) return malformed("no \\x93NUMPY at the beginning");
  const int version = std::to_integer<int>(head[magic.size()]);
  const int minor = std::to_integer<int>(head[magic.size() + 1]);
  if (version < 1 || version > 3 || minor != 0) {
    return unsupported(fmt::format("npy version {}.{} is unknown", version, minor));
  }
  const std::size_t length_bytes = version == 1 ? 2 : max_length_bytes;
  const std::size_t begin = fixed_bytes + length_bytes;
  if (source.size() < begin) return malformed("the file ends within it");
  const std::span<std::byte> length_field = std::span(head).subspan(fixed_bytes, length_bytes);
  TRY(source.read(fixed_bytes, length_field));
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::size_t>(length_field[i]) << (8 * i);
  if (length > source.size() - begin) {
    return malformed(fmt::format("it claims {} bytes, but only {} follow", length, source.size() - begin));
  }
  if (length > max_header_bytes) return malformed(fmt::format("it claims {} bytes", length));
  std::string text(length, '\0');
  TRY(source.read(begin, std::as_writable_bytes(std::span(text))));
  Result<Header> header = DictParser(text).parse();
  if (header) header->data_offset = begin + length;
  return header;
}

std::string format_header(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string tuple = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, tuple);
  if (!shape.empty()) text.append(growth_digits - fmt::formatted_size("{}", shape.front()), ' ');
  // Version 1.0 suffices: the header of an array of rank max_rank stays far below its 65,535 bytes.
  const std::size_t prefix_bytes = magic.size() + version_bytes + 2;
  text.append(alignment - (prefix_bytes + text.size() + 1) % alignment, ' ');
  text += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace tensorcast::formats::npy
