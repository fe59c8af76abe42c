// SPDX-License-Identifier: Apache-2.0
// Finishes and verifies checkpoints with arbitrary bytes as one file of their state: the record of a shard, the list of
// files that get their places, or SHA256SUMS; converts checkpoints of torch.distributed.checkpoint with arbitrary bytes
// as .metadata. The result is a success or an error with a message, and no file outside of the output changes.
// Outputs are in a store in memory, so that no input waits for a disk; what PyTorch wrote is in a folder, as it is not
// read behind URLs.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz_folder.hpp"
#include "io/memory_store.hpp"
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

constexpr std::string_view source = "mem://b/source", done = "mem://b/done", complete = "mem://b/complete",
                           output = "mem://b/try";

// A checkpoint, a conversion of it whose shards are done, and one that is complete.
class Checkpoints {
 public:
  Checkpoints() {
    set_remote_store(store_);
    const Result<Tensor> tensor = Tensor::own(std::vector<float>{1, 2, 3, 4});
    must(tensor.ok());
    must(write_tensor(folder_.file("model.safetensors"), *tensor, {.name = "w"}).ok());
    put(std::string(source) + "/model.safetensors", text(folder_.file("model.safetensors")));
    put(std::string(source) + "/config.json", "{\"torch_dtype\": \"float32\"}");
    must(plan_checkpoint(request(done)).ok());
    must(convert_shards({.output = std::string(done)}).ok());
    const std::string shards = std::string(done) + "/.tcast/shards/";
    for (const auto& [name, content] : store_->files) {
      if (!name.starts_with(shards) || !name.ends_with(".json")) continue;
      fingerprint_ = name.substr(shards.size(), name.size() - shards.size() - std::string_view(".json").size());
    }
    must(!fingerprint_.empty());
    must(convert_folder(request(complete)).ok());
    fs::copy(TENSORCAST_SOURCE_DIR "/src/checkpoint/testdata/distributed", folder_.file("distributed"),
             fs::copy_options::recursive);
    kept_ = store_->files;
  }
  ~Checkpoints() { set_remote_store(nullptr); }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // The first byte chooses the file.
  void try_bytes(const std::uint8_t* data, std::size_t size) const {
    if (size == 0) return;
    const std::string bytes = bytes_of(data, size);
    std::string changed;  // beside what is written to the output
    switch ((data[0] - '0') & 7) {
      case 0:
        changed = std::string(complete) + "/SHA256SUMS";
        put(changed, bytes);
        (void)succeeded(verify_checkpoint({.checkpoint = std::string(complete)}));
        break;
      case 1:
        try_state("/.tcast/shards/" + fingerprint_ + ".json", bytes);
        break;
      case 2:
        try_state("/.tcast/moving.json", bytes);
        break;
      case 3:
        try_distributed("distributed/single", bytes);
        break;
      default:
        try_distributed("distributed/ranks", bytes);
    }
    put_back(changed);
  }

 private:
  static ConvertRequest request(std::string_view to) { return {std::string(source), std::string(to), DType::float16}; }
  static std::string text(const std::string& path) { return read_whole_file(path, 1 << 20).value(); }
  void put(const std::string& url, std::string content) const { store_->files[url] = std::move(content); }

  [[nodiscard]] std::string bytes_of(const std::uint8_t* data, std::size_t size) const {
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    // No input can guess it: it is a hash.
    const std::string_view word = "FINGERPRINT";
    const std::size_t at = bytes.find(word);
    if (at != std::string::npos) bytes.replace(at, word.size(), fingerprint_);
    return bytes;
  }

  void try_state(const std::string& name, const std::string& bytes) const {
    for (const auto& [url, content] : kept_) {
      if (url.starts_with(std::string(done) + "/")) put(std::string(output) + url.substr(done.size()), content);
    }
    put(std::string(output) + name, bytes);
    (void)succeeded(planned_checkpoint(std::string(output)));
    (void)succeeded(finish_checkpoint(std::string(output)));
  }

  // What is converted is complete.
  void try_distributed(const std::string& input, const std::string& bytes) const {
    folder_.put(input + "/.metadata", bytes.data(), bytes.size());
    ConvertRequest request{folder_.file(input), std::string(output), DType::float16};
    request.execution.threads = 1;  // starting threads would take longer than the work
    if (succeeded(convert_folder(request))) {
      must(verify_checkpoint({.checkpoint = std::string(output)}).ok());
    }
  }

  // Checks that nothing but the output and `changed` is other than it was, and makes it so.
  void put_back(const std::string& changed) const {
    std::erase_if(store_->files, [](const auto& file) { return file.first.starts_with(std::string(output) + "/"); });
    if (!changed.empty()) put(changed, kept_.at(changed));
    must(store_->files == kept_);
  }

  fuzzing::Folder folder_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::map<std::string, std::string> kept_;
  std::string fingerprint_;  // of the shard
};

}  // namespace
}  // namespace tensorcast

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tensorcast::Checkpoints checkpoints;
  checkpoints.try_bytes(data, size);
  return 0;
}
