// SPDX-License-Identifier: Apache-2.0
// --validate: a new model beside the old one in ONNX Runtime, by tensorcast's Python package.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tcast {

struct ValidationArguments {
  bool wanted = false;
  std::vector<std::string> inputs;
  std::string dims;
  std::optional<std::uint32_t> seed;
  std::optional<double> rtol, atol, cosine;
};

// Adds --validate and the options that go with it.
void add_validation(CLI::App& command, ValidationArguments& arguments);

class Validator {
 public:
  // Finds a Python that has what it takes: that of the environment variable TCAST_PYTHON, or python3 of PATH. Errors:
  // unsupported: there is none; io: the inputs cannot be read.
  [[nodiscard]] static tensorcast::Result<Validator> find(const ValidationArguments& arguments, bool quiet);

  // Compares both models; `to` decides the tolerances that are not given. Returns a list of how the outputs differ, as
  // ConvertResult.outputs has it in Python. Errors: invalid_argument: the new model is invalid or differs too much;
  // cancelled.
  [[nodiscard]] tensorcast::Result<nlohmann::ordered_json> compare(const std::string& old_model,
                                                                   const std::string& new_model,
                                                                   tensorcast::DType to) const;

 private:
  std::string python_;
  std::vector<std::string> options_;
  bool quiet_ = false;
};

// A line for each output of compare().
[[nodiscard]] std::string validation_text(const nlohmann::ordered_json& outputs);

}  // namespace tcast
