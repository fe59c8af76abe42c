// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/unpickler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_map>

#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/pytorch/pickle_functions.hpp"
#include "formats/pytorch/pickle_names.hpp"

namespace tensorcast::formats::pytorch {
namespace {

constexpr int newest_protocol = 5;
constexpr std::size_t max_long_bytes = 1024;  // a Python integer of 8192 bits; larger ones are not data

// Returns the decimal digits of a little-endian integer in two's complement. Divides words by the largest power of ten
// that they hold: 1 kB takes 0.1 ms, and digit by digit took 8 ms.
std::string decimal(const std::string& bytes) {
  constexpr std::uint32_t chunk = 1'000'000'000;
  constexpr int chunk_digits = 9;
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(negative ? ~bytes[i] : bytes[i]);
    words[i / 4] |= byte << i % 4 * 8;
  }
  // The complement plus one is the magnitude.
  bool carry = negative;
  for (std::size_t i = 0; carry && i < words.size(); ++i) carry = ++words[i] == 0;
  if (carry) words.push_back(1);
  std::string digits;
  while (!words.empty() && words.back() == 0) words.pop_back();
  while (!words.empty()) {
    std::uint64_t remainder = 0;
    for (std::size_t i = words.size(); i-- > 0;) {
      remainder = remainder << 32 | words[i];
      words[i] = static_cast<std::uint32_t>(remainder / chunk);
      remainder %= chunk;
    }
    while (!words.empty() && words.back() == 0) words.pop_back();
    for (int i = 0; i < chunk_digits && (remainder != 0 || !words.empty()); ++i) {
      digits += static_cast<char>('0' + remainder % 10);
      remainder /= 10;
    }
  }
  if (digits.empty()) digits = "0";
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

// Python writes half a surrogate pair, as of a file's name that is not UTF-8, as the three bytes of its number. Puts
// U+FFFD in its place, which has three bytes, too. Returns whether there was one.
bool replace_surrogates(std::string& text) {
  bool found = false;
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const bool is_half = text[i] == '\xED' && static_cast<unsigned char>(text[i + 1]) >= 0xA0 &&
                         (static_cast<unsigned char>(text[i + 2]) & 0xC0) == 0x80;
    if (!is_half) continue;
    text.replace(i, 3, "\xEF\xBF\xBD");
    found = true;
  }
  return found;
}

class Unpickler {
 public:
  Unpickler(WindowReader& input, Objects& objects) : input_(input), objects_(objects) {}

  Result<Ref> run() {
    while (true) {
      const std::uint8_t code = TRY(input_.get<std::uint8_t>());
      if (code == '.') break;
      TRY(step(code));
    }
    if (stack_.size() != 1) return malformed_pickle(fmt::format("{} values remain at its end", stack_.size()));
    return stack_.back();
  }

 private:
  Result<void> step(std::uint8_t code) {
    switch (code) {
      case 0x80:
        return protocol();
      case 0x95:
        return skip<std::uint64_t>();  // FRAME
      case '(':
        return push_mark();
      case '0':
        return pop();
      case '1':
        TRY(pop_to_mark());
        return {};
      case '2':
        TRY(need(1));
        return push(stack_.back());
      case 'N':
        return push_value({.kind = Kind::none});
      case 0x88:
        return push_integer(Kind::boolean, 1);
      case 0x89:
        return push_integer(Kind::boolean, 0);
      case 'I':
      case 'L':
        return push_decimal();
      case 'J':
        return push_fixed<std::int32_t>();
      case 'K':
        return push_fixed<std::uint8_t>();
      case 'M':
        return push_fixed<std::uint16_t>();
      case 0x8a:
        return push_long<std::uint8_t>();
      case 0x8b:
        return push_long<std::uint32_t>();
      case 'F':
        return push_real_text();
      case 'G':
        return push_real();
      case 'S':
        return push_quoted();
      case 'V':
        return push_escaped();
      case 'T':
        return push_text<std::uint32_t>(Kind::string, true);
      case 'U':
        return push_text<std::uint8_t>(Kind::string, true);
      case 'X':
        return push_text<std::uint32_t>(Kind::string, false);
      case 0x8c:
        return push_text<std::uint8_t>(Kind::string, false);
      case 0x8d:
        return push_text<std::uint64_t>(Kind::string, false);
      case 'B':
        return push_text<std::uint32_t>(Kind::bytes, false);
      case 'C':
        return push_text<std::uint8_t>(Kind::bytes, false);
      case 0x8e:
      case 0x96:
        return push_text<std::uint64_t>(Kind::bytes, false);
      default:
        return step_containers(code);
    }
  }

  Result<void> step_containers(std::uint8_t code) {
    switch (code) {
      case ']':
        return push_value({.kind = Kind::list});
      case ')':
        return push_value({.kind = Kind::tuple});
      case '}':
        return push_value({.kind = Kind::dict});
      case 0x8f:
        return push_value({.kind = Kind::set});
      case 'l':
        return push_marked(Kind::list);
      case 't':
        return push_marked(Kind::tuple);
      case 'd':
        return push_marked(Kind::dict);
      case 0x91:
        return push_marked(Kind::set);
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(code - 0x84u);
      case 'a':
        return append(Kind::list, 1);
      case 's':
        return append(Kind::dict, 2);
      case 'e':
        return append_marked(Kind::list);
      case 'u':
        return append_marked(Kind::dict);
      case 0x90:
        return append_marked(Kind::set);
      case 'p':
      case 'q':
      case 'r':
      case 0x94:
        return put(code);
      case 'g':
      case 'h':
      case 'j':
        return get(code);
      default:
        return step_objects(code);
    }
  }

  Result<void> step_objects(std::uint8_t code) {
    switch (code) {
      case 'c': {
        std::string module = TRY(input_.line());
        std::string name = TRY(input_.line());
        return push(find_name(objects_, module, name));
      }
      case 0x93:
        return stack_global();
      case 'R':
      case 0x81: {  // REDUCE, NEWOBJ
        TRY(need(2));
        const Ref arguments = take();
        return push(call(objects_, take(), arguments));
      }
      case 0x92: {  // NEWOBJ_EX
        TRY(need(3));
        const Ref named = take();
        const Ref arguments = take();
        return push(call_with_names(objects_, take(), arguments, named));
      }
      case 'b': {
        TRY(need(2));
        const Ref state = take();
        return set_state(objects_, stack_.back(), state);
      }
      case 'Q': {
        TRY(need(1));
        return push(make_storage(objects_, take()));
      }
      case 'i': {  // INST
        std::string module = TRY(input_.line());
        std::string name = TRY(input_.line());
        const Ref made_by = TRY(find_name(objects_, module, name));
        const std::vector<Ref> arguments = TRY(pop_to_mark());
        return push_instance(made_by, arguments);
      }
      case 'o': {  // OBJ
        const std::vector<Ref> items = TRY(pop_to_mark());
        if (items.empty()) return malformed_pickle("an operation lacks its operands");
        return push_instance(items.front(), std::span(items).subspan(1));
      }
      case 'P':
      case 0x82:
      case 0x83:
      case 0x84:
      case 0x97:
      case 0x98:
        return unsupported(
            fmt::format("the pickle has operation 0x{:02x}, which no checkpoint of tensors needs", code));
      default:
        return malformed_pickle(fmt::format("0x{:02x} at {} is not an operation", code, input_.position() - 1));
    }
  }

  // The stack.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Result<void> need(std::size_t count) const {
    return stack_.size() - floor() >= count ? Result<void>() : malformed_pickle("an operation lacks its operands");
  }
  Ref take() {
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Result<void> pop() {
    if (stack_.size() > floor()) {
      stack_.pop_back();
      return {};
    }
    if (marks_.empty()) return malformed_pickle("an operation lacks its operands");
    marks_.pop_back();
    return {};
  }
  Result<void> push(const Result<Ref>& value) {
    const Ref ref = TRY(value);
    TRY(objects_.budget().take_grown<Ref>());
    stack_.push_back(ref);
    return {};
  }
  Result<void> push_value(Value value) { return push(objects_.add(std::move(value))); }
  Result<void> push_integer(Kind kind, std::int64_t integer) { return push_value({.kind = kind, .integer = integer}); }
  Result<void> push_mark() {
    TRY(objects_.budget().take_grown<std::size_t>());
    marks_.push_back(stack_.size());
    return {};
  }
  Result<std::vector<Ref>> pop_to_mark() {
    if (marks_.empty()) return malformed_pickle("an operation lacks its mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Ref> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  // An object of an old class of Python 2.
  Result<void> push_instance(Ref made_by, std::span<const Ref> arguments) {
    const Ref tuple = TRY(objects_.add({.kind = Kind::tuple, .items = {arguments.begin(), arguments.end()}}));
    return push(call(objects_, made_by, tuple));
  }

  // Numbers and texts.
  Result<void> protocol() {
    const std::uint8_t version = TRY(input_.get<std::uint8_t>());
    if (version <= newest_protocol) return {};
    return unsupported(fmt::format("pickle protocol {} is not known", version));
  }
  template <class Number>
  Result<void> skip() {
    TRY(input_.get<Number>());
    return {};
  }
  template <class Number>
  Result<void> push_fixed() {
    const Number number = TRY(input_.get<Number>());
    return push_integer(Kind::integer, number);
  }
  Result<void> push_decimal() {
    std::string line = TRY(input_.line());
    if (line == "00" || line == "01") return push_integer(Kind::boolean, line == "01" ? 1 : 0);
    if (line.ends_with('L')) line.pop_back();
    return push_digits(std::move(line));
  }
  Result<void> push_digits(std::string digits) {
    const std::string_view magnitude = std::string_view(digits).substr(digits.starts_with('-') ? 1 : 0);
    if (magnitude.empty() || magnitude.size() > 3 * max_long_bytes ||
        magnitude.find_first_not_of("0123456789") != std::string_view::npos) {
      return malformed_pickle("an integer that is not in decimal");
    }
    std::int64_t integer = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), integer);
    if (error == std::errc()) return push_integer(Kind::integer, integer);
    return push_value({.kind = Kind::big_integer, .text = std::move(digits)});
  }
  template <class Length>
  Result<void> push_long() {
    const Length length = TRY(input_.get<Length>());
    if (length > max_long_bytes) {
      return unsupported(fmt::format("the pickle has an integer of {} bytes; {} are allowed", length, max_long_bytes));
    }
    const std::string bytes = TRY(input_.text(length));
    return push_digits(decimal(bytes));
  }
  Result<void> push_number(double real) { return push_value({.kind = Kind::real, .real = real}); }
  Result<void> push_real() {
    const std::uint64_t bits = TRY(input_.get<std::uint64_t>());
    return push_number(std::bit_cast<double>(__builtin_bswap64(bits)));
  }
  Result<void> push_real_text() {
    const std::string line = TRY(input_.line());
    double real = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), real);
    if (error == std::errc::invalid_argument || end != line.data() + line.size()) {
      return malformed_pickle("a number that is not in decimal");
    }
    return push_number(real);
  }
  // `python2`: bytes or text, which only their content can tell.
  template <class Length>
  Result<void> push_text(Kind kind, bool python2) {
    const Length length = TRY(input_.get<Length>());
    std::string text = TRY(input_.text(length));
    bool replaced = false;
    if (kind == Kind::string && !npy::is_utf8(text)) {
      replaced = !python2 && replace_surrogates(text);
      if (!python2 && !(replaced && npy::is_utf8(text))) return malformed_pickle("a text that is not UTF-8");
      if (python2) kind = Kind::bytes;
    }
    return push_value({.kind = kind, .integer = replaced ? 1 : 0, .text = std::move(text)});
  }
  Result<void> push_quoted() {
    const std::string line = TRY(input_.line());
    const bool quoted =
        line.size() >= 2 && line.front() == line.back() && (line.front() == '\'' || line.front() == '"');
    if (!quoted || line.find('\\') != std::string::npos || !npy::is_utf8(line)) {
      return malformed_pickle("a text that is not in quotes, or has escapes");
    }
    return push_value({.kind = Kind::string, .text = line.substr(1, line.size() - 2)});
  }
  Result<void> push_escaped() {
    std::string line = TRY(input_.line());
    // Latin-1, with \uXXXX for the rest; names of tensors are ASCII.
    if (!std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~' && c != '\\'; })) {
      return unsupported("the pickle has a text of protocol 0 that is not plain ASCII",
                         "save the checkpoint with torch.save's own protocol");
    }
    return push_value({.kind = Kind::string, .text = std::move(line)});
  }

  // Containers.
  Result<void> push_marked(Kind kind) {
    std::vector<Ref> items = TRY(pop_to_mark());
    if (kind == Kind::dict && items.size() % 2 != 0) return malformed_pickle("a key without a value");
    return push_value({.kind = kind, .items = std::move(items)});
  }
  Result<void> push_tuple(std::size_t count) {
    TRY(need(count));
    Value tuple{.kind = Kind::tuple};
    tuple.items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return push_value(std::move(tuple));
  }
  Result<void> append_to(Kind kind, std::span<const Ref> items) {
    TRY(need(1));
    Ref container = stack_.back();
    if (objects_[container].kind == Kind::foreign) {
      container = TRY(content_of(container, kind));
    }
    if (objects_[container].kind != kind) return malformed_pickle("items for a value that is not their container");
    if (kind == Kind::dict && items.size() % 2 != 0) return malformed_pickle("a key without a value");
    for (const Ref item : items) {
      TRY(objects_.append(container, item));
    }
    return {};
  }
  // Returns what holds the items of an object of another class. Of one with items and entries, the second are only
  // searched for tensors.
  Result<Ref> content_of(Ref object, Kind kind) {
    const auto content = static_cast<Ref>(objects_[object].integer);
    if (content != 0 && objects_[content].kind == kind) return content;
    const Ref made = TRY(objects_.add({.kind = kind}));
    if (content == 0) {
      objects_[object].integer = made;
    } else {
      TRY(objects_.append(object, made));
    }
    return made;
  }
  Result<void> append(Kind kind, std::size_t count) {
    TRY(need(count + 1));
    const std::vector<Ref> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return append_to(kind, items);
  }
  Result<void> append_marked(Kind kind) {
    const std::vector<Ref> items = TRY(pop_to_mark());
    return append_to(kind, items);
  }

  // The memo.
  Result<std::uint64_t> memo_index(std::uint8_t code) {
    if (code == 'q' || code == 'h') return input_.get<std::uint8_t>();
    if (code == 'r' || code == 'j') return input_.get<std::uint32_t>();
    if (code == 0x94) return std::uint64_t{memo_.size()};
    const std::string line = TRY(input_.line());
    const std::optional<std::uint64_t> index = parse_whole<std::uint64_t>(line);
    if (!index) return malformed_pickle("an index of the memo");
    return *index;
  }
  Result<void> put(std::uint8_t code) {
    const std::uint64_t index = TRY(memo_index(code));
    TRY(need(1));
    constexpr std::uint64_t node_bytes = 64;  // of an entry in the map
    if (!memo_.contains(index)) {
      TRY(objects_.budget().take(node_bytes));
    }
    memo_[index] = stack_.back();
    return {};
  }
  Result<void> get(std::uint8_t code) {
    const std::uint64_t index = TRY(memo_index(code));
    const auto found = memo_.find(index);
    if (found == memo_.end()) return malformed_pickle(fmt::format("value {} of the memo was never put there", index));
    return push(found->second);
  }

  Result<void> stack_global() {
    TRY(need(2));
    const Ref name = take();
    const Ref module = take();
    if (objects_[name].kind != Kind::string || objects_[module].kind != Kind::string) {
      return malformed_pickle("a name that is not text");
    }
    return push(find_name(objects_, objects_[module].text, objects_[name].text));
  }

  WindowReader& input_;
  Objects& objects_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Ref> memo_;
};

}  // namespace

Error malformed_pickle(std::string what) { return parse_error("malformed pickle: " + std::move(what)); }

Result<Ref> unpickle(WindowReader& input, Objects& objects) { return Unpickler(input, objects).run(); }

}  // namespace tensorcast::formats::pytorch
