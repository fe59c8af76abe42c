// SPDX-License-Identifier: Apache-2.0
#include "convert/run/config_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "dtype/errors.hpp"
#include "formats/format_list.hpp"
#include "io/system_calls.hpp"
#include "quantized/layout/quantization_claim.hpp"

namespace tensorcast::file_conversion {

Result<void> check_config_beside(const std::string& path, const formats::Format& format, const Plan& plan,
                                 std::vector<std::string>& warnings) {
  const bool decodes = std::ranges::any_of(plan.tensors, &PlannedTensor::decodes);
  if (&format != &formats::safetensors_format || io::names_descriptor(path)) return {};
  if (!decodes && !plan.respelling.any()) return {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (const std::string claim = claim_beside(path); !claim.empty()) {
    Error error =
        unsupported(fmt::format("in the folder of the output, {}, and the output's weights would be {}", claim,
                                plan.respelling.any() ? plan.respelling.spelling + "'s" : "plain numbers"),
                    "name an output in another folder; or convert the folder, whose configuration then follows");
    error.file = path;
    return error;
  }
  const quantized::WrittenConfig& config = plan.respelling.config;
  std::error_code ignored;
  const std::string beside = (std::filesystem::path(folder) / "config.json").string();
  if (config.section.empty() || !config.metadata_key.empty() || !std::filesystem::is_regular_file(beside, ignored)) {
    return {};
  }
  warnings.push_back(fmt::format(
      "{} stays as it is, and only the output's metadata say that it is quantized: loaders of folders do not read them",
      beside));
  return {};
}

}  // namespace tensorcast::file_conversion
