# SPDX-License-Identifier: Apache-2.0
"""Makes recipe_digests.json: what each tool writes for each sample, on a CPU.

    python block_tools.py GGML_QUANTS.so TRANSFORMER_ENGINE.whl            writes it
    python block_tools.py --check GGML_QUANTS.so TRANSFORMER_ENGINE.whl    compares it with what the tools write now

Needs torch 2.13, torchao 0.18, compressed-tensors 0.20.1, nvidia-modelopt 0.47, mlx 0.32.4, comfy-kitchen 0.2.40,
transformers 5.24, amd-quark 0.13, which compiles code of its own, and sgl-deep-gemm 0.1.0, which is DeepGEMM as a wheel:
later ones round ties of float4 to even. The library is ggml-quants.c and ggml.c of llama.cpp, compiled as ``gcc -O2 -DNDEBUG
-ffp-contract=off -shared -fPIC``: a fused multiply-add would change its bytes. Of transformer-engine 2.20.2, the wheel without
extras is read, not installed: ModelOpt would look for its CUDA.
"""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
import types
from unittest import mock

import block_samples as samples
import comfy_kitchen.backends.eager.quantization as comfy
import mlx.core as mx
import numpy as np
import torch
from comfy_kitchen.float_utils import from_blocked
from compressed_tensors.compressors.mx_utils import compress_mx_scale
from compressed_tensors.compressors.mxfp6.helpers import pack_fp6_to_uint8
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import quantize as ct_quantize
from compressed_tensors.quantization.utils import helpers as ct
from modelopt.torch.quantization.qtensor.fp8_tensor import FP8QTensor
from modelopt.torch.quantization.qtensor.mxfp4_tensor import MXFP4QTensor
from modelopt.torch.quantization.qtensor.mxfp8_tensor import MXFP8QTensor
from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor
from quark.torch.kernel.hw_emulation import hw_emulation_interface as quark_kernels
from quark.torch.quantization.config import config as quark_specs
from quark.torch.quantization.observer.observer import PerBlockMXObserver
from quark.torch.utils.numerics import to_e8m0_uint8
from quark.torch.utils.pack import create_pack_method
from torchao.prototype.mx_formats import mx_tensor, nvfp4_tensor
from torchao.quantization import Float8Tensor, PerBlock, PerRow, PerTensor
from transformers.integrations.finegrained_fp8 import Fp8Quantize

E4M3 = torch.float8_e4m3fn
ELEMENTS = {
    "mxfp8": E4M3,
    "mxfp8-e5m2": torch.float8_e5m2,
    "mxfp6": mx_tensor.DTYPE_FP6_E2M3,
    "mxfp6-e3m2": mx_tensor.DTYPE_FP6_E3M2,
    "mxfp4": torch.float4_e2m1fn_x2,
}
MODES = {"floor": "FLOOR", "ceil": "CEIL", "even": "EVEN", "rceil-torchao": "RCEIL"}
# Bytes and elements of a block.
GGUF = {"q8_0": (34, 32), "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32),
        "q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256), "q6_k": (210, 256),
        "iq4_nl": (18, 32), "iq4_xs": (136, 256), "mxfp4": (17, 32), "nvfp4": (36, 64)}  # fmt: skip
WEIGHED = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs")


def tensor_of(x):
    if x.dtype == np.float32:
        return torch.from_numpy(x.copy())
    return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)


def code_bytes(t):
    return t.contiguous().view(torch.uint8).numpy()


def nibbles(packed, high_first=False):
    low, high = packed & 15, packed >> 4
    return np.stack((high, low) if high_first else (low, high), -1).reshape(*packed.shape[:-1], -1)


def padded(t):
    return torch.nn.functional.pad(t, (0, -t.shape[1] % 128, 0, -t.shape[0] % 128))


def one(number):
    return np.array([float(number)], np.float32)


def torchao_mx(x, scheme, mode):
    scales, codes = mx_tensor.to_mx(tensor_of(x), ELEMENTS[scheme], 32, getattr(mx_tensor.ScaleCalculationMode, mode))
    codes = code_bytes(codes)
    return {"codes": nibbles(codes) if scheme == "mxfp4" else codes, "scales": code_bytes(scales)}


def torchao_nvfp4(x, has_global):
    t = tensor_of(x)
    scale = nvfp4_tensor.per_tensor_amax_to_scale(t.abs().max()) if has_global else None
    scales, codes = nvfp4_tensor.nvfp4_quantize(t, 16, scale)
    made = {"codes": nibbles(code_bytes(codes)), "scales": code_bytes(scales)}
    return made | ({"global_scale": one(scale)} if has_global else {})


def torchao_fp8(x, granularity):
    t = tensor_of(x) if not isinstance(granularity, PerBlock) else padded(tensor_of(x))
    made = Float8Tensor.from_hp(t, E4M3, granularity)
    return {"codes": code_bytes(made.qdata)[: x.shape[0], : x.shape[1]], "scales": made.scale.float().numpy()}


def modelopt_mxfp4(x):
    made, scales = MXFP4QTensor.quantize(tensor_of(x), 32)
    return {"codes": nibbles(code_bytes(made._quantized_data)), "scales": code_bytes(scales)}


def modelopt_mxfp8(x):
    made, scales = MXFP8QTensor.quantize(tensor_of(x))
    return {"codes": code_bytes(made._quantized_data), "scales": code_bytes(scales)}


def modelopt_nvfp4(x):
    made, scales, scale = NVFP4QTensor.quantize(tensor_of(x), 16)
    codes = nibbles(code_bytes(made._quantized_data))
    return {"codes": codes, "scales": code_bytes(scales), "global_scale": one(scale)}


def modelopt_fp8(x, **how):
    made, scales = FP8QTensor.quantize(tensor_of(x), **how)
    return {"codes": code_bytes(made._quantized_data), "scales": scales.float().numpy()}


def modelopt_export_fp8(x):
    """What export_hf_checkpoint writes of a tensor: get_scaling_factor and to_quantized_weight, which want a model."""
    weight = tensor_of(x)
    scale = weight.abs().amax().float() / 448.0
    return {"codes": code_bytes((weight / scale).to(torch.float8_e4m3fn)), "scales": scale.numpy()}


def ct_args(bits, kind, strategy, **more):
    return QuantizationArgs(num_bits=bits, type=kind, strategy=strategy, **{"symmetric": True, **more})


def ct_codes(numbers, bits):
    if bits == 6:
        word = pack_fp6_to_uint8(numbers).numpy().reshape(len(numbers), -1, 3).astype(np.int32) @ [1, 1 << 8, 1 << 16]
        return (word[..., None] >> np.arange(0, 24, 6) & 63).astype(np.uint8).reshape(numbers.shape)
    size = np.searchsorted(np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6]), numbers.float().abs().numpy())
    return (size | (torch.signbit(numbers).numpy() * 8)).astype(np.uint8)


def ct_groups(x, size):
    t = tensor_of(x)
    groups = t.reshape(t.shape[0], -1, size)
    return t, groups.amin(-1), groups.amax(-1)


def ct_mx(x, bits):
    args = ct_args(bits, "float", "group", group_size=32, scale_dtype=torch.uint8, zp_dtype=torch.uint8)
    t, low, high = ct_groups(x, 32)
    scales, zeros = ct.calculate_qparams(low, high, args)
    # The compressor of mxfp6 gives no zero points: -0 + 0 would be 0.
    made = ct_quantize(t, scales, None if bits == 6 else zeros, args, dtype=E4M3 if bits == 8 else t.dtype)
    codes = code_bytes(made) if bits == 8 else ct_codes(made, bits)
    return {"codes": codes, "scales": code_bytes(compress_mx_scale(scales, torch.uint8))}


def ct_nvfp4(x):
    args = ct_args(4, "float", "tensor_group", group_size=16, scale_dtype=E4M3, zp_dtype=E4M3)
    t, low, high = ct_groups(x, 16)
    divisor = ct.generate_gparam(t.min(), t.max())
    scales, zeros = ct.calculate_qparams(low, high, args, global_scale=divisor)
    codes = ct_codes(ct_quantize(t, scales, zeros, args, global_scale=divisor), 4)
    return {"codes": codes, "scales": code_bytes(scales.to(E4M3)), "global_scale": one(divisor)}


def ct_fp8(x, strategy):
    t = tensor_of(x)
    args = ct_args(8, "float", strategy, **({"block_structure": [128, 128]} if strategy == "block" else {}))
    if strategy == "tensor":
        low, high = t.min(), t.max()
    elif strategy == "channel":
        low, high = t.amin(-1, keepdim=True), t.amax(-1, keepdim=True)
    else:
        whole = padded(t)
        blocks = whole.reshape(whole.shape[0] // 128, 128, -1, 128)
        low, high = blocks.amin((1, 3)), blocks.amax((1, 3))
    scales, zeros = ct.calculate_qparams(low, high, args)
    return {"codes": code_bytes(ct_quantize(t, scales, zeros, args, dtype=E4M3)), "scales": scales.float().numpy()}


def ct_int8(x):
    t, args = tensor_of(x), ct_args(8, "int", "channel")
    scales, zeros = ct.calculate_qparams(t.amin(-1, keepdim=True), t.amax(-1, keepdim=True), args)
    codes = code_bytes(ct_quantize(t, scales, zeros, args, dtype=torch.int8))
    return {"codes": codes, "scales": scales.float().numpy()}


def ct_int4(x, size, symmetric):
    t, low, high = ct_groups(x, size)
    args = ct_args(4, "int", "group", group_size=size, symmetric=symmetric)
    scales, zeros = ct.calculate_qparams(low, high, args)
    codes = code_bytes(ct_quantize(t, scales, zeros, args, dtype=torch.int8)) & 15
    made = {"codes": codes, "scales": scales.float().numpy()}
    return made if symmetric else made | {"zero_points": zeros.numpy().astype(np.int8)}


def comfy_nvfp4(x):
    t = tensor_of(x)
    scale = (t.abs().amax() / (448.0 * 6.0)).to(torch.float32)
    codes, scales = comfy.quantize_nvfp4(t, scale)
    scales = code_bytes(from_blocked(scales, x.shape[0], x.shape[1] // 16))
    return {"codes": nibbles(code_bytes(codes), high_first=True), "scales": scales, "global_scale": one(scale)}


def comfy_mxfp8(x):
    codes, scales = comfy.quantize_mxfp8(tensor_of(x))
    scales = code_bytes(from_blocked(scales.view(torch.uint8), x.shape[0], x.shape[1] // 32))
    return {"codes": code_bytes(codes), "scales": scales}


def comfy_fp8(x):
    t = tensor_of(x)
    scale = (t.abs().amax() / 448.0).to(torch.float32)
    return {"codes": code_bytes(comfy.quantize_per_tensor_fp8(t, scale)), "scales": one(scale)}


def comfy_int8(x):
    codes, scales = comfy.quantize_int8_rowwise(tensor_of(x))
    return {"codes": code_bytes(codes), "scales": scales.numpy()}


def mlx(x, mode, bits):
    with mx.stream(mx.cpu):
        array = mx.array(x.astype(np.float32))
        words, scales = mx.quantize(array if x.dtype == np.float32 else array.astype(mx.bfloat16), mode=mode)
    codes = np.array(words).view(np.uint8)
    return {"codes": nibbles(codes) if bits == 4 else codes, "scales": np.array(scales)}


def transformers(x, power_of_two):
    config = types.SimpleNamespace(weight_block_size=[128, 128], scale_fmt="ue8m0" if power_of_two else None)
    quantizer = Fp8Quantize(types.SimpleNamespace(quantization_config=config))
    made = quantizer._quantize_one("a.weight", padded(tensor_of(x)))
    codes = code_bytes(made["a.weight"])[: x.shape[0], : x.shape[1]]
    return {"codes": codes, "scales": made["a.weight_scale_inv"].float().numpy()}


def deepgemm_casts():
    """Its casts alone: the package itself looks for CUDA."""
    path = importlib.metadata.distribution("sgl-deep-gemm").locate_file("deep_gemm/utils/math.py")
    spec = importlib.util.spec_from_file_location("deepgemm_casts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def deepgemm_mx(x, casts, bits):
    cast = casts.per_token_cast_to_fp4 if bits == 4 else casts.per_token_cast_to_fp8
    codes, scales = cast(tensor_of(x), True, 32)
    codes = code_bytes(codes)
    return {"codes": nibbles(codes) if bits == 4 else codes, "scales": (scales.numpy().view(np.int32) >> 23).astype(np.uint8)}


def deepgemm_fp8(x, casts, power_of_two):
    codes, scales = casts.per_block_cast_to_fp8(tensor_of(x), power_of_two)
    return {"codes": code_bytes(codes), "scales": scales.numpy()}


def te_reference(wheel):
    """Its reference of NVFP4 in PyTorch, from the wheel: the package itself looks for its libraries of CUDA."""

    class Quantizer:
        def __init__(self, rowwise, columnwise):
            self.rowwise_usage, self.columnwise_usage = rowwise, columnwise

    def package(name, **names):
        module = types.ModuleType(f"transformer_engine{name}")
        module.__path__ = [f"{wheel}/transformer_engine{name.replace('.', '/')}"]
        module.__dict__.update(names)
        return module

    storage = package(".pytorch.quantized_tensor", Quantizer=Quantizer, QuantizedTensorStorage=object)
    recipes = package(".pytorch.custom_recipes", gemm=mock.MagicMock())
    stubs = {module.__name__: module for module in (package(""), package(".pytorch"), recipes, storage)}
    with mock.patch.dict(sys.modules, stubs):
        return importlib.import_module("transformer_engine.pytorch.custom_recipes.reference_nvfp4")


def te_nvfp4(x, reference):
    quotients = []

    def div(one, other, divide=torch.div):
        quotients.append(divide(one, other))
        return quotients[-1]

    quantizer = reference.NVFP4QuantizerRef(reference.reference_utils.Fp4Formats.E2M1, columnwise=False)
    with mock.patch.object(torch, "div", div):
        made = quantizer.quantize(tensor_of(x))
    codes = nibbles(code_bytes(made.data))
    # Its comparisons take -0 for 0. Its kernels for GPUs convert by cvt.rn.satfinite.e2m1x2, which keeps the sign.
    codes[(x == 0) & np.signbit(x)] = samples.NEGATIVE_ZERO["mxfp4"]
    # It keeps the largest number only: the scale is the reciprocal of 2688 / amax, which it divides after amax / 6.
    return {"codes": codes, "scales": code_bytes(made.scale), "global_scale": one(quotients[2])}


QUARK = {
    "mxfp8": quark_specs.OCP_MXFP8E4M3Spec,
    "mxfp8-e5m2": quark_specs.OCP_MXFP8E5M2Spec,
    "mxfp6": quark_specs.OCP_MXFP6E2M3Spec,
    "mxfp6-e3m2": quark_specs.OCP_MXFP6E3M2Spec,
    "mxfp4": quark_specs.OCP_MXFP4Spec,
}


def quark_float8(t, name, arguments):
    """It packs no float8 in blocks: the elements are what its simulation casts to before the product with the scale."""
    made = []

    def cast(x, float8_dtype):
        made.append(x.to(float8_dtype))
        return made[0].to(x.dtype)

    with mock.patch.object(quark_kernels, "cast_to_float8_and_back", cast):
        torch.ops.quark.scaled_fake_quantize(name, t, *arguments, "")
    return code_bytes(made[0]).reshape(t.shape)


def quark_numbers(t, name, arguments):
    numbers = torch.ops.quark.scaled_real_quantize(name, t, *arguments)
    # It packs infinity as the bits of its exponent, 4 or 16, and not as the largest number.
    largest = {"fp4": 6, "fp6_e2m3": 7.5, "fp6_e3m2": 28}[name]
    packed = code_bytes(create_pack_method("per_group", name).pack(numbers.clamp(-largest, largest), False))
    if name == "fp4":
        return nibbles(packed)
    words = packed.reshape(-1, 3).astype(np.uint32) @ np.uint32([1, 1 << 8, 1 << 16])
    return np.stack([words >> shift & 63 for shift in (0, 6, 12, 18)], -1).astype(np.uint8).reshape(t.shape)


def quark(x, scheme):
    t, spec = tensor_of(x), QUARK[scheme](ch_axis=-1).to_quantization_spec()
    observer, name = PerBlockMXObserver(spec), spec.dtype.value
    observer(t)
    scales, zeros = observer.calculate_qparams()
    arguments = (scales, zeros, -1, 32, 0.0, 0.0, 8, "per_group")
    codes = (quark_float8 if scheme.startswith("mxfp8") else quark_numbers)(t, name, arguments)
    return {"codes": codes, "scales": code_bytes(to_e8m0_uint8(scales))}


# What a tool writes where it converts NaN to an integer differs by type, and by where in a tensor the number is.
UNDEFINED = {
    **dict.fromkeys(("mxfp4 compressed-tensors", "mxfp6 compressed-tensors", "mxfp4 mlx", "mxfp8 mlx"), samples.NONFINITE),
    "mxfp8 compressed-tensors": ("NaN", "NaN and infinity"),
    "mxfp4 ggml": ("infinity", "NaN and infinity"),
    **dict.fromkeys((f"{scheme} quark" for scheme in QUARK), ("NaN", "NaN and infinity")),
}


def is_defined(case, name):
    scheme, recipe, *_ = case.split(" ")
    if recipe == "ggml" and scheme.startswith(("q", "iq")):
        return name not in samples.NONFINITE
    return name not in UNDEFINED.get(f"{scheme} {recipe}", ())


def ggml(x, library, name):
    if name == "iq4_nl":  # the _ref function tries one scale only; llama-quantize calls the other
        return ggml_weighed(x, library, name, False)
    encode = getattr(library, f"quantize_row_{name.replace('_k', '_K')}_ref")
    numbers = np.ascontiguousarray(x.astype(np.float32))
    size, elements = GGUF[name]
    out = np.zeros((x.shape[0], x.shape[1] // elements * size), np.uint8)
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (numbers, out))
    encode(*pointers, ctypes.c_int64(numbers.size))
    return {"codes_of_gguf": out}


def ggml_weighed(x, library, name, has_importance=True):
    encode = getattr(library, f"quantize_{name.replace('_k', '_K')}")
    numbers, importance = np.ascontiguousarray(x.astype(np.float32)), samples.importance(x.shape[1])
    size, elements = GGUF[name]
    out = np.zeros((x.shape[0], x.shape[1] // elements * size), np.uint8)
    source, target, weights = (array.ctypes.data_as(ctypes.c_void_p) for array in (numbers, out, importance))
    encode(source, target, *(ctypes.c_int64(length) for length in x.shape), weights if has_importance else None)
    return {"codes_of_gguf": out}


def ggml_parts(x, library, name):
    rows = ggml(x, library, name)["codes_of_gguf"].reshape(x.shape[0], -1, GGUF[name][0])
    scales = 1 if name == "mxfp4" else 4
    packed = rows[:, :, scales:].reshape(x.shape[0], -1, 16 if name == "mxfp4" else 8)
    codes = np.concatenate([packed & 15, packed >> 4], -1).reshape(x.shape)
    return {"codes": codes, "scales": rows[:, :, :scales]}


def all_tools(library, wheel_of_te):
    """A function for each case: scheme, recipe and options as test_quantize.py gives them."""
    tools = {}
    for scheme in ELEMENTS:
        for recipe, mode in MODES.items():
            tools[f"{scheme} {recipe}"] = lambda x, a=(scheme, mode): torchao_mx(x, *a)
        tools[f"{scheme} quark"] = lambda x, a=scheme: quark(x, a)
    for bits in (4, 6, 8):
        tools[f"mxfp{bits} compressed-tensors"] = lambda x, a=bits: ct_mx(x, a)
    for strategy, granularity in (("tensor", PerTensor()), ("channel", PerRow()), ("block", PerBlock((128, 128)))):
        tools[f"fp8-{strategy} compressed-tensors"] = lambda x, a=strategy: ct_fp8(x, a)
        tools[f"fp8-{strategy} torchao"] = lambda x, a=granularity: torchao_fp8(x, a)
    tools["fp8-tensor modelopt"] = modelopt_export_fp8
    tools["fp8-channel modelopt"] = lambda x: modelopt_fp8(x, axis=0)
    tools["fp8-block modelopt"] = lambda x: modelopt_fp8(x, block_sizes={-1: 128, -2: 128})
    tools["mxfp4 modelopt"], tools["mxfp8 modelopt"], tools["nvfp4 modelopt"] = modelopt_mxfp4, modelopt_mxfp8, modelopt_nvfp4
    tools["nvfp4 compressed-tensors"], tools["int8-channel compressed-tensors"] = ct_nvfp4, ct_int8
    for size in (32, 64, 128):
        for symmetric in ("true", "false"):
            case = f"int4-group compressed-tensors group_size={size} symmetric={symmetric}"
            tools[case] = lambda x, a=(size, symmetric == "true"): ct_int4(x, *a)
    tools["nvfp4 torchao"] = lambda x: torchao_nvfp4(x, True)
    tools["nvfp4 torchao-one-level"] = lambda x: torchao_nvfp4(x, False)
    tools["nvfp4 comfy"], tools["mxfp8 comfy"], tools["fp8-tensor comfy"] = comfy_nvfp4, comfy_mxfp8, comfy_fp8
    tools["int8-channel comfy"] = comfy_int8
    for mode, bits in (("mxfp4", 4), ("mxfp8", 8), ("nvfp4", 4)):
        tools[f"{mode} mlx"] = lambda x, a=(mode, bits): mlx(x, *a)
    tools["fp8-block transformers"] = lambda x: transformers(x, False)
    tools["fp8-block transformers power_of_two_scales=true"] = lambda x: transformers(x, True)
    casts = deepgemm_casts()
    for bits in (4, 8):
        tools[f"mxfp{bits} deepgemm"] = lambda x, a=bits: deepgemm_mx(x, casts, a)
    tools["fp8-block deepgemm"] = lambda x: deepgemm_fp8(x, casts, False)
    tools["fp8-block deepgemm power_of_two_scales=true"] = lambda x: deepgemm_fp8(x, casts, True)
    reference = te_reference(wheel_of_te)
    tools["nvfp4 te"] = lambda x: te_nvfp4(x, reference)
    for name in GGUF:
        if name not in ("mxfp4", "nvfp4"):
            tools[f"{name} ggml"] = lambda x, a=name: ggml(x, library, a)
        else:
            tools[f"{name} ggml"] = lambda x, a=name: ggml_parts(x, library, a)
    for name in WEIGHED:
        tools[f"{name} ggml importance=true"] = lambda x, a=name: ggml_weighed(x, library, a)
    return tools


def main():
    *options, path_of_library, wheel_of_te = sys.argv[1:]
    library = ctypes.CDLL(path_of_library, mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY)
    digests = {}
    with np.errstate(all="ignore"):
        for case, tool in sorted(all_tools(library, wheel_of_te).items()):
            ends = samples.ENDS if case.endswith(" quark") else ()
            digests[case] = {
                f"{name} {dtype}": samples.digest(case, tool(samples.sample(name, dtype)))
                for name in (*samples.SAMPLES, *ends, *samples.NONFINITE)
                for dtype in samples.DTYPES
                if is_defined(case, name)
            }
            print(case, flush=True)
    path = pathlib.Path(__file__).parent / "recipe_digests.json"
    if options != ["--check"]:
        path.write_text(json.dumps(digests, indent=1) + "\n")
        return 0
    kept = json.loads(path.read_text())
    wrong = [f"{case}: {name}" for case, made in digests.items() for name, digest in made.items() if kept[case][name] != digest]
    for line in wrong:
        print(f"block_tools: the tool writes other bytes now: {line}", file=sys.stderr)
    return 1 if wrong or digests.keys() != kept.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
