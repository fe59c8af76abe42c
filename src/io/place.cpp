// SPDX-License-Identifier: Apache-2.0
#include "io/place.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "dtype/guarded.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "io/path_name.hpp"
#include "io/system_calls.hpp"
#include "io/system_error.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::io {
namespace {

namespace fs = std::filesystem;

// Adds the parts of a path, without "." and empty ones.
void add_parts(std::string_view path, std::vector<std::string>& parts) {
  for (const std::string_view part : split(path, '/')) {
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
}

// Returns the identities of all folders on the way to `real`, a path without links, and its own.
Result<std::vector<InputFile::Identity>> chain_of(const std::string& real) {
  std::vector<std::string> prefixes = {"/"};
  for (std::size_t end = 1; end < real.size();) {
    end = std::min(real.find('/', end + 1), real.size());
    prefixes.push_back(real.substr(0, end));
  }
  std::vector<InputFile::Identity> chain;
  for (const std::string& prefix : prefixes) {
    struct stat found {};
    if (::lstat(prefix.c_str(), &found) != 0) return system_error("look up", prefix, errno);
    chain.push_back(identity_of(found));
  }
  return chain;
}

}  // namespace

Result<Place> Place::of(const std::string& path) {
  Place place;
  if (is_url(path)) {
    add_parts(path, place.missing_);
    return place;
  }
  std::error_code failed;
  const std::string whole = fs::absolute(path, failed).string();
  if (failed) return system_error("look up", path, failed.value());
  std::vector<std::string> parts;
  add_parts(whole, parts);
  std::string real = "/";
  for (std::string& part : parts) {
    if (!place.missing_.empty()) {
      if (part == "..") {
        place.missing_.pop_back();
      } else {
        place.missing_.push_back(std::move(part));
      }
      continue;
    }
    const std::string next = real + "/" + part;
    const std::unique_ptr<char, decltype(&std::free)> found(::realpath(next.c_str(), nullptr), &std::free);
    if (found) {
      real = found.get();
    } else if (errno == ENOENT || errno == ENOTDIR) {
      place.missing_.push_back(std::move(part));
    } else {
      return system_error("look up", path, errno);
    }
  }
  place.chain_ = TRY(chain_of(real));
  return place;
}

bool Place::is(const Place& other) const noexcept {
  if (chain_.empty() || other.chain_.empty())
    return chain_.empty() == other.chain_.empty() && missing_ == other.missing_;
  return chain_.back() == other.chain_.back() && missing_ == other.missing_;
}

bool Place::is_below(const Place& folder) const noexcept {
  if (chain_.empty() != folder.chain_.empty()) return false;
  const bool begins = missing_.size() > folder.missing_.size() &&
                      std::equal(folder.missing_.begin(), folder.missing_.end(), missing_.begin());
  if (chain_.empty()) return begins;
  if (chain_.back() == folder.chain_.back()) return begins;
  return folder.missing_.empty() && std::ranges::find(chain_, folder.chain_.back()) != chain_.end();
}

}  // namespace tensorcast::io

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

Result<void> check_places(const PathUse& written, std::span<const PathUse> others) {
  const io::Place place = TRY(io::Place::of(written.path));
  for (const PathUse& other : others) {
    const io::Place used = TRY(io::Place::of(other.path));
    const auto refuse = [&](std::string message) {
      return Error{.code = ErrorCode::invalid_argument,
                   .message = std::move(message),
                   .hint = fmt::format("give the {} another place", written.noun),
                   .file = written.path};
    };
    if (place.is(used)) return refuse(fmt::format("the {} would overwrite the {}", written.noun, other.noun));
    if (other.folder && place.is_below(used)) {
      return refuse(fmt::format("the {} would be inside the folder of the {}", written.noun, other.noun));
    }
    if (written.folder && used.is_below(place)) {
      return refuse(fmt::format("the {} would be inside the folder of the {}", other.noun, written.noun));
    }
  }
  return {};
}

}  // namespace

Result<void> check_apart(const PathUse& written, std::span<const PathUse> others) {
  return guarded([&] { return check_places(written, others); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
