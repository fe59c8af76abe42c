// SPDX-License-Identifier: Apache-2.0
// The options of a model's conversion, each described once: for `tcast onnx convert` and for tensorcast.onnx.convert().
#pragma once

#include "options/option.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::options {

// In the order in which interfaces list them. onnx::ConvertRequest has the defaults.
inline constexpr std::tuple model_options{
    option("from_", &onnx::ConvertRequest::from,
           {.help = "only values of these types become the new one (default: all floating-point types)",
            .flag = "from",
            .metavar = "DTYPE,...|all"}),
    // Also sets keep_io_types or keep_io_names.
    option(
        "keep_io_types", &onnx::ConvertRequest::io_types,
        {.help = "all inputs and outputs of the model keep their types, or only those in NAMES; x=float32 gives one a "
                 "type",
         .more = "A mapping gives types in Python: ``{\"x\": \"float32\", \"y\": None}``; ``None`` keeps one",
         .metavar = "[NAMES]"}),
    option("keep_ops", &onnx::ConvertRequest::keep_op_types,
           {.help = "nodes of this operator stay as they are", .flag = "keep-op", .metavar = "TYPE"}),
    option("keep_nodes", &onnx::ConvertRequest::keep_nodes,
           {.help = "the node of this name stays as it is", .flag = "keep-node", .metavar = "NAME"}),
    option("keep", &onnx::ConvertRequest::keep,
           {.help = "nodes that stay as they are, such as glob:/head/*",
            .more = "Selectors are ``op:TYPE``, ``name:NAME``, ``glob:PATTERN``, ``re:REGEX``, ``domain:DOMAIN``, "
                    "``graph:PATTERN``, ``tensor:NAME``, ``consumer-of:TENSOR`` and ``producer-of:TENSOR``; one that "
                    "selects nothing is an error",
            .metavar = "SELECTOR"}),
    option("only", &onnx::ConvertRequest::only, {.help = "the only nodes that change", .metavar = "SELECTOR"}),
    option("op_types", &onnx::ConvertRequest::operator_types,
           {.help = "types of an operator without a schema: own::Op:in=float16,out=float16", .metavar = "TYPES"}),
    // Also sets weights_only.
    option(
        "weights_only", &onnx::ConvertRequest::weights_scheme,
        {.help = "only initializers change, and a Cast gives back the old type; with SCHEME (nvfp4, mxfp4, "
                 "int4-group, int8, float8, or one and a recipe: mxfp4:even) a DequantizeLinear with scales",
         .more =
             "``to`` may be a float8 type, too, with opset 19 or later; a scheme needs no ``to``, and takes matrices "
             "alone unless ``only`` selects other operators",
         .metavar = "[SCHEME]"}),
    option("group_size", &onnx::ConvertRequest::group_size,
           {.help = "int4-group: inputs that share a scale: 32, 64 or 128 (default)", .metavar = "INPUTS"}),
    option("symmetric", &onnx::ConvertRequest::symmetric, {.help = "int4-group: no zero points (default {})"}),
    option(
        "allow_loss", &onnx::ConvertRequest::allow_loss,
        {.help = "with a scheme: convert also weights that are destroyed, as more than half of their nonzero numbers "
                 "become zero (default: an error)"}),
    option("opset", &onnx::ConvertRequest::opset,
           {.words = {"keep", "auto"},  // 0 and -1
            .help = "keep, auto (raise it if the type needs it) or a number (default {})",
            .more = "In Python, where nodes would change their meaning, ``onnx.version_converter`` rewrites them",
            .metavar = "OPSET"}),
    option("runtime", &onnx::ConvertRequest::runtime,
           {.words = {"onnxruntime_cpu", "onnxruntime_cuda", "tensorrt", "openvino", "any"},
            .help = "where the model must run: a node that it has no kernel for keeps its type (default {}; any: by "
                    "ONNX's schemas alone)"}),
    option("on_overflow", &onnx::ConvertRequest::on_overflow,
           {.words = {"keep_high", "clamp", "inf", "error"},
            .help = "initializers out of the range (default {}: they and their nodes keep the type)"}),
    option(
        "masks", &onnx::ConvertRequest::masks,
        {.words = {"finite", "inf", "as_others"},
         .help = "constants such as -1e9 and -3.4e38 (default {}: the lowest number; as_others: as on_overflow says)"}),
    option("clamp", &onnx::ConvertRequest::clamp,
           {.words = {"none", "finite", "onnxconverter_common", "onnxruntime"},
            .help = "limit numbers of initializers (finite: to the type's range; the others: as these tools do)"}),
    option("min_positive", &onnx::ConvertRequest::min_positive,
           {.low = 0, .help = "smaller numbers other than 0 become it (default: no limit)", .metavar = "NUMBER"}),
    option("max_finite", &onnx::ConvertRequest::max_finite,
           {.low = 0, .help = "larger finite numbers become it (default: no limit)", .metavar = "NUMBER"}),
    option("shared_init", &onnx::ConvertRequest::shared_initializers,
           {.words = {"dup", "cast"},
            .help = "initializers that both types need (default {}: stored twice; cast: once, and a Cast)"}),
    option(
        "functions", &onnx::ConvertRequest::functions,
        {.words = {"copy", "inline"},
         .help = "functions of the model (default {}: one for each set of types that calls have; inline: their nodes "
                 "replace each call)"}),
    option("external_data", &onnx::ConvertRequest::external_data,
           {.words = {"as_is", "one", "per_tensor", "inline"},
            .help = "where initializers go: one file OUT.data, a file each, the model (default {}: a new file for each "
                    "old one)"}),
    option("external_threshold", &onnx::ConvertRequest::external_threshold,
           {.help = "bytes from which on initializers go outside (default {})", .metavar = "BYTES"}),
    option("external_alignment", &onnx::ConvertRequest::external_alignment,
           {.help = "of tensors outside that are not smaller, a power of two; 1 packs them (default {})",
            .metavar = "BYTES"}),
    option("allow_lossy_cast_elision", &onnx::ConvertRequest::allow_lossy_cast_elision,
           {.help = "also remove Casts to a narrower type and back whose types change, which changes values"}),
    option("explain", &onnx::ConvertRequest::explain,
           {.of_one_run = true, .help = "say what becomes of this node and why", .metavar = "NODE"}),
    option("dry_run", &onnx::ConvertRequest::dry_run,
           {.of_one_run = true, .help = "report what would happen, and write nothing"}),
};

// A type for each input or output that has one.
template <class Option>
inline constexpr bool is_io_types = std::is_same_v<typename Option::Type, decltype(onnx::ConvertRequest::io_types)>;

// Whether only weights change, and to which scheme.
template <class Option>
inline constexpr bool is_weights_scheme =
    std::is_same_v<typename Option::Owner, onnx::ConvertRequest> && std::is_same_v<typename Option::Type, std::string>;

}  // namespace tensorcast::options
