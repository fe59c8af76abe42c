// SPDX-License-Identifier: Apache-2.0
// Finishes and verifies checkpoints with arbitrary bytes as one file of their state: the record of a shard, the list of
// files that get their places, or SHA256SUMS; converts checkpoints of torch.distributed.checkpoint with arbitrary bytes
// as .metadata. The result is a success or an error with a message, and no file outside of the output changes.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz_folder.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/tensor_file.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast {
namespace {

namespace fs = std::filesystem;

template <class T>
bool succeeded(const Result<T>& result) {
  if (!result.ok() && result.error().message.empty()) std::abort();
  return result.ok();
}

void must(bool holds) {
  if (!holds) std::abort();
}

// A checkpoint, a conversion of it whose shards are done, and one that is complete.
class Checkpoints {
 public:
  Checkpoints() {
    fs::create_directory(source());
    const Result<Tensor> tensor = Tensor::own(std::vector<float>{1, 2, 3, 4});
    must(tensor.ok());
    must(write_tensor(source() + "/model.safetensors", *tensor, {.name = "w"}).ok());
    must(write_whole_file(source() + "/config.json", "{\"torch_dtype\": \"float32\"}", {}).ok());
    kept_ = text(source() + "/model.safetensors");
    const ConvertRequest request(source(), done(), DType::float16);
    must(plan_checkpoint(request).ok());
    must(convert_shards({.output = done()}).ok());
    for (const auto& entry : fs::directory_iterator(done() + "/.tcast/shards")) {
      if (entry.path().extension() == ".json") fingerprint_ = entry.path().stem().string();
    }
    must(!fingerprint_.empty());
    must(convert_folder({source(), complete(), DType::float16}).ok());
    fs::copy(TENSORCAST_SOURCE_DIR "/src/checkpoint/testdata/distributed", distributed(), fs::copy_options::recursive);
  }

  // The first byte chooses the file.
  void try_bytes(const std::uint8_t* data, std::size_t size) const {
    if (size == 0) return;
    const std::string output = folder_.file("try");
    fs::remove_all(output);
    switch ((data[0] - '0') & 7) {
      case 0:
        put(complete() + "/SHA256SUMS", data, size);
        (void)succeeded(verify_checkpoint({.checkpoint = complete()}));
        break;
      case 1:
        try_state("/.tcast/shards/" + fingerprint_ + ".json", data, size);
        break;
      case 2:
        try_state("/.tcast/moving.json", data, size);
        break;
      case 3:
        try_distributed(distributed() + "/single", data, size);
        break;
      default:
        try_distributed(distributed() + "/ranks", data, size);
    }
    must(text(source() + "/model.safetensors") == kept_);
  }

 private:
  void try_state(const std::string& name, const std::uint8_t* data, std::size_t size) const {
    const std::string output = folder_.file("try");
    fs::copy(done(), output, fs::copy_options::recursive);
    put(output + name, data, size);
    (void)succeeded(planned_checkpoint(output));
    (void)succeeded(finish_checkpoint(output));
  }

  // What is converted is complete.
  void try_distributed(const std::string& input, const std::uint8_t* data, std::size_t size) const {
    const std::string output = folder_.file("try");
    put(input + "/.metadata", data, size);
    if (succeeded(convert_folder({input, output, DType::float16}))) {
      must(verify_checkpoint({.checkpoint = output}).ok());
    }
  }

  [[nodiscard]] std::string distributed() const { return folder_.file("distributed"); }
  [[nodiscard]] std::string source() const { return folder_.file("source"); }
  [[nodiscard]] std::string done() const { return folder_.file("done"); }
  [[nodiscard]] std::string complete() const { return folder_.file("complete"); }

  static std::string text(const std::string& path) { return read_whole_file(path, 1 << 20).value(); }
  void put(const std::string& path, const std::uint8_t* data, std::size_t size) const {
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    // No input can guess it: it depends on the time of the source.
    const std::string_view word = "FINGERPRINT";
    const std::size_t at = bytes.find(word);
    if (at != std::string::npos) bytes.replace(at, word.size(), fingerprint_);
    must(write_whole_file(path, bytes, {.overwrite = true}).ok());
  }

  fuzzing::Folder folder_;
  std::string kept_;
  std::string fingerprint_;  // of the shard
};

}  // namespace
}  // namespace tensorcast

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tensorcast::Checkpoints checkpoints;
  checkpoints.try_bytes(data, size);
  return 0;
}
