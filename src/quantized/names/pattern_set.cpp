// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/pattern_set.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorcast::quantized {
namespace {

constexpr std::size_t most_pattern_bytes = 1000;
constexpr std::size_t part_patterns = 1024;  // a state of the automaton has a place for each
constexpr std::int64_t least_memory = std::int64_t{1} << 20, most_memory = std::int64_t{64} << 20;

re2::RE2::Options options_with(std::int64_t memory) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_never_capture(true);
  options.set_max_mem(memory);
  return options;
}

bool starts_with(const std::string& name, const std::string& pattern) {
  const re2::RE2 regex(pattern, options_with(most_memory));
  return regex.ok() && regex.Match(name, 0, name.size(), re2::RE2::ANCHOR_START, nullptr, 0);
}

}  // namespace

struct PatternSet::Part {
  explicit Part(std::int64_t memory) : set(options_with(memory), re2::RE2::ANCHOR_START) {}

  re2::RE2::Set set;
  std::vector<std::size_t> places;  // of its patterns
  bool compiled = false;            // false: too large for one automaton
};

std::string pattern_of_glob(std::string_view glob) {
  std::string pattern = re2::RE2::QuoteMeta(glob);
  re2::RE2::GlobalReplace(&pattern, R"(\\\*)", ".*");
  re2::RE2::GlobalReplace(&pattern, R"(\\\?)", ".");
  return pattern + "$";
}

PatternSet::PatternSet(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {
  const std::size_t parts = patterns_.size() / part_patterns + 1;
  const std::int64_t memory = std::max(most_memory / static_cast<std::int64_t>(parts), least_memory);
  for (std::size_t first = 0; first < patterns_.size(); first += part_patterns) {
    auto part = std::make_shared<Part>(memory);
    for (std::size_t i = first; i < std::min(first + part_patterns, patterns_.size()); ++i) {
      const bool known =
          patterns_[i].size() <= most_pattern_bytes && part->set.Add("(?:" + patterns_[i] + ")", nullptr) >= 0;
      if (known) part->places.push_back(i);
      if (!known && !first_unknown_) first_unknown_ = i;
    }
    part->compiled = part->set.Compile();
    if (!part->places.empty()) parts_.push_back(std::move(part));
  }
}

std::vector<std::size_t> PatternSet::find_all(const std::string& name) const {
  std::vector<std::size_t> matching;
  for (const std::shared_ptr<const Part>& part : parts_) {
    std::vector<int> found;
    re2::RE2::Set::ErrorInfo error{};
    if (part->compiled && part->set.Match(name, &found, &error)) {
      std::ranges::sort(found);
      for (const int index : found) matching.push_back(part->places[static_cast<std::size_t>(index)]);
    } else if (!part->compiled || error.kind == re2::RE2::Set::kOutOfMemory) {
      std::ranges::copy_if(part->places, std::back_inserter(matching),
                           [&](std::size_t place) { return starts_with(name, patterns_[place]); });
    }
  }
  return matching;
}

}  // namespace tensorcast::quantized
