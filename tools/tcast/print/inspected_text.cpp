// SPDX-License-Identifier: Apache-2.0
#include "print/inspected_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "print/stats_text.hpp"
#include "print/text_table.hpp"
#include "process/printable.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {

using tensorcast::FileSummary;
using tensorcast::name;
using tensorcast::Result;
using tensorcast::TensorSummary;

std::string_view shown_type(const TensorSummary& tensor) {
  return tensor.foreign_dtype.empty() ? name(tensor.dtype) : std::string_view(tensor.foreign_dtype);
}

std::string tensors_table(const std::vector<Inspected>& tensors) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"bytes", Align::right}});
  for (const auto& [summary, stats, specials, file_path] : tensors) {
    table.add_row(
        {shown_name(summary), std::string(shown_type(summary)), shape_text(summary.shape), grouped(summary.bytes)});
  }
  return table.to_string();
}

std::string types_table(const std::vector<Inspected>& tensors) {
  struct Total {
    std::string_view type;
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Total> totals;
  for (const auto& [summary, stats, specials, file_path] : tensors) {
    const std::string_view type = shown_type(summary);
    auto total = std::find_if(totals.begin(), totals.end(), [&](const Total& known) { return known.type == type; });
    if (total == totals.end()) total = totals.insert(total, Total{.type = type});
    ++total->tensors;
    total->bytes += summary.bytes;
  }
  Table table({{"dtype"}, {"tensors", Align::right}, {"bytes", Align::right}});
  for (const Total& total : totals) {
    table.add_row({std::string(total.type), grouped(total.tensors), grouped(total.bytes)});
  }
  return table.to_string();
}

std::string kinds_table(const std::vector<Inspected>& tensors) {
  struct Total {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string_view, Total> totals;
  for (const Inspected& tensor : tensors) {
    const std::vector<std::int64_t>& shape = tensor.summary.shape;
    Total& total = totals[name(tensorcast::tensor_kind(tensor.summary.name, shape.size()))];
    ++total.tensors;
    total.bytes += tensor.summary.bytes;
    const Result<std::size_t> count = tensorcast::element_count(shape);
    total.elements += count ? *count : 0;
  }
  std::vector<std::pair<std::string_view, Total>> rows(totals.begin(), totals.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  Table table({{"kind"}, {"tensors", Align::right}, {"elements", Align::right}, {"bytes", Align::right}});
  for (const auto& [kind, total] : rows) {
    table.add_row({std::string(kind), grouped(total.tensors), grouped(total.elements), grouped(total.bytes)});
  }
  return "\n" + table.to_string();
}

std::string problems_text(const std::vector<Inspected>& tensors) {
  std::string text;
  for (const auto& [summary, stats, specials, file_path] : tensors) {
    if (!summary.problem.empty()) {
      text += fmt::format("{}: {}\n", shown_name(summary), printable(summary.problem));
    }
  }
  return text.empty() ? "" : "\n" + text;
}

std::string totals_line(const FileSummary& file, const std::vector<Inspected>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& [summary, stats, specials, file_path] : tensors) bytes += summary.bytes;
  std::string count = count_text(file.tensors.size(), "tensor");
  if (tensors.size() != file.tensors.size()) count = fmt::format("{} of {}", grouped(tensors.size()), count);
  return fmt::format("\n{}: {}, {}\n", file.format, count, bytes_text(bytes));
}

std::string metadata_table(const FileSummary& file) {
  constexpr std::size_t longest_value = 80;
  if (file.metadata.empty()) return "";
  Table table({{"metadata"}, {""}});
  for (const auto& [key, value] : file.metadata) {
    table.add_row({printable(key), abbreviated(printable(value), longest_value)});
  }
  return "\n" + table.to_string();
}

std::string other_data_text(const std::string& other_data) {
  constexpr std::size_t longest = 400;
  if (other_data.empty()) return "";
  return fmt::format("\nother data, which `tcast convert` writes to a JSON file\n{}\n",
                     abbreviated(printable(other_data), longest));
}

}  // namespace tcast
