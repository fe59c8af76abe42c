// A reader whose quantized layers are also there in another spelling.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "convert/quantized/layer_packer.hpp"
#include "convert/quantized/respelling.hpp"

namespace tensorcast::quantized {

// After the tensors of `inner` come written ones, in the order of add().
class RespelledReader final : public formats::Reader {
 public:
  // `inner` outlives it.
  explicit RespelledReader(formats::Reader& inner) : inner_(inner), tensors_(inner.tensors()) {}
  // Adds a written tensor of a layer; returns its index. Parts of `source` are tensors of `inner`.
  std::size_t add(const Layer& source, std::shared_ptr<const RespelledLayer> layer, std::size_t tensor);

  [[nodiscard]] const std::vector<formats::TensorInfo>& tensors() const override { return tensors_; }
  [[nodiscard]] const formats::Metadata& metadata() const override { return inner_.metadata(); }
  [[nodiscard]] bool compressed() const override { return inner_.compressed(); }
  [[nodiscard]] std::string_view native_metadata() const override { return inner_.native_metadata(); }
  [[nodiscard]] std::string_view other_data() const override { return inner_.other_data(); }
  [[nodiscard]] const std::vector<std::string>& warnings() const override { return inner_.warnings(); }
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first,
                                                  std::size_t block_bytes) override {
    return inner_.read_strings(index, first, block_bytes);
  }

 private:
  struct Entry {
    Layer source;
    std::shared_ptr<const RespelledLayer> layer;
    std::size_t tensor = 0;
  };

  formats::Reader& inner_;
  std::vector<formats::TensorInfo> tensors_;
  std::vector<Entry> entries_;
  std::size_t open_ = SIZE_MAX;  // the entry of packer_
  std::unique_ptr<LayerCodes> codes_;
  std::unique_ptr<LayerPacker> packer_;
};

}  // namespace tensorcast::quantized
