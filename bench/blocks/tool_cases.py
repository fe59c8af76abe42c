# SPDX-License-Identifier: Apache-2.0
"""What tools.py measures: each tool's own functions, and the same work by tensorcast."""

import ctypes
import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tensorcast as tc

E4M3 = torch.float8_e4m3fn


@dataclasses.dataclass
class Work:
    """The results of both are compared part by part."""

    what: str
    name: str
    sources: list
    tool: Callable[[], Any]
    ours: Callable[[], Any]
    parts_of_tool: Callable[[Any], list]
    parts_of_ours: Callable[[Any], list]
    note: str = ""


def as_they_are(parts):
    return list(parts) if isinstance(parts, (tuple, list)) else [parts]


def codes_and_scales(q):
    return [q.codes, q.scales]


def quantizing(
    scheme, name, weight, tool, parts_of_tool=as_they_are, parts_of_ours=codes_and_scales, note="", **options
):
    what = f"{scheme} of {str(weight.dtype).removeprefix('torch.')}"
    return Work(
        what, name, [weight], tool, lambda: tc.quantize(weight, scheme, **options), parts_of_tool, parts_of_ours, note
    )


def wide(part):
    """Scales that a tool keeps in bfloat16, as they are spelled in Python."""
    return part.float() if part.dtype == torch.bfloat16 else part


def spelled(spelling, *names):
    def parts(q):
        made = q.spelled(spelling)
        return [made[name] for name in names]

    return parts


def decoding(scheme, name, tool, ours, *sources, note=""):
    return Work(f"{scheme} decoded", name, list(sources), tool, ours, as_they_are, as_they_are, note)


# --- torchao


def torchao(weights):
    from torchao.prototype.mx_formats import mx_tensor, nvfp4_tensor
    from torchao.quantization import Float8Tensor, PerBlock, PerRow, PerTensor

    title = "torchao"
    for weight in weights:
        for scheme, by in (("tensor", PerTensor()), ("channel", PerRow()), ("block", PerBlock((128, 128)))):
            yield quantizing(f"fp8-{scheme}", title, weight, lambda w=weight, by=by: Float8Tensor.from_hp(w, E4M3, by),
                             lambda made: [made.qdata, made.scale.float()], recipe="torchao")  # fmt: skip
        mode = mx_tensor.ScaleCalculationMode.RCEIL
        for scheme, element in (("mxfp8", E4M3), ("mxfp4", torch.float4_e2m1fn_x2)):
            yield quantizing(scheme, title, weight, lambda w=weight, e=element: mx_tensor.to_mx(w, e, 32, mode),
                             lambda made: [made[1], made[0]], recipe="rceil-torchao")  # fmt: skip
        yield quantizing("nvfp4", title, weight, lambda w=weight: nvfp4_tensor.nvfp4_quantize(
            w, 16, nvfp4_tensor.per_tensor_amax_to_scale(w.abs().max())), lambda made: [made[1], made[0]],
            recipe="torchao")  # fmt: skip


# --- compressed-tensors

CT = {
    "fp8-tensor": ("float-quantized", dict(num_bits=8, type="float", strategy="tensor")),
    "fp8-channel": ("float-quantized", dict(num_bits=8, type="float", strategy="channel")),
    "int8-channel": ("int-quantized", dict(num_bits=8, type="int", strategy="channel")),
    "int4-group": ("pack-quantized", dict(num_bits=4, type="int", strategy="group", group_size=128)),
    "mxfp8": ("mxfp8-quantized", dict(num_bits=8, type="float", strategy="group", group_size=32, scale_dtype=torch.uint8,
                                      zp_dtype=torch.uint8)),
    "mxfp4": ("mxfp4-pack-quantized", dict(num_bits=4, type="float", strategy="group", group_size=32,
                                           scale_dtype=torch.uint8, zp_dtype=torch.uint8)),
    "nvfp4": ("nvfp4-pack-quantized", dict(num_bits=4, type="float", strategy="tensor_group", group_size=16,
                                           scale_dtype=E4M3, zp_dtype=E4M3)),
}  # fmt: skip


def ct_compress(weight, form, args):
    """As its calibration does it for weights alone: extents, scales, codes, packing."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    state, divisor = {"weight": weight}, None
    if args.strategy == "tensor":
        low, high = weight.min().reshape(1), weight.max().reshape(1)
    else:
        cut = weight.reshape(weight.shape[0], -1, args.group_size or weight.shape[1])
        low, high = cut.amin(2), cut.amax(2)
    if form.startswith("nvfp4"):
        divisor = generate_gparam(weight.min(), weight.max())
        state["weight_global_scale"] = divisor.reshape(1)
    state["weight_scale"], _ = calculate_qparams(low, high, args, divisor)
    plan = QuantizationScheme(targets=["Linear"], weights=args, format=form)
    compressor = BaseCompressor.get_value_from_registry(form)
    return {name: torch.as_tensor(part) for name, part in compressor.compress(state, plan).items()}


def ct_decompress(packed, form, args):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme

    plan = QuantizationScheme(targets=["Linear"], weights=args, format=form)
    return BaseCompressor.get_value_from_registry(form).decompress(dict(packed), plan)["weight"]


def compressed_tensors(weights):
    from compressed_tensors.quantization import QuantizationArgs

    title = "compressed-tensors"
    for weight in weights:
        for scheme, (form, words) in CT.items():
            args = QuantizationArgs(**words)
            codes = "weight_packed" if "pack" in form else "weight"
            names = [codes, "weight_scale"]
            yield quantizing(scheme, title, weight, lambda w=weight, f=form, a=args: ct_compress(w, f, a),
                             lambda made, n=names: [wide(made[name]) for name in n], spelled(title, *names),
                             recipe="compressed-tensors")  # fmt: skip
    for scheme, (form, words) in CT.items():
        args = QuantizationArgs(**words)
        packed = ct_compress(weights[-1], form, args)
        codes = packed["weight_packed" if "pack" in form else "weight"]
        options = {"global_scale": packed["weight_global_scale"]} if scheme == "nvfp4" else {}
        options["spelling"] = None if scheme == "mxfp8" else title
        if scheme == "int4-group":
            options["block"] = 128
        result = ct_decompress(packed, form, args).dtype
        dtype = str(result).removeprefix("torch.")
        yield decoding(scheme, title, lambda p=packed, f=form, a=args: ct_decompress(p, f, a),
                       lambda c=codes, s=packed["weight_scale"], o=options, n=scheme, d=dtype: tc.dequantize(
                           c, s, n, dtype=d, **o), codes, packed["weight_scale"])  # fmt: skip


# --- ModelOpt


def modelopt(weights):
    from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP8QTensor, NVFP4QTensor
    from modelopt.torch.quantization.qtensor.mxfp4_tensor import MXFP4QTensor

    title = "ModelOpt"
    kinds = (("fp8-tensor", FP8QTensor, ()), ("mxfp8", MXFP8QTensor, ()), ("mxfp4", MXFP4QTensor, (32,)),
             ("nvfp4", NVFP4QTensor, (16,)))  # fmt: skip
    for weight in weights:
        for scheme, kind, more in kinds:
            yield quantizing(scheme, title, weight, lambda w=weight, k=kind, m=more: k.quantize(w, *m),
                             lambda made, n=scheme: [made[0]._quantized_data, made[1].float().reshape(1) if n == "fp8-tensor"
                                                     else made[1]], recipe="modelopt")  # fmt: skip
    for scheme, kind, more in kinds:
        made, scale, *second = kind.quantize(weights[-1], *more)
        how = {"scale": scale}
        if scheme != "fp8-tensor":
            how["block_sizes"] = {-1: 16 if scheme == "nvfp4" else 32}
        if second:
            how["double_scale"] = second[0]
        options = {"global_scale": second[0]} if second else {}
        yield decoding(scheme, title, lambda m=made, h=how: m.dequantize(torch.bfloat16, **h),
                       lambda c=made._quantized_data, s=scale, n=scheme, o=options: tc.dequantize(
                           c, s.reshape(1, 1) if n == "fp8-tensor" else s, n, dtype="bfloat16", **o),
                       made._quantized_data, scale)  # fmt: skip


# --- ComfyUI


def comfyui(weights):
    import comfy_kitchen

    title = "comfy-kitchen"

    def scaled(w, most):
        return (w.abs().amax() / most).float()

    def nvfp4(w):
        return comfy_kitchen.quantize_nvfp4(w, scaled(w, 2688), pad_16x=True)

    def mxfp8(w):
        return comfy_kitchen.quantize_mxfp8(w, pad_32x=True)

    for weight in weights:
        yield quantizing("fp8-tensor", title, weight, lambda w=weight: comfy_kitchen.quantize_per_tensor_fp8(
            w, scaled(w, 448)), parts_of_ours=lambda q: [q.codes], recipe="comfy")  # fmt: skip
        yield quantizing("int8-channel", title, weight, lambda w=weight: comfy_kitchen.quantize_int8_rowwise(w),
                         recipe="comfy")  # fmt: skip
        for scheme, run in (("nvfp4", nvfp4), ("mxfp8", mxfp8)):
            yield quantizing(scheme, title, weight, lambda w=weight, r=run: r(w),
                             parts_of_ours=spelled("comfyui", "weight", "weight_scale"), recipe="comfy")  # fmt: skip
    weight = weights[-1]
    codes, scales = nvfp4(weight)
    second = scaled(weight, 2688)
    yield decoding("nvfp4", title, lambda: comfy_kitchen.dequantize_nvfp4(codes, second, scales, torch.float32),
                   lambda: tc.dequantize(codes, scales, "nvfp4", global_scale=second, spelling="comfyui"),
                   codes, scales)  # fmt: skip
    bytes_, tiles = mxfp8(weight)
    yield decoding("mxfp8", title, lambda: comfy_kitchen.dequantize_mxfp8(bytes_, tiles, torch.bfloat16),
                   lambda: tc.dequantize(bytes_, tiles, "mxfp8", spelling="comfyui", dtype="bfloat16"),
                   bytes_, tiles)  # fmt: skip
    one = scaled(weight, 448)
    eights = comfy_kitchen.quantize_per_tensor_fp8(weight, one)
    yield decoding("fp8-tensor", title, lambda: comfy_kitchen.dequantize_per_tensor_fp8(eights, one, torch.float32),
                   lambda: tc.dequantize(eights, one.reshape(1, 1), "fp8-tensor"), eights)  # fmt: skip


# --- llama.cpp


def gguf_package(weights):
    import gguf

    title, weight = "gguf", weights[0].numpy()
    kinds = gguf.GGMLQuantizationType
    for name in ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4"):
        kind = kinds[name.upper()]
        yield Work(f"{name} of float32", title, [weight], lambda k=kind: gguf.quants.quantize(weight, k),
                   lambda n=name: tc.gguf_quantize(weight, n), as_they_are, as_they_are)  # fmt: skip
    random = np.random.default_rng(5)
    for name in "q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4".split():
        kind = kinds[name.upper()]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        # Bytes whose float16 scales are small numbers, wherever a block has them.
        codes = random.integers(0, 64, (weight.shape[0], weight.shape[1] // elements * size), dtype=np.uint8)
        yield decoding(name, title, lambda c=codes, k=kind: gguf.quants.dequantize(c, k),
                       lambda c=codes, n=name: tc.dequantize(c, None, n), codes)  # fmt: skip


def ggml(weights, path):
    library, weight = ctypes.CDLL(path, mode=os.RTLD_LAZY | ctypes.RTLD_GLOBAL), weights[0].numpy()
    sizes = {"q8_0": (34, 32), "q4_0": (18, 32), "q4_k": (144, 256), "q6_k": (210, 256)}
    for name, (size, elements) in sizes.items():
        encode = getattr(library, f"quantize_row_{name.replace('_k', '_K')}_ref")

        def run(encode=encode, size=size, elements=elements):
            out = np.empty((weight.shape[0], weight.shape[1] // elements * size), np.uint8)
            encode(*(part.ctypes.data_as(ctypes.c_void_p) for part in (weight, out)), ctypes.c_int64(weight.size))
            return out

        yield Work(f"{name} of float32", "ggml", [weight], run, lambda n=name: tc.gguf_quantize(weight, n), as_they_are,
                   as_they_are)  # fmt: skip


# --- MLX


def mlx(weights):
    import mlx.core as mx

    title = "MLX"
    for weight in weights:
        array = mx.array(weight.float().numpy())
        if weight.dtype == torch.bfloat16:
            array = array.astype(mx.bfloat16)

        def run(mode, array=array):
            with mx.stream(mx.cpu):
                made = mx.quantize(array, mode=mode)
                mx.eval(*made)
            return made

        for mode in ("mxfp8", "mxfp4", "nvfp4"):
            yield quantizing(mode, title, weight, lambda m=mode, r=run: r(m),
                             lambda made: [np.array(part) for part in made], recipe="mlx")  # fmt: skip
    with mx.stream(mx.cpu):  # the affine mode rounds each step in bfloat16, where scales are bfloat16
        words = [mx.quantize(array.astype(mx.float32), group_size=64, bits=4), mx.quantize(array, mode="mxfp4")]
    affine, mxfp4 = ([np.array(part) for part in parts] for parts in words)

    def decode(parts, **how):
        with mx.stream(mx.cpu):
            made = mx.dequantize(*parts, **how)
            mx.eval(made)
        return made

    def numbers(made):
        return [np.array(made.astype(mx.float32))]

    for scheme, parts, how, ours in (
        ("affine-4", words[0], dict(group_size=64, bits=4),
         lambda: tc.dequantize(affine[0], affine[1], "affine-4", biases=affine[2], block=64)),
        ("mxfp4", words[1], dict(mode="mxfp4"),
         lambda: tc.dequantize(mxfp4[0].view(np.uint8), mxfp4[1], "mxfp4", dtype="bfloat16")),
    ):  # fmt: skip
        yield Work(f"{scheme} decoded", title, [np.array(words[0][0])], lambda p=parts, h=how: decode(p, **h), ours, numbers,
                   lambda made: [made.astype(np.float32)])  # fmt: skip


# --- bitsandbytes, auto-round, transformers


def bitsandbytes(weights):
    import bitsandbytes.functional as functional

    for kind in ("nf4", "fp4"):
        codes, state = functional.quantize_4bit(weights[-1], quant_type=kind)
        yield decoding(kind, "bitsandbytes", lambda c=codes, s=state: functional.dequantize_4bit(c, s),
                       lambda c=codes, s=state, k=kind: tc.dequantize(
                           c, s.absmax, k, table=s.code, shape=tuple(s.shape), dtype="bfloat16"), codes, state.absmax,
                       note="-0 for code 8, whose number in its table is 0" if kind == "fp4" else "")  # fmt: skip


def auto_round(weights):
    from auto_round.export.export_to_awq.utils import WQLinear_GEMM, dequantize_gemm

    bits, size, weight = 4, 128, weights[0]
    cut = weight.reshape(weight.shape[0], -1, size)
    low, high = cut.amin(2).clamp(max=0), cut.amax(2).clamp(min=0)
    scales = ((high - low) / 15).clamp(min=1e-5)
    zeros = (-low / scales).round().clamp(1, 15)
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight.data = weight
    layer = WQLinear_GEMM.from_linear(linear, bits, size, scales=scales.T.contiguous(), zeros=zeros.T.contiguous(),
                                      device="cpu")  # fmt: skip
    codes, scales, zeros = layer.qweight, layer.scales, layer.qzeros
    yield decoding("awq", "auto-round", lambda: dequantize_gemm(codes, zeros, scales, bits, size).T,
                   lambda: tc.dequantize(codes, scales, "awq", zero_points=zeros, block=size, dtype="float16"), codes,
                   scales)  # fmt: skip


def transformers(weights):
    from transformers.integrations import mxfp4

    weight = weights[-1]
    q = tc.quantize(weight, "mxfp4")
    blocks, codes = q.codes.reshape(1, weight.shape[0], -1, 16), q.codes.reshape(1, *q.codes.shape)
    scales = q.scales.reshape(1, weight.shape[0], -1)
    yield Work("mxfp4 of gpt-oss decoded", "transformers", [blocks, scales],
               lambda: mxfp4.convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16),
               lambda: tc.dequantize(codes, scales, "mxfp4", spelling="gpt-oss", dtype="bfloat16"),
               as_they_are, as_they_are)  # fmt: skip


TOOLS = {
    "torchao": torchao,
    "compressed-tensors": compressed_tensors,
    "ModelOpt": modelopt,
    "comfy-kitchen": comfyui,
    "gguf": gguf_package,
    "ggml": ggml,
    "MLX": mlx,
    "bitsandbytes": bitsandbytes,
    "auto-round": auto_round,
    "transformers": transformers,
}


def all_cases(chosen, rows, columns, path_of_ggml, missing):
    """Work, tool by tool; what cannot be prepared goes to `missing`."""
    generator = torch.Generator().manual_seed(1)
    wide_numbers = torch.randn(rows, columns, generator=generator) * 0.02
    weights = [wide_numbers, wide_numbers.bfloat16()]
    for name in chosen:
        more = [path_of_ggml] if name == "ggml" else []
        if more == [None]:
            missing.append("ggml: no --ggml")
            continue
        try:
            yield from TOOLS[name](weights, *more)
        except Exception as error:  # of whatever tool
            missing.append(f"{name}: {type(error).__name__}: {error}")
