// SPDX-License-Identifier: Apache-2.0
// The options of a conversion of files and folders, each described once.
#pragma once

#include <type_traits>

#include "options/option.hpp"
#include "quantized/rewrite/target_options.hpp"
#include "tensorcast/c_files.h"
#include "tensorcast/file.hpp"

namespace tensorcast::options {

// Those before and after the options of quantizing.
inline constexpr std::tuple options_of_tensors{
    option(
        "to", &TensorTargets::to,
        {.in_python = false,
         .help = "type for floating-point tensors that no rule names; or a scheme such as nvfp4, to which matrices of "
                 "layers are quantized",
         .flag = nullptr,
         .metavar = "DTYPE|SCHEME"}),
    option("rules", &TensorTargets::rules,
           {.help = "types for tensors whose name matches; the first match wins",
            .more = "``{regular expression: dtype}``, where ``None`` keeps a tensor as it is; a list of :class:`Rule` "
                    "has conditions, too",
            .flag = nullptr}),
    option("include", &TensorSelection::include,
           {.help = "convert only tensors whose name matches; with an output of one array, write that tensor only",
            .kind = ValueKind::pattern}),
    option("exclude", &TensorSelection::exclude,
           {.help = "leave tensors alone whose name matches", .kind = ValueKind::pattern}),
    option("only", &OutputFilter::only, {.help = "write only tensors whose name matches", .kind = ValueKind::pattern}),
    option("drop", &OutputFilter::drop, {.help = "leave out tensors whose name matches", .kind = ValueKind::pattern}),
    option("rename", &OutputFilter::rename,
           {.help = "replace what matches in each name by NEW, in which \\1 is the first group; one after another",
            .more = "``{regular expression: replacement}``: ``{r\"^module\\.\": \"\"}`` strips a prefix. Rules and "
                    "messages have the names of the input",
            .metavar = "REGEX=NEW"}),
    option("skip_files", &OutputFilter::skip_files,
           {.help = "checkpoints: leave out files and folders that match, such as '*.bin' or original",
            .kind = ValueKind::glob}),
    option(
        "accept", &OutputFilter::accept,
        {.help = "quantized weights: take a key of their description, or the end of the name of a tensor beside their "
                 "codes, as harmless, which is not known",
         .metavar = "WORD"}),
    option("keep_rank", &TensorSelection::keep_rank,
           {.help = "leave tensors with so many dimensions as they are, unless a rule names them: 0,1 is scalars, "
                    "biases and norms",
            .metavar = "N,..."}),
    option("keep_smaller", &TensorSelection::keep_smaller,
           {.help = "leave tensors with fewer elements as they are, unless a rule names them"}),
    option("preset", &TensorSelection::preset,
           {.words = {"none", "weights_only"},
            .help = "weights-only: the new type is for matrices of layers; embeddings, output head, norms and vectors "
                    "stay as they are"}),
    option("max_shard_size", &ConversionPlaces::max_shard_bytes,
           {.help = "checkpoints: cut the shards anew, so that none has more bytes of tensors: 5GB, 800MB, 2GiB",
            .kind = ValueKind::size}),
    option("single_file", &ConversionPlaces::single_file,
           {.words = {"shards", "single"},
            .help = "checkpoints: one file for each model (default: as many as the input has)",
            .flag = "output-layout"}),
    option(
        "dry_run", &ConversionPlaces::dry_run,
        {.of_one_run = true,
         .c_flag = TC_CONVERT_DRY_RUN,
         .help = "only plan: what would become what, and why; of checkpoints also time, memory and disk space needed; "
                 "write nothing"}),
    option("on_loss", &ConversionSettings::on_loss,
           {.words = {"ignore", "tell", "fail"}, .in_python = false, .flag = nullptr}),
    option("zero_limit", &ConversionSettings::zero_limit,
           {.low = 0,
            .high = 1,
            .help = "with strict loss: the share of a tensor's nonzero elements that may become zero (default {})",
            .kind = ValueKind::share}),
    option("refuse_wrap", &ConversionSettings::refuse_wrap,
           {.in_python = false, .c_flag = TC_CONVERT_REFUSE_WRAP, .flag = nullptr}),
    option("refuse_zeroed", &ConversionSettings::refuse_zeroed, {.in_python = false, .flag = nullptr}),
    option("report", &ConversionSettings::report,
           {.c_flag = TC_CONVERT_REPORT, .help = "measure what the conversion did to each tensor", .flag = nullptr}),
    option("report_casts_only", &ConversionSettings::report_casts_only, {.in_python = false, .flag = nullptr}),
    option(
        "verify", &ConversionSettings::verify,
        {.c_flag = TC_CONVERT_VERIFY,
         .help = "read the output back; compare it with the input, a second conversion and, up to 64 Mi elements, the "
                 "reference"}),
    option(
        "allow_odd", &TensorTargets::allow_odd,
        {.of_files = true,
         .c_flag = TC_CONVERT_ALLOW_ODD,
         .help = "convert tensors to float4 or float6 even if their last dimension does not fill whole bytes; PyTorch "
                 "cannot load such files (default: leave them as they are)"}),
    option("raw_codes", &TensorTargets::raw_codes,
           {.c_flag = TC_CONVERT_RAW_CODES,
            .help = "convert the codes of quantized weights as plain numbers, and leave their scales (default: decode "
                    "the weights)"})};
namespace help {
inline constexpr std::string_view respell =
    "give quantized layers the names, packing and configuration of another tool: ";
inline constexpr std::string_view respell_end = "; changes no numbers";
}  // namespace help
inline constexpr std::tuple options_of_outputs{
    option("respell", &ConvertRequest::respell,
           {.of_files = true,
            .help = joined_text<help::respell, written_spelling_names, help::respell_end>.data(),
            .metavar = "SPELLING"}),
    option(
        "mix", &ConvertRequest::mix,
        {.of_files = true,
         .help = "from GGUF to GGUF: the type that llama-quantize chooses for each tensor of q4_k_m, q4_k_s, q5_k_m, "
                 "q5_k_s, q3_k_s, q3_k_m, q3_k_l, q2_k, q6_k, iq4_nl, iq4_xs, q8_0, q4_0, q4_1, q5_0 or q5_1",
         .metavar = "NAME"}),
    option("exact", &ConvertRequest::exact,
           {.help = "with another spelling: fail if a scale of a whole tensor has no exact reciprocal, which is then "
                    "rounded (default: a warning)"}),
    option("overwrite", &ConversionPlaces::overwrite,
           {.c_flag = TC_CONVERT_OVERWRITE,
            .help = "replace an existing output, and the report; in a folder only what tensorcast wrote there",
            .flag = "f,--force"}),
    option("parents", &ConversionPlaces::parents,
           {.c_flag = TC_CONVERT_PARENTS, .help = "create the folders of the output that do not exist"}),
};

// In the order in which interfaces list them. The structs have the defaults. Where an option belongs follows from its
// struct: files of rules have those of TensorSelection, OutputFilter and TensorTargets, a plan.json those of
// ConversionSettings.
inline constexpr auto request_options = std::tuple_cat(options_of_tensors, quantize_targets, options_of_outputs);

template <class Option>
inline constexpr bool is_filter = std::is_same_v<typename Option::Owner, OutputFilter>;
// Files of rules have it.
template <class Option>
inline constexpr bool is_choice_of_tensors =
    is_filter<Option> || std::is_same_v<typename Option::Owner, TensorSelection> ||
    std::is_same_v<typename Option::Owner, TensorTargets> || std::is_same_v<typename Option::Owner, QuantizeTargets>;
template <class Option>
inline constexpr bool is_setting = std::is_same_v<typename Option::Owner, ConversionSettings>;

// The value of an option of `request_options`.
template <class Option>
typename Option::Type& value_of(ConvertRequest& request, const Option& option) {
  if constexpr (is_filter<Option>) {
    return request.filter.*option.member;
  } else {
    return request.*option.member;
  }
}

}  // namespace tensorcast::options
