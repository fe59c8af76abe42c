// SPDX-License-Identifier: Apache-2.0
// The results of conversions of files and folders, described once for the JSON of tcast and for Python.
#pragma once

#include "options/field.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::options {

template <>
inline constexpr auto fields<TensorOutcome> = std::tuple{
    Field{"name", &TensorOutcome::name},
    Field{"from", &TensorOutcome::from},
    Field{"to", &TensorOutcome::to},
    Field{"shape", &TensorOutcome::shape},
    Field{"bytes_in", &TensorOutcome::bytes_in},
    Field{"bytes_out", &TensorOutcome::bytes_out},
    Field{"reason", &TensorOutcome::reason},
    Field{"output_name", &TensorOutcome::output_name, Empty::left_out},
    Field{"left", &TensorOutcome::left, Empty::left_out},
    Field{"scheme", &TensorOutcome::scheme, Empty::left_out},
    Field{"becomes", &TensorOutcome::becomes, Empty::left_out},
    Field{"recipe", &TensorOutcome::recipe, Empty::left_out},
    Field{"search", &TensorOutcome::search, Empty::left_out},
    Field{"elements", &TensorOutcome::elements, Empty::left_out},
    Field{"bits", &TensorOutcome::bits, Empty::left_out},
    Field{"choice", &TensorOutcome::choice, Empty::left_out},
    Field{"passes", &TensorOutcome::passes, Empty::left_out},
    Field{"scale", &TensorOutcome::scale, Empty::left_out},
    Field{"damage", &TensorOutcome::damage, Empty::left_out},
    Field{"remedy", &TensorOutcome::remedy, Empty::python_only},
    Field{"report", &TensorOutcome::report, Empty::left_out},
    Field{"file", &TensorOutcome::file, Empty::python_only},
};

template <>
inline constexpr auto fields<ShardOutcome> = std::tuple{
    Field{"file", &ShardOutcome::file},
    Field{"bytes_in", &ShardOutcome::bytes_in},
    Field{"bytes_out", &ShardOutcome::bytes_out},
    Field{"tensors", &ShardOutcome::tensors},
    Field{"sha256", &ShardOutcome::sha256, Empty::left_out},
    Field{"done_before", &ShardOutcome::done_before},
};

template <>
inline constexpr auto fields<LeftOut> = std::tuple{Field{"name", &LeftOut::name}, Field{"bytes", &LeftOut::bytes}};

template <>
inline constexpr auto fields<Requirements> = std::tuple{
    Field{"seconds", &Requirements::seconds},
    Field{"memory_bytes", &Requirements::memory_bytes},
    Field{"disk_bytes", &Requirements::disk_bytes},
    Field{"disk_free_bytes", &Requirements::disk_free_bytes},
};

template <>
inline constexpr auto fields<ConvertOutcome> = std::tuple{
    Field{"input_format", &ConvertOutcome::input_format},
    Field{"output_format", &ConvertOutcome::output_format},
    Field{"tensors", &ConvertOutcome::tensors},
    Field{"bytes_read", &ConvertOutcome::bytes_read},
    Field{"bytes_written", &ConvertOutcome::bytes_written},
    Field{"verified", &ConvertOutcome::verified},
    Field{"other_data", &ConvertOutcome::other_data},
    Field{"warnings", &ConvertOutcome::warnings},
    Field{"shards", &ConvertOutcome::shards},
    Field{"copied_files", &ConvertOutcome::copied_files},
    Field{"rewritten_files", &ConvertOutcome::rewritten_files},
    Field{"requirements", &ConvertOutcome::requirements},
    Field{"resumed", &ConvertOutcome::resumed},
};

template <>
inline constexpr auto fields<TensorSummary> = std::tuple{
    Field{"name", &TensorSummary::name},
    Field{"dtype", &TensorSummary::dtype},
    Field{"shape", &TensorSummary::shape},
    Field{"bytes", &TensorSummary::bytes},
    Field{"foreign_dtype", &TensorSummary::foreign_dtype},
    Field{"problem", &TensorSummary::problem},
};

// Its blocks are added as a pair.
template <>
inline constexpr auto fields<QuantizedLayer> = std::tuple{
    Field{"name", &QuantizedLayer::name},
    Field{"spelling", &QuantizedLayer::spelling},
    Field{"scheme", &QuantizedLayer::scheme},
    Field{"shape", &QuantizedLayer::shape},
    Field{"tensors", &QuantizedLayer::tensors},
    Field{"problem", &QuantizedLayer::problem},
    Field{"problem_tensor", &QuantizedLayer::problem_tensor},
};

template <>
inline constexpr auto fields<VerifyOutcome> = std::tuple{
    Field{"files", &VerifyOutcome::files},           Field{"tensors", &VerifyOutcome::tensors},
    Field{"bytes_read", &VerifyOutcome::bytes_read}, Field{"warnings", &VerifyOutcome::warnings},
    Field{"recipes", &VerifyOutcome::recipes},
};

template <>
inline constexpr auto fields<TensorDifference> = std::tuple{
    Field{"name", &TensorDifference::name},
    Field{"from", &TensorDifference::from, Empty::null},
    Field{"to", &TensorDifference::to, Empty::null},
    Field{"from_shape", &TensorDifference::from_shape},
    Field{"to_shape", &TensorDifference::to_shape},
    Field{"in_a", &TensorDifference::in_a},
    Field{"in_b", &TensorDifference::in_b},
    Field{"equal", &TensorDifference::equal},
    Field{"compared", &TensorDifference::compared},
    Field{"decoded", &TensorDifference::decoded},
    Field{"undecodable", &TensorDifference::undecodable},
    Field{"count", &TensorDifference::count},
    Field{"different", &TensorDifference::different},
    Field{"infinities_made", &TensorDifference::infinities_made},
    Field{"infinities_lost", &TensorDifference::infinities_lost},
    Field{"nan_made", &TensorDifference::nan_made},
    Field{"nan_lost", &TensorDifference::nan_lost},
    Field{"max_abs_error", &TensorDifference::max_abs_error},
    Field{"max_rel_error", &TensorDifference::max_rel_error},
    Field{"snr_db", &TensorDifference::snr_db},
};

}  // namespace tensorcast::options
