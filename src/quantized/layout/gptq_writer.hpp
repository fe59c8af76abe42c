// SPDX-License-Identifier: Apache-2.0
// What the rows of gptq.cpp write.
#pragma once

#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

void spell_gptq(const LayerContent& content, WrittenLayer& written);
void spell_awq(const LayerContent& content, WrittenLayer& written);
void spell_auto_round(const LayerContent& content, WrittenLayer& written);
void describe_gptq(const WrittenModel& model, WrittenConfig& config);
void describe_awq(const WrittenModel& model, WrittenConfig& config);
void describe_auto_round(const WrittenModel& model, WrittenConfig& config);

}  // namespace tensorcast::quantized
