// SPDX-License-Identifier: Apache-2.0
#include "convert/select/reason.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tensorcast::file_conversion {
namespace {

struct Row {
  TypeReason why;
  std::string_view name;
  std::string_view text;  // {0}: the number, {1}: the detail
};

constexpr auto rows = std::to_array<Row>({
    {TypeReason::to, "to", "`to`"},
    {TypeReason::rule, "rule", "rule {0}"},
    {TypeReason::excluded, "excluded", "excluded"},
    {TypeReason::not_included, "not_included", "not included"},
    {TypeReason::included, "included", "included"},
    {TypeReason::no_rule, "no_rule", "no rule"},
    {TypeReason::not_floating, "not_floating", "{1}"},
    {TypeReason::foreign, "foreign", "{1}"},
    {TypeReason::rank, "rank", "rank {0}"},
    {TypeReason::smaller, "smaller", "under {0} elements"},
    {TypeReason::not_a_matrix, "not_a_matrix", "not a matrix"},
    {TypeReason::kind, "kind", "{1}"},
    {TypeReason::optimizer_state, "optimizer_state", "optimizer state"},
    {TypeReason::decodes_codes, "decodes_codes", "decodes codes"},
    {TypeReason::demanded, "demanded", "{1}"},
    {TypeReason::unaligned, "unaligned", "{1}"},
    {TypeReason::respelled, "respelled", "{1}"},
    {TypeReason::quantized, "quantized", "{1}"},
    {TypeReason::kept_float32, "kept_float32", "float32 in {1}"},
    {TypeReason::not_loaded, "not_loaded", "{1}"},
    {TypeReason::unfit, "unfit", "{1}"},
});

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].why != static_cast<TypeReason>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

std::string Reason::text() const {
  return fmt::format(fmt::runtime(rows[static_cast<std::size_t>(why)].text), number, detail);
}

std::optional<TypeReason> parse_reason(std::string_view name) noexcept {
  const auto row = std::ranges::find(rows, name, &Row::name);
  return row == rows.end() ? std::nullopt : std::optional(row->why);
}

}  // namespace tensorcast::file_conversion

std::string_view tensorcast::name(TypeReason why) noexcept {
  const auto index = static_cast<std::size_t>(why);
  return index < file_conversion::rows.size() ? file_conversion::rows[index].name : std::string_view();
}
