#include "io/hidden_name.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string_view>

#include "io/file_descriptor.hpp"

namespace tensorcast::io {
namespace {

constexpr std::size_t max_kept_name = 200;  // of the 255 bytes that a name may have
constexpr std::string_view marker = ".tcast-";
constexpr std::string_view suffix = ".tmp";

std::string prefix_of(const std::string& name) {
  std::string prefix(1, '.');
  prefix.append(name, 0, max_kept_name).append(marker);
  return prefix;
}

std::uint64_t random_bits() noexcept {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) == sizeof bits) return bits;
  static std::atomic<std::uint64_t> counter{0};  // O_EXCL makes a collision harmless
  return static_cast<std::uint64_t>(std::time(nullptr)) * 0x9E3779B97F4A7C15u + ++counter;
}

// The process in `.NAME.tcast-PID-RANDOM.tmp`, or 0.
pid_t writer_of(std::string_view entry, std::string_view prefix) noexcept {
  if (!entry.starts_with(prefix) || !entry.ends_with(suffix)) return 0;
  const char* begin = entry.data() + prefix.size();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(begin, entry.data() + entry.size(), pid);
  return error == std::errc() && *end == '-' && pid > 0 ? pid : 0;
}

bool is_abandoned(int folder, const char* entry, pid_t writer) noexcept {
  if (::kill(writer, 0) == 0 || errno != ESRCH) return false;
  // The process may live on another host that shares the folder: its lock says so.
  const FileDescriptor fd(::openat(folder, entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

std::string make_hidden_name(const std::string& name) {
  char random[16] = {};
  const auto [end, error] = std::to_chars(random, random + sizeof random, random_bits(), 16);
  return prefix_of(name) + std::to_string(::getpid()) + "-" + std::string(random, end) + std::string(suffix);
}

void remove_stale_hidden_files(int folder, const std::string& name) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), &::closedir);
  if (!listing) {
    ::close(copy);
    return;
  }
  const std::string prefix = prefix_of(name);
  while (const dirent* entry = ::readdir(listing.get())) {
    const pid_t writer = writer_of(entry->d_name, prefix);
    if (writer != 0 && is_abandoned(folder, entry->d_name, writer)) ::unlinkat(folder, entry->d_name, 0);
  }
}

}  // namespace tensorcast::io
