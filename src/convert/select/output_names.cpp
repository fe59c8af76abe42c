// SPDX-License-Identifier: Apache-2.0
#include "convert/select/output_names.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <unordered_map>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<void> check_rename(const Rename& rename) {
  return guarded([&]() -> Result<void> {
    const Result<file_conversion::OutputNames> compiled = file_conversion::OutputNames::compile({.rename = {rename}});
    return compiled ? Result<void>() : compiled.error();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {
namespace {

// Longer names would only come from a rewrite that repeats itself.
constexpr std::size_t max_name_bytes = 65'535;

}  // namespace

Result<OutputNames> OutputNames::compile(const OutputFilter& filter) {
  OutputNames names;
  for (const auto& [list, texts] : {std::pair(&names.drop_, &filter.drop), std::pair(&names.only_, &filter.only)}) {
    *list = TRY(PatternList::compile(*texts));
  }
  for (const Rename& rename : filter.rename) {
    names.renames_.push_back(TRY(compile_renaming(rename)));
  }
  return names;
}

Result<OutputNames::Renaming> OutputNames::compile_renaming(const Rename& rename) {
  if (Result<NamePattern> pattern = NamePattern::compile(rename.pattern); !pattern) return std::move(pattern).error();
  // NamePattern has no groups, and these are what a rewrite refers to.
  Renaming renaming{.text = rename.pattern,
                    .regex = std::make_shared<const re2::RE2>(rename.pattern, re2::RE2::Quiet),
                    .replacement = rename.replacement};
  std::string complaint;
  if (rename.replacement.size() > max_name_bytes) complaint = "it is too long";
  if (complaint.empty()) (void)renaming.regex->CheckRewriteString(rename.replacement, &complaint);
  if (complaint.empty()) return renaming;
  return invalid(fmt::format("\"{}\" is not a new name for what \"{}\" matches: {}", rename.replacement.substr(0, 100),
                             rename.pattern, complaint),
                 "\\1 is the first group of the pattern, \\0 all that it matches, \\\\ a backslash");
}

bool OutputNames::writes(const std::string& name) {
  const bool dropped = drop_.matches(name);
  const bool chosen = only_.size() == 0 || only_.matches(name);
  return chosen && !dropped;
}

Result<std::string> OutputNames::new_name(const std::string& name) {
  const auto fail = [&](std::string message) { return of_tensor(name, invalid(std::move(message))); };
  std::string renamed = name;
  for (Renaming& renaming : renames_) {
    if (re2::RE2::GlobalReplace(&renamed, *renaming.regex, renaming.replacement) > 0) renaming.matched = true;
    if (renamed.size() > max_name_bytes) return fail(fmt::format("its new name would have {} bytes", renamed.size()));
  }
  if (renamed.empty() && !name.empty()) return fail("`rename` leaves nothing of its name");
  return renamed;
}

Result<formats::Metadata> OutputNames::metadata_of(const formats::Metadata& metadata,
                                                   const std::unordered_set<std::string>& tensors) {
  if (keeps_all()) return metadata;
  formats::Metadata kept;
  for (const auto& [key, value] : metadata) {
    if (!tensors.contains(value)) {
      kept.emplace_back(key, value);
      continue;
    }
    if (!writes(key) || !writes(value)) continue;
    std::string new_key = TRY(new_name(key));
    std::string new_value = TRY(new_name(value));
    kept.emplace_back(std::move(new_key), std::move(new_value));
  }
  return kept;
}

Result<void> OutputNames::check_all_matched() const {
  TRY(drop_.check_all_matched("drop"));
  TRY(only_.check_all_matched("only"));
  for (std::size_t i = 0; i < renames_.size(); ++i) {
    if (!renames_[i].matched) return PatternList::matches_nothing("rename", i, renames_[i].text);
  }
  return {};
}

Result<void> check_names_differ(const std::vector<std::string>& old_names, const std::vector<std::string>& new_names) {
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < new_names.size(); ++i) {
    const auto [first, added] = known.emplace(new_names[i], i);
    if (added) continue;
    return of_tensor(old_names[i], invalid(fmt::format("\"{}\" and this one would both be named \"{}\"",
                                                       old_names[first->second], new_names[i]),
                                           "change `rename`, or leave one of them out by `drop`"));
  }
  return {};
}

}  // namespace tensorcast::file_conversion
