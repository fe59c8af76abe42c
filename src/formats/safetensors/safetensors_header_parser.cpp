// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/safetensors_header_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "io/memory_budget.hpp"

namespace tensorcast::formats::safetensors {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

// Shortens nlohmann's message to the reason, without the bytes of the file that it quotes.
std::string json_complaint(std::size_t position, const std::string& message) {
  if (message.find("UTF-8") != std::string::npos) return fmt::format("the header is not UTF-8 at byte {}", position);
  return fmt::format("the header is not valid JSON at byte {}", position);
}

// Checks each value against its place; returning false stops the parser, so only fields of the format are stored.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(std::size_t json_bytes) : budget_(json_bytes) {}

  Result<ParsedHeader> take() {
    if (error_) return *std::move(error_);
    return std::move(header_);
  }

  bool null() override {
    if (place_ != Place::metadata_value) return unexpected("null");
    place_ = Place::file;  // no metadata, as safetensors itself reads it
    return true;
  }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a number that is not whole"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    switch (place_) {
      case Place::shape:
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          return fail(fmt::format("dimension {} is too large", value));
        }
        if (entry().shape.size() == max_rank) return fail(fmt::format("more than {} dimensions", max_rank));
        entry().shape.push_back(static_cast<std::int64_t>(value));
        return true;
      case Place::offsets:
        if (offsets_seen_ == 2) return fail("data_offsets has more than two numbers");
        (offsets_seen_++ == 0 ? entry().begin : entry().end) = value;
        return true;
      default:
        return unexpected("a number");
    }
  }

  bool string(string_t& value) override {
    switch (place_) {
      case Place::metadata:
        header_.metadata.back().second = std::move(value);
        return true;
      case Place::dtype:
        entry().dtype = std::move(value);
        place_ = Place::tensor;
        return true;
      default:
        return unexpected("a string");
    }
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::outside:
        place_ = Place::file;
        return true;
      case Place::metadata_value:
        place_ = Place::metadata;
        return true;
      case Place::tensor_value:
        place_ = Place::tensor;
        seen_ = 0;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(string_t& value) override {
    switch (place_) {
      case Place::file:
        if (value == metadata_key) {
          if (has_metadata_) return fail("__metadata__ occurs twice");
          has_metadata_ = true;
          place_ = Place::metadata_value;
        } else {
          header_.entries.emplace_back().name = std::move(value);
          place_ = Place::tensor_value;
          return fits(io::MemoryBudget::grown_bytes<HeaderEntry> + sizeof(TensorInfo));
        }
        return true;
      case Place::metadata:
        header_.metadata.emplace_back(std::move(value), std::string());
        return fits(io::MemoryBudget::grown_bytes<Metadata::value_type>);
      default:  // Place::tensor
        return tensor_key(value);
    }
  }

  bool end_object() override {
    switch (place_) {
      case Place::metadata:
        place_ = Place::file;
        return check_metadata();
      case Place::tensor:
        for (const Field& field : fields) {
          if ((seen_ & field.bit) == 0) return fail(fmt::format("{} is missing", field.name));
        }
        place_ = Place::file;
        return true;
      default:  // Place::file
        return true;
    }
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape_value) {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::offsets_value) {
      place_ = Place::offsets;
      offsets_seen_ = 0;
      return true;
    }
    return unexpected("an array");
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_seen_ != 2) return fail("data_offsets has fewer than two numbers");
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) override {
    error_ = tensorcast::parse_error(json_complaint(position, problem.what()));
    return false;
  }

 private:
  // The place of the next value.
  enum class Place : std::uint8_t {
    outside,
    file,            // between tensors
    metadata_value,  // after "__metadata__":
    metadata,        // inside it; the next string is the value of the last key
    tensor_value,    // after a tensor's name; from here on inside a tensor
    tensor,          // between a tensor's fields
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
  };
  struct Field {
    std::string_view name;
    unsigned bit;
    Place place;
  };
  static constexpr Field fields[] = {
      {"dtype", 1, Place::dtype}, {"shape", 2, Place::shape_value}, {"data_offsets", 4, Place::offsets_value}};

  HeaderEntry& entry() { return header_.entries.back(); }

  bool tensor_key(const std::string& key) {
    for (const Field& field : fields) {
      if (key != field.name) continue;
      if ((seen_ & field.bit) != 0) return fail(fmt::format("{} occurs twice", field.name));
      seen_ |= field.bit;
      place_ = field.place;
      return true;
    }
    return fail(fmt::format("unknown field \"{}\"", key));
  }

  bool check_metadata() {
    const auto twice = find_repeated(header_.metadata, &Metadata::value_type::first);
    return !twice || fail(fmt::format("__metadata__ has \"{}\" twice", *twice));
  }

  bool unexpected(std::string_view what) {
    switch (place_) {
      case Place::outside:
        return fail(fmt::format("the header is {}, not an object", what));
      case Place::metadata_value:
        return fail(fmt::format("__metadata__ is {}, not an object of strings", what));
      case Place::metadata:
        return fail(fmt::format("__metadata__ \"{}\" is {}, not a string", header_.metadata.back().first, what));
      case Place::tensor_value:
        return fail(fmt::format("the tensor's entry is {}, not an object", what));
      case Place::dtype:
        return fail(fmt::format("dtype is {}, not a string", what));
      case Place::shape_value:
        return fail(fmt::format("shape is {}, not an array", what));
      case Place::shape:
        return fail(fmt::format("shape holds {}", what));
      case Place::offsets_value:
        return fail(fmt::format("data_offsets is {}, not an array", what));
      case Place::offsets:
        return fail(fmt::format("data_offsets holds {}", what));
      case Place::file:
      case Place::tensor:
        break;  // JSON's grammar requires a key here
    }
    return fail(fmt::format("{} is out of place", what));
  }

  bool fail(std::string message) {
    error_ = tensorcast::parse_error(std::move(message));
    if (place_ >= Place::tensor_value) error_->tensor = entry().name;
    return false;
  }

  bool fits(std::uint64_t bytes) {
    if (budget_.try_take(bytes)) return true;
    error_ = io::MemoryBudget::exceeded();
    return false;
  }

  io::MemoryBudget budget_;
  ParsedHeader header_;
  Place place_ = Place::outside;
  unsigned seen_ = 0;  // bits of the fields of the current tensor
  unsigned offsets_seen_ = 0;
  bool has_metadata_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<ParsedHeader> parse_header_json(std::string_view json) {
  // nlohmann would treat a zero byte as the end and ignore the rest.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
    return parse_error(json_complaint(zero + 1, ""));
  }
  HeaderHandler handler(json.size());
  // If this returns false, the handler has the reason.
  (void)nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  return handler.take();
}

}  // namespace tensorcast::formats::safetensors
