# SPDX-License-Identifier: Apache-2.0
"""The names of types, schemes, recipes and spellings, which editors complete. Tests compare them with the library's own lists."""

from __future__ import annotations

from typing import Literal, TypeAlias

DTypeName: TypeAlias = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e5m3fnu",
    "binary8p4se", "binary8p3se", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int64", "int32", "int16",
    "int8", "int4", "int2", "uint64", "uint32", "uint16", "uint8", "uint4", "uint2", "bool", "string",
]
"""Types, as tensorcast.dtypes() lists them; functions also take other spellings."""

SchemeName: TypeAlias = Literal[
    "fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e3m2", "mxfp4", "nvfp4",
    "int8-channel", "int4-group", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k",
    "q5_k", "q6_k", "iq4_nl", "iq4_xs",
]
"""Schemes of tensorcast.quantize()."""

BlockSchemeName: TypeAlias = Literal[
    "fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e3m2", "mxfp4", "nvfp4",
    "int8-tensor", "int8-channel", "int4-group", "gptq-2", "gptq-3", "gptq-4", "gptq-8", "awq", "nf4", "fp4",
    "affine-2", "affine-3", "affine-4", "affine-5", "affine-6", "affine-8", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0",
    "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs",
    "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "tq1_0", "tq2_0",
]
"""Schemes of tensorcast.dequantize()."""

RecipeName: TypeAlias = Literal[
    "torchao", "compressed-tensors", "modelopt", "comfy", "deepseek", "deepseek-v3.2", "deepgemm", "transformers",
    "rceil", "rceil-torchao", "floor", "ceil", "even", "quark", "te", "mlx", "ggml", "torchao-one-level",
]
"""Recipes of tensorcast.quantize(), of any scheme; tensorcast.recipes() says which scheme has which."""

SpellingName: TypeAlias = Literal[
    "compressed-tensors", "deepseek", "transformers-mxfp8", "comfyui", "ocp", "gpt-oss", "modelopt", "bitsandbytes",
    "gptq", "gptq-v2", "awq", "mlx", "gguf",
]
"""Spellings of tensorcast.dequantize()."""
