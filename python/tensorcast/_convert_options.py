"""The options of conversions of files. Printed by print_python_options from src/convert/convert_options.hpp."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypedDict

from ._names import RecipeName, SpellingName
from ._option_list import CastOptions
from ._options import DTypeLike
from ._request_types import Patterns, Preset, Renames, Rules

Activations: TypeAlias = Literal["auto", "none", "dynamic"]
Fuse: TypeAlias = Literal["auto", "never"]
Nonfinite: TypeAlias = Literal["error", "tool"]
Clip: TypeAlias = Literal["none", "mse"]


class FilterOptions(TypedDict, total=False):
    """What of the input is written, and under which names; :class:`ConvertOptions` describes them."""

    only: Patterns
    drop: Patterns
    rename: Renames
    skip_files: Patterns
    accept: Patterns


class MappingOptions(TypedDict, total=False):
    """What becomes of the arrays of a mapping; :class:`ConvertOptions` describes them."""

    rules: Rules
    include: Patterns
    exclude: Patterns
    keep_rank: int | Iterable[int]
    keep_smaller: int
    preset: Preset | None
    raw_codes: bool


class VerifyOptions(FilterOptions, CastOptions, total=False):
    """The options of :func:`tensorcast.checkpoint.verify`; :class:`ConvertOptions` describes them."""


class PlanOptions(FilterOptions, MappingOptions, CastOptions, total=False):
    """The options of :func:`tensorcast.checkpoint.plan`; :class:`ConvertOptions` describes them."""

    max_shard_size: int | str | None
    single_file: bool
    zero_limit: float
    report: bool
    verify: bool
    allow_odd: bool
    budget: float | str | None
    candidates: str | Iterable[str]
    recipe: RecipeName | str | None
    spelling: SpellingName | str | None
    force_layout: bool
    activations: Activations | None
    compute_dtype: DTypeLike | None
    group_size: int
    symmetric: bool
    power_of_two_scales: bool
    fuse: Fuse | None
    nonfinite: Nonfinite | None
    clip: Clip | None
    convrot: int
    importance: str | os.PathLike[str] | None
    strict_schemes: bool
    respell: str | None
    mix: str | None
    exact: bool
    overwrite: bool
    parents: bool


class ConvertOptions(PlanOptions, total=False):
    r"""The options of :func:`tensorcast.convert`, with those of :func:`tensorcast.cast`.

    Examples:
        >>> options: tc.ConvertOptions = {"exclude": "norm", "verify": True}
        >>> done = tc.convert("model.safetensors", "half.safetensors", "float16", **options)
        >>> done.tensors[2].reason, done.verified
        ('excluded', True)

    Args:
        rules: types for tensors whose name matches; the first match wins. ``{regular expression: dtype}``, where
            ``None`` keeps a tensor as it is; a list of :class:`Rule` has conditions, too.
        include: convert only tensors whose name matches; with an output of one array, write that tensor only.
        exclude: leave tensors alone whose name matches.
        only: write only tensors whose name matches.
        drop: leave out tensors whose name matches.
        rename: replace what matches in each name by NEW, in which \1 is the first group; one after another.
            ``{regular expression: replacement}``: ``{r"^module\.": ""}`` strips a prefix. Rules and messages have the
            names of the input.
        skip_files: checkpoints: leave out files and folders that match, such as '*.bin' or original.
        accept: quantized weights: take a key of their description, or the end of the name of a tensor beside their
            codes, as harmless, which is not known.
        keep_rank: leave tensors with so many dimensions as they are, unless a rule names them: 0,1 is scalars, biases
            and norms.
        keep_smaller: leave tensors with fewer elements as they are, unless a rule names them.
        preset: weights-only: the new type is for matrices of layers; embeddings, output head, norms and vectors stay
            as they are.
        max_shard_size: checkpoints: cut the shards anew, so that none has more bytes of tensors: 5GB, 800MB, 2GiB.
        single_file: checkpoints: one file for each model (default: as many as the input has).
        dry_run: only plan: what would become what, and why; of checkpoints also time, memory and disk space needed;
            write nothing.
        zero_limit: with strict loss: the share of a tensor's nonzero elements that may become zero (default 0.01).
        report: measure what the conversion did to each tensor.
        verify: read the output back; compare it with the input, a second conversion and, up to 64 Mi elements, the
            reference.
        allow_odd: convert tensors to float4 or float6 even if their last dimension does not fill whole bytes; PyTorch
            cannot load such files (default: leave them as they are).
        raw_codes: convert the codes of quantized weights as plain numbers, and leave their scales (default: decode
            the weights).
        budget: choose a scheme for each matrix of a layer, so that these bits are the average of the weights that are
            quantized, in each model of a folder, scales included, and the sum of squared errors is small; reads the
            weights twice to measure each candidate.
        candidates: with a budget: the schemes to choose from, such as nvfp4 or mxfp4:even (default
            nvfp4,mxfp4,int4-group,mxfp6,mxfp8,fp8-channel).
        recipe: with a scheme: the tool or mode whose bytes are made, such as modelopt or rceil.
        spelling: with a scheme: whose names, packing and configuration are written: compressed-tensors, modelopt,
            gpt-oss, deepseek, comfyui, quark, transformers-mxfp8, gptq, gptq-v2, awq, auto-round, auto-round-awq or
            gguf.
        force_layout: with a scheme or `respell`: write also weights that no known loader of the spelling loads
            (default: they are left, or an error).
        activations: with a scheme: dynamic has loaders quantize activations, too, while the model runs, as the
            layouts of fp8, int8-channel, mxfp8, mxfp6 and mxfp4 allow (default: as the tool of a recipe that is
            named, else none).
        compute_dtype: with a scheme: round weights to float32, bfloat16 or float16 first (default: their own type; of
            quantized layers bfloat16).
        group_size: int4-group: inputs that share a scale: 32, 64 or 128 (default: 128, but 64 or 32 for a weight
            whose inputs only these divide).
        symmetric: int4-group: no zero points.
        power_of_two_scales: fp8-block: scales are powers of two, as float32 (DeepSeek's ue8m0).
        fuse: one tensor scale for weights that loaders join, such as q, k and v (default: where the spelling's
            loaders want it).
        nonfinite: with a scheme: what becomes of NaN and infinity: an error, or what the recipe's tool makes of them.
        clip: with a scheme: search the scale of each block, from the recipe's down to half, for the smallest sum of
            squared errors (default: the recipe's).
        convrot: int8-channel as comfyui: first rotate groups of so many inputs, such as 256, by a Hadamard matrix,
            which ComfyUI undoes.
        importance: with a scheme or a budget: weigh squared errors by llama.cpp's importance matrix (GGUF), or by
            safetensors of a number for each column of each weight.
        strict_schemes: fail, with a list, if some weights cannot have their scheme, such as 250 inputs in groups of
            16 (default: leave them as they are).
        respell: give quantized layers the names, packing and configuration of another tool: compressed-tensors,
            modelopt, gpt-oss, deepseek, comfyui, quark, transformers-mxfp8, gptq, gptq-v2, awq, auto-round,
            auto-round-awq or gguf; changes no numbers.
        mix: from GGUF to GGUF: the type that llama-quantize chooses for each tensor of q4_k_m, q4_k_s, q5_k_m,
            q5_k_s, q3_k_s, q3_k_m, q3_k_l, q2_k, q6_k, iq4_nl, iq4_xs, q8_0, q4_0, q4_1, q5_0 or q5_1.
        exact: with another spelling: fail if a scale of a whole tensor has no exact reciprocal, which is then rounded
            (default: a warning).
        overwrite: replace an existing output, and the report; in a folder only what tensorcast wrote there.
        parents: create the folders of the output that do not exist.
    """

    dry_run: bool


ConvertOptions.__module__ = "tensorcast"

REQUEST_DEFAULTS: dict[str, Any] = {
    "rules": (),
    "include": (),
    "exclude": (),
    "only": (),
    "drop": (),
    "rename": (),
    "skip_files": (),
    "accept": (),
    "keep_rank": (),
    "keep_smaller": 0,
    "preset": None,
    "max_shard_size": None,
    "single_file": False,
    "dry_run": False,
    "zero_limit": 0.01,
    "report": False,
    "verify": False,
    "allow_odd": False,
    "raw_codes": False,
    "budget": None,
    "candidates": (),
    "recipe": None,
    "spelling": None,
    "force_layout": False,
    "activations": None,
    "compute_dtype": None,
    "group_size": 0,
    "symmetric": True,
    "power_of_two_scales": False,
    "fuse": None,
    "nonfinite": None,
    "clip": None,
    "convrot": 0,
    "importance": None,
    "strict_schemes": False,
    "respell": None,
    "mix": None,
    "exact": False,
    "overwrite": False,
    "parents": False,
}
# How their values are read.
REQUEST_KINDS: dict[str, str] = {
    "rules": "rules",
    "include": "pattern",
    "exclude": "pattern",
    "only": "pattern",
    "drop": "pattern",
    "rename": "renames",
    "skip_files": "glob",
    "accept": "texts",
    "keep_rank": "ranks",
    "keep_smaller": "count",
    "preset": "preset",
    "max_shard_size": "size",
    "single_file": "flag",
    "dry_run": "flag",
    "zero_limit": "share",
    "report": "flag",
    "verify": "flag",
    "allow_odd": "flag",
    "raw_codes": "flag",
    "budget": "bits",
    "candidates": "list",
    "recipe": "text",
    "spelling": "text",
    "force_layout": "flag",
    "activations": "choice",
    "compute_dtype": "type",
    "group_size": "count",
    "symmetric": "flag",
    "power_of_two_scales": "flag",
    "fuse": "choice",
    "nonfinite": "choice",
    "clip": "choice",
    "convrot": "count",
    "importance": "file",
    "strict_schemes": "flag",
    "respell": "text",
    "mix": "text",
    "exact": "flag",
    "overwrite": "flag",
    "parents": "flag",
}
PLAN_OPTIONS = ("rules", "include", "exclude", "only", "drop", "rename", "skip_files", "accept", "keep_rank", "keep_smaller", "preset", "max_shard_size", "single_file", "zero_limit", "report", "verify", "allow_odd", "raw_codes", "budget", "candidates", "recipe", "spelling", "force_layout", "activations", "compute_dtype", "group_size", "symmetric", "power_of_two_scales", "fuse", "nonfinite", "clip", "convrot", "importance", "strict_schemes", "respell", "mix", "exact", "overwrite", "parents")
FILTER_OPTIONS = ("only", "drop", "rename", "skip_files", "accept")
OF_MAPPINGS = ("rules", "include", "exclude", "keep_rank", "keep_smaller", "preset", "raw_codes")
