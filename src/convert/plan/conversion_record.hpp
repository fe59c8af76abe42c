// SPDX-License-Identifier: Apache-2.0
// The records in an output's metadata of how its weights were quantized, with which options its numbers were cast, and
// what they were multiplied by.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "formats/format.hpp"

namespace tensorcast::file_conversion {

inline constexpr std::string_view conversion_key = "tensorcast.conversion";
inline constexpr std::string_view scale_key = "tensorcast.scale";

// What the tensors of one conversion's output were multiplied by.
class RecordedScales {
 public:
  // Adds what the record of a file of the output says, but for what it has of its source: `sources` are all files that
  // it may have been made from. `names`: the file's tensors.
  void add(const formats::Metadata& output, std::span<const formats::Metadata* const> sources,
           std::span<const formats::TensorInfo> names);
  // Returns 1 if nothing is recorded for a tensor.
  [[nodiscard]] double of(const std::string& name) const;

 private:
  std::unordered_map<std::string, double> scales_;
};

// Collects what the record of one output file says:
// {"version": "1.0.0", "recipes": ["nvfp4:modelopt"], "layouts": ["modelopt"], "options": {"scheme": "nvfp4"}}.
class ConversionRecorder {
 public:
  // `request` outlives this.
  explicit ConversionRecorder(const ConvertRequest& request) : request_(request) {}

  void add(const PlannedTensor& tensor);
  // Adds the record of scales, such as [{"scale": 255}], with the names of the tensors if others were copied: behind
  // the entries of conversions before this one; without a scale, nothing changes. Replaces the input's record if the
  // file's tensors were made anew: by the new record, or by none if casts had their default options and nothing was
  // quantized. The record of an input whose tensors are copied stays. `program`: the version of tensorcast that it
  // names; empty: this one's.
  void write(formats::Metadata& metadata, const formats::Format& output, const std::string& program = {}) const;

 private:
  void write_scales(formats::Metadata& metadata) const;

  const ConvertRequest& request_;
  bool casts_ = false;
  std::set<std::string> recipes_, layouts_;
  std::size_t count_ = 0;                                            // of tensors
  std::vector<std::pair<double, std::vector<std::string>>> scaled_;  // by scale, in the order of the tensors
};

// What a record says.
struct ConversionRecord {
  std::vector<std::string> recipes = {};  // "nvfp4:modelopt"
  std::vector<std::string> layouts = {};  // "modelopt"
  ConvertRequest request = {};            // with the options of casts and of quantizing alone
  bool weighs = false;                    // by a file of importance
};

// Adds the record of one file to that of others, which one conversion wrote with the same options. A record with
// options that this version does not know is as none.
void add_record(const formats::Metadata& metadata, std::optional<ConversionRecord>& record);

}  // namespace tensorcast::file_conversion
