// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/file_glob.hpp"

#include <fmt/format.h>

#include "dtype/errors.hpp"

namespace tensorcast::checkpoint {
namespace {

// Returns the end of the set of characters that begins at `begin`, as in "[a-z]"; npos if nothing closes it.
std::size_t end_of_set(std::string_view glob, std::size_t begin) {
  std::size_t first = begin + 1;
  if (first < glob.size() && (glob[first] == '!' || glob[first] == '^')) ++first;
  return glob.find(']', first + 1);
}

std::string set_of(std::string_view set) {
  std::string text = "[";
  for (std::size_t i = 0; i < set.size(); ++i) {
    const char c = set[i];
    if (i == 0 && (c == '!' || c == '^')) {
      text += '^';
    } else if (c == '\\' || c == '[' || c == '^') {
      text += {'\\', c};
    } else {
      text += c;
    }
  }
  return text + "]";
}

}  // namespace

std::string regex_of_glob(std::string_view glob) {
  while (glob.size() > 1 && glob.ends_with('/')) glob.remove_suffix(1);
  const bool anchored = glob.find('/') != std::string_view::npos;
  if (glob.starts_with('/')) glob.remove_prefix(1);
  std::string text = anchored ? "(?s)^" : "(?s)(^|/)";
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    const std::size_t set_end = c == '[' ? end_of_set(glob, i) : std::string_view::npos;
    if (c == '*' && glob.substr(i).starts_with("**")) {
      text += ".*";
      ++i;
    } else if (c == '*') {
      text += "[^/]*";
    } else if (c == '?') {
      text += "[^/]";
    } else if (set_end != std::string_view::npos) {
      text += set_of(glob.substr(i + 1, set_end - i - 1));
      i = set_end;
    } else if (std::string_view("\\.+()|{}^$[]").find(c) != std::string_view::npos) {
      text += {'\\', c};
    } else {
      text += c;
    }
  }
  return text + "(/|$)";
}

Result<FileGlobs> FileGlobs::compile(const std::vector<std::string>& globs) {
  FileGlobs compiled;
  for (const std::string& glob : globs) {
    if (glob.empty()) return invalid("a glob of files is empty");
    if (!compiled.patterns_.add(glob, regex_of_glob(glob))) {
      return invalid(fmt::format("\"{}\" is not a glob of files", glob.substr(0, 100)),
                     "such as '*.bin', 'original' or 'vae/*.fp16.safetensors'");
    }
  }
  return compiled;
}

Result<void> FileGlobs::check_all_matched() const {
  const std::size_t unmatched = patterns_.first_unmatched();
  if (unmatched == patterns_.size()) return {};
  return invalid(fmt::format("the glob \"{}\" of `skip_files` matches no file", patterns_.text(unmatched)));
}

}  // namespace tensorcast::checkpoint
