// SPDX-License-Identifier: Apache-2.0
// Writes the codes of numbers whose scales are known.
#pragma once

#include <memory>

#include "block/encode/quantizer_work.hpp"
#include "block/encode/scale_maker.hpp"
#include "block/encode/weight_layout.hpp"
#include "block/recipe/run_encoder.hpp"

namespace tensorcast::block {

class CodeMaker {
 public:
  // `layout` outlives this. Builds lookup tables if the weight is large enough to pay for them.
  CodeMaker(const WeightLayout& layout, const ScaleMaker& scales);

  // Of blocks whose scales ScaleMaker::put() has left in `work`.
  void put(const Stretch& stretch, QuantizerWork& work) const;
  // Of numbers that all have this operand.
  void put(const Stretch& stretch, const Operand& operand, QuantizerWork& work) const {
    put_codes(stretch, &operand, work);
  }

 private:
  const kernels::MantissaTable* tables_of(const Stretch& stretch, const Operand* operands, QuantizerWork& work) const;
  void put_codes(const Stretch& stretch, const Operand* operands, QuantizerWork& work) const;
  void put_nan_codes(const Stretch& stretch, QuantizerWork& work) const;

  const WeightLayout* layout_;
  RunEncoder encoder_;
  std::shared_ptr<const kernels::StepTables> steps_;  // of blocks whose scales are ordinary
  std::shared_ptr<const MantissaTables> tables_;      // of other scales
};

}  // namespace tensorcast::block
