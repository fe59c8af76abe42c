// SPDX-License-Identifier: Apache-2.0
// Converts a transposed matrix, and a large array on the threads of the program's own pool.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include <tensorcast/strided.hpp>
#include <tensorcast/typed_cast.hpp>

namespace tc = tensorcast;

// Stands for a pool that the program has anyway.
class TwoThreads final : public tc::Executor {
 public:
  void run(std::size_t count, const tc::Task& task) override {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < count; i = next++) task(i);
    };
    std::jthread other(work);
    work();
  }
};

int main() {
  const float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  std::int8_t transposed[3][2] = {};
  const tc::StridedView columns{
      tc::DType::float32, {3, 2}, {sizeof(float), 3 * sizeof(float)}, reinterpret_cast<const std::byte*>(matrix)};
  const tc::MutableStridedView rows{tc::DType::int8, {3, 2}, {}, reinterpret_cast<std::byte*>(transposed)};
  if (const tc::Result<void> done = tc::cast_strided(columns, rows); !done) {
    std::fprintf(stderr, "%s\n", done.error().describe().c_str());
    return 1;
  }

  TwoThreads pool;
  const std::vector<double> large(std::size_t{1} << 20, 0.25);
  const tc::Result<std::vector<tc::bfloat16>> narrow = tc::cast<tc::bfloat16>(large, {}, {.executor = &pool});
  if (!narrow) return 1;
  std::printf("%d %d, %zu numbers of %g\n", transposed[0][1], transposed[2][0], narrow->size(),
              static_cast<double>(narrow->back()));
  return 0;
}
