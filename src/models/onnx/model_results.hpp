// SPDX-License-Identifier: Apache-2.0
// The results of ONNX models, described once for the JSON of tcast and for Python.
#pragma once

#include "convert/result_fields.hpp"
#include "options/field.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::options {

template <>
inline constexpr auto fields<onnx::KeptNode> = std::tuple{
    Field{"name", &onnx::KeptNode::name},
    Field{"op_type", &onnx::KeptNode::op_type},
    Field{"reason", &onnx::KeptNode::reason},
};

template <>
inline constexpr auto fields<onnx::KeptWeight> = std::tuple{
    Field{"name", &onnx::KeptWeight::name},
    Field{"reason", &onnx::KeptWeight::reason},
};

template <>
inline constexpr auto fields<onnx::InitializerChange> = std::tuple{
    Field{"name", &onnx::InitializerChange::name},
    Field{"from", &onnx::InitializerChange::from, Empty::null},
    Field{"to", &onnx::InitializerChange::to, Empty::null},
    Field{"count", &onnx::InitializerChange::count},
    Field{"overflowed", &onnx::InitializerChange::overflowed},
    Field{"underflowed", &onnx::InitializerChange::underflowed},
    Field{"clamped", &onnx::InitializerChange::clamped},
    Field{"scheme", &onnx::InitializerChange::scheme, Empty::left_out},
    Field{"recipe", &onnx::InitializerChange::recipe, Empty::left_out},
    Field{"snr_db", &onnx::InitializerChange::snr_db, Empty::left_out},
};

template <>
inline constexpr auto fields<onnx::ValueDecision> = std::tuple{
    Field{"value", &onnx::ValueDecision::value},
    Field{"is_input", &onnx::ValueDecision::is_input},
    Field{"from", &onnx::ValueDecision::from, Empty::null},
    Field{"to", &onnx::ValueDecision::to, Empty::null},
    Field{"cast", &onnx::ValueDecision::has_cast},
    Field{"reason", &onnx::ValueDecision::reason, Empty::left_out},
};

template <>
inline constexpr auto fields<onnx::NodeDecision> = std::tuple{
    Field{"name", &onnx::NodeDecision::name},
    Field{"op_type", &onnx::NodeDecision::op_type},
    Field{"scope", &onnx::NodeDecision::scope},
    Field{"values", &onnx::NodeDecision::values},
};

template <>
inline constexpr auto fields<onnx::ConvertOutcome> = std::tuple{
    Field{"to", &onnx::ConvertOutcome::to},
    Field{"opset_before", &onnx::ConvertOutcome::opset_before},
    Field{"opset_after", &onnx::ConvertOutcome::opset_after},
    Field{"nodes", &onnx::ConvertOutcome::nodes},
    Field{"calls_inlined", &onnx::ConvertOutcome::calls_inlined},
    Field{"nodes_converted", &onnx::ConvertOutcome::nodes_converted},
    Field{"nodes_by_type", &onnx::ConvertOutcome::nodes_by_type},
    Field{"values_changed", &onnx::ConvertOutcome::values_changed},
    Field{"casts_before", &onnx::ConvertOutcome::casts_before},
    Field{"casts_added", &onnx::ConvertOutcome::casts_added},
    Field{"casts_removed", &onnx::ConvertOutcome::casts_removed},
    Field{"casts_after", &onnx::ConvertOutcome::casts_after},
    Field{"initializers_converted", &onnx::ConvertOutcome::initializers_converted},
    Field{"initializer_bytes_before", &onnx::ConvertOutcome::initializer_bytes_before},
    Field{"initializer_bytes_after", &onnx::ConvertOutcome::initializer_bytes_after},
    Field{"initializers", &onnx::ConvertOutcome::initializers},
    Field{"kept", &onnx::ConvertOutcome::kept},
    Field{"kept_weights", &onnx::ConvertOutcome::kept_weights, Empty::left_out},
    Field{"explained", &onnx::ConvertOutcome::explained, Empty::python_only},
};

template <>
inline constexpr auto fields<onnx::CastInfo> = std::tuple{
    Field{"name", &onnx::CastInfo::name},           Field{"op_type", &onnx::CastInfo::op_type},
    Field{"scope", &onnx::CastInfo::scope},         Field{"input", &onnx::CastInfo::input},
    Field{"output", &onnx::CastInfo::output},       Field{"from", &onnx::CastInfo::from, Empty::null},
    Field{"to", &onnx::CastInfo::to, Empty::null},  Field{"consumers", &onnx::CastInfo::consumers},
    Field{"role", &onnx::CastInfo::role},           Field{"reason", &onnx::CastInfo::reason},
    Field{"removable", &onnx::CastInfo::removable},
};

template <>
inline constexpr auto fields<onnx::RemovedNode> = std::tuple{
    Field{"name", &onnx::RemovedNode::name},
    Field{"op_type", &onnx::RemovedNode::op_type},
    Field{"scope", &onnx::RemovedNode::scope},
    Field{"reason", &onnx::RemovedNode::reason},
};

template <>
inline constexpr auto fields<onnx::OpsetDifference> = std::tuple{
    Field{"domain", &onnx::OpsetDifference::domain},
    Field{"a", &onnx::OpsetDifference::a},
    Field{"b", &onnx::OpsetDifference::b},
};

template <>
inline constexpr auto fields<onnx::OperatorDifference> = std::tuple{
    Field{"op_type", &onnx::OperatorDifference::op_type},
    Field{"a", &onnx::OperatorDifference::a},
    Field{"b", &onnx::OperatorDifference::b},
};

template <>
inline constexpr auto fields<onnx::ValueDifference> = std::tuple{
    Field{"scope", &onnx::ValueDifference::scope},
    Field{"name", &onnx::ValueDifference::name},
    Field{"a", &onnx::ValueDifference::a, Empty::null},
    Field{"b", &onnx::ValueDifference::b, Empty::null},
};

template <>
inline constexpr auto fields<onnx::DiffOutcome> = std::tuple{
    Field{"equal", &onnx::DiffOutcome::equal},
    Field{"ir_version_a", &onnx::DiffOutcome::ir_version_a},
    Field{"ir_version_b", &onnx::DiffOutcome::ir_version_b},
    Field{"opsets", &onnx::DiffOutcome::opsets},
    Field{"operators", &onnx::DiffOutcome::operators},
    Field{"values", &onnx::DiffOutcome::values},
    Field{"casts_only_a", &onnx::DiffOutcome::casts_only_a},
    Field{"casts_only_b", &onnx::DiffOutcome::casts_only_b},
    Field{"initializers", &onnx::DiffOutcome::initializers},
};

}  // namespace tensorcast::options
