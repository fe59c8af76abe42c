// SPDX-License-Identifier: Apache-2.0
// Reads a file, and writes rows of blocks, while the n-th allocation fails, for every n: each time an error, never a
// crash. Allocations are those of operator new and, without sanitizers, of malloc() in any library.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/model.hpp"
#include "tensorcast/tensor_file.hpp"

namespace {

constexpr std::int64_t never = -1;
std::atomic<std::int64_t> allocations_left = never;  // until one fails
std::atomic<bool> all_further_fail = false;
std::atomic<bool> has_failed = false;

bool fails() {
  const std::int64_t left = allocations_left.load(std::memory_order_relaxed);
  if (left > 0) allocations_left.store(left - 1, std::memory_order_relaxed);
  if (left != 0) return false;
  has_failed = true;
  if (!all_further_fail) allocations_left = never;
  return true;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENSORCAST_OWN_MALLOC 0  // sanitizers have their own
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENSORCAST_OWN_MALLOC 0
#endif
#endif
#if !defined(TENSORCAST_OWN_MALLOC) && defined(__GLIBC__)
#define TENSORCAST_OWN_MALLOC 1
#endif

#if TENSORCAST_OWN_MALLOC
// These take the place of the C library's for all libraries of the program; its operator new calls them, too.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  if (!fails()) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}
void* calloc(std::size_t count, std::size_t bytes) {
  if (!fails()) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}
void* realloc(void* memory, std::size_t bytes) {
  if (!fails()) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!fails()) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = fails() ? nullptr : __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : ENOMEM;
}
}
#else
namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails()) throw std::bad_alloc();
  void* memory = nullptr;
  if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(bytes, 1)) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace tensorcast {
namespace {

namespace fs = std::filesystem;

// Calls `read` with more and more allocations until none fails. Returns their number.
template <class Read>
std::int64_t count_allocations(const Read& read) {
  for (std::int64_t allowed = 0;; ++allowed) {
    for (const bool for_good : {false, true}) {
      has_failed = false;
      all_further_fail = for_good;
      allocations_left = allowed;
      const auto result = read();
      allocations_left = never;
      if (!has_failed) return allowed;
      // A result that needs no memory may still succeed.
      if (!result.ok() && result.error().code == ErrorCode::internal) {
        const std::string& message = result.error().message;
        const bool no_thread = message == "Resource temporarily unavailable";  // as pthread_create() allocates
        EXPECT_TRUE(no_thread || message.find("memory") != std::string::npos) << message;
      }
    }
  }
}

template <class Visit>
int visit_valid_files(const std::string& layer, const Visit& visit) {
  int files = 0;
  for (const auto& format : fs::directory_iterator(fs::path(TENSORCAST_SOURCE_DIR) / "src" / layer)) {
    const fs::path folder = format.path() / "testdata" / "valid";
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      SCOPED_TRACE(entry.path().string());
      visit(entry.path().string());
      ++files;
    }
  }
  return files;
}

TEST(FailingAllocations, OfReadersOfTensors) {
  const int files = visit_valid_files("formats", [](const std::string& path) {
    const InspectRequest request{.input = path};  // copying the path may fail, too
    const auto needed = count_allocations([&] { return inspect(request); });
    EXPECT_GT(needed, 0);
    count_allocations([&] { return read_tensor(path); });
  });
  EXPECT_GT(files, 20);
}

TEST(FailingAllocations, OfReadersOfModels) {
  const int files = visit_valid_files("models", [](const std::string& path) {
    const auto needed = count_allocations([&] { return load_model(path, {}); });
    EXPECT_GT(needed, 0);
  });
  EXPECT_GT(files, 20);
}

// The first call of a format needs memory, later ones do not.
TEST(FailingAllocations, OfRowsInTheCallersMemory) {
  const Shape shape{160, 256};
  const std::vector<float> numbers(160 * 256, 1.5f);
  const TensorView weight{DType::float32, shape, std::as_bytes(std::span(numbers))};
  // glibc ends the process if a thread's first thread_local object finds no memory.
  const QuantizedSizes any = quantized_sizes("q8_0", shape).value();
  std::vector<std::byte> blocks(any.codes);
  ASSERT_TRUE(quantize_rows("q8_0", weight, 0, {.codes = blocks}).ok());
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    SCOPED_TRACE(std::string(recipe.scheme) + " of " + std::string(recipe.recipe));
    const QuantizeOptions options{.recipe = recipe.recipe, .compute_dtype = DType::float32, .maximum = 2.0f};
    const QuantizedSizes sizes = quantized_sizes(recipe.scheme, shape, options).value();
    std::vector<std::byte> codes(sizes.codes), scales(sizes.scales);
    const auto write = [&] { return quantize_rows(recipe.scheme, weight, 0, {codes, scales, {}}, options); };
    EXPECT_GT(count_allocations(write), 0);
    allocations_left = 0;
    const Result<void> again = write();
    allocations_left = never;
    EXPECT_TRUE(again.ok());
    const QuantizedTensor whole = quantize(weight, recipe.scheme, options).value();
    EXPECT_EQ(codes, std::vector<std::byte>(whole.codes.begin(), whole.codes.end()));
    EXPECT_EQ(scales, whole.scales);
  }
}

TEST(FailingAllocations, OfConversions) {
  // Syncing a disk would take most of the time.
  const fs::path parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  const fs::path folder = parent / ("tensorcast-allocations-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const int files = visit_valid_files("formats", [&](const std::string& path) {
    for (const char* output : {"out.npz", "out.pb"}) {
      ConvertRequest request;
      request.input = path;
      request.output = (folder / output).string();
      request.to = DType::string;
      request.execution.threads = 1;
      request.overwrite = true;
      request.verify = true;
      count_allocations([&] { return convert_file(request); });
      for (const auto& entry : fs::directory_iterator(folder)) {
        EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << "left: " << entry.path();
      }
    }
  });
  EXPECT_GT(files, 20);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tensorcast
