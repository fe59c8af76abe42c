// SPDX-License-Identifier: Apache-2.0
// New names beside those of a model.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace tensorcast::models::onnx {

// Linear in the number of names, however many of them are wanted again and again.
class FreshNames {
 public:
  explicit FreshNames(std::set<std::string, std::less<>> taken = {}) : taken_(std::move(taken)) {}

  void add(std::string taken) { taken_.insert(std::move(taken)); }
  // Returns `wanted`, or with _2, _3, ... the first that is free; no later call returns it.
  [[nodiscard]] std::string take(const std::string& wanted) {
    if (taken_.insert(wanted).second) return wanted;
    for (int& number = numbers_.try_emplace(wanted, 2).first->second;;) {
      std::string candidate = fmt::format("{}_{}", wanted, number++);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

 private:
  std::set<std::string, std::less<>> taken_;
  std::unordered_map<std::string, int> numbers_;  // of the next candidate
};

}  // namespace tensorcast::models::onnx
