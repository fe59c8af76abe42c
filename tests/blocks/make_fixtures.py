# SPDX-License-Identifier: Apache-2.0
"""Makes the quantized checkpoints of fixtures/ with the tools that define them, and the digests of what they decode.

    make_fixtures.py FOLDER      writes all of them
    make_fixtures.py --check     compares fixtures/ with what the tools make and decode now

scripts/checks/blocks installs the tools. Each weight is small: 40 x 128, or 130 x 96 where tiles matter.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent / "fixtures"


def weight(rows=40, columns=128, seed=0):
    """Numbers of which each row has another size, with zeros among them."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(rows, columns, generator=generator) * torch.logspace(-3, 1, rows)[:, None]
    numbers[3] = 0
    return numbers


class Fixture:
    """Tensors and files of a model, and the weights that the tool decodes."""

    def __init__(self, tensors, decoded, config=None, files=None, metadata=None, quantized_from=None):
        self.tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        self.decoded = decoded
        self.config = config
        self.files = files or {}
        self.metadata = metadata or {"format": "pt"}
        self.quantized_from = quantized_from  # the weights that the tool made the codes of

    def write(self, folder):
        folder.mkdir(parents=True)
        save_file(self.tensors, folder / "model.safetensors", self.metadata)
        if self.config is not None:
            (folder / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", **self.config}, indent=1) + "\n")
        for name, text in self.files.items():
            (folder / name).write_text(text)
        if self.quantized_from is not None:
            save_file(self.quantized_from, folder / "weights.safetensors")
        write_digests(folder, self.decoded)


def write_digests(folder, decoded):
    digests = {}
    for name, tensor in decoded.items():
        tensor = tensor.detach().contiguous()
        content = tensor.view(torch.uint8).numpy().tobytes()
        digests[name] = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
                         "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "decoded.json").write_text(json.dumps(digests, indent=1) + "\n")


def compressed_tensors(form, scheme, columns=128, **weights):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    args = QuantizationArgs(**weights)
    plan = QuantizationScheme(targets=["Linear"], weights=args, format=form)
    numbers = weight(columns=columns)
    total, columns = numbers.shape
    state = {"weight": numbers}
    size = args.group_size
    if args.strategy == "tensor":
        low, high = numbers.min().reshape(1), numbers.max().reshape(1)
    elif args.strategy == "channel":
        low, high = numbers.amin(1, keepdim=True), numbers.amax(1, keepdim=True)
    elif args.strategy == "block":
        rows, across = args.block_structure
        cut = numbers.reshape(total // rows, rows, columns // across, across)
        low, high = cut.amin((1, 3)), cut.amax((1, 3))
    else:
        cut = numbers.reshape(total, columns // size, size)
        low, high = cut.amin(2), cut.amax(2)
    global_scale = None
    if form.startswith("nvfp4"):
        global_scale = generate_gparam(numbers.min(), numbers.max())
        state["weight_global_scale"] = global_scale.reshape(1)
    scale, zero = calculate_qparams(low, high, args, global_scale)
    state["weight_scale"] = scale
    if not args.symmetric:
        state["weight_zero_point"] = zero
    compressor = BaseCompressor.get_value_from_registry(form)
    packed = compressor.compress(state, plan)
    packed = {name: torch.as_tensor(tensor) for name, tensor in packed.items()}
    decoded = compressor.decompress(packed, plan)["weight"]
    config = {"quantization_config": {
        "quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": json.loads(args.model_dump_json()),
                                      "format": form}}}}
    return Fixture({f"a.{name}": tensor for name, tensor in packed.items()}, {"a.weight": decoded}, config)


def modelopt(kind):
    from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP8QTensor, NVFP4QTensor

    numbers = weight(rows=130 if kind == "NVFP4" else 40, columns=96)
    files = {"hf_quant_config.json": json.dumps({"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": {
        "quant_algo": kind, "group_size": {"NVFP4": 16, "MXFP8": 32}.get(kind), "exclude_modules": ["lm_head"]}})}
    if kind == "NVFP4":
        quantized, scale, second = NVFP4QTensor.quantize(numbers, 16)
        decoded = quantized.dequantize(torch.bfloat16, scale=scale, double_scale=second, block_sizes={-1: 16})
        tensors = {"a.weight": quantized._quantized_data, "a.weight_scale": scale, "a.weight_scale_2": second}
    elif kind == "FP8":
        quantized, scale = FP8QTensor.quantize(numbers)
        decoded = quantized.dequantize(torch.float32, scale=scale)
        tensors = {"a.weight": quantized._quantized_data, "a.weight_scale": scale.reshape(())}
    else:
        quantized, scale = MXFP8QTensor.quantize(numbers)
        decoded = quantized.dequantize(torch.bfloat16, scale=scale, block_sizes={-1: 32})
        tensors = {"a.weight": quantized._quantized_data, "a.weight_scale": scale}
    return Fixture(tensors, {"a.weight": decoded}, {}, files)


# In bfloat16 these tools round more than once, so float32 is compared where they decode to it.
def comfyui(kind):
    import comfy_kitchen

    numbers = weight(rows=130, columns=96) if kind != "int8_tensorwise" else weight()
    second = None
    if kind == "nvfp4":
        second = (numbers.abs().amax() / 2688).float()
        codes, scale = comfy_kitchen.quantize_nvfp4(numbers, second, pad_16x=True)
        decoded = comfy_kitchen.dequantize_nvfp4(codes, second, scale, torch.float32)
    elif kind == "mxfp8":
        codes, scale = comfy_kitchen.quantize_mxfp8(numbers, pad_32x=True)
        decoded = comfy_kitchen.dequantize_mxfp8(codes, scale, torch.bfloat16)
    elif kind == "float8_e4m3fn":
        scale = (numbers.abs().amax() / 448).float()
        codes = comfy_kitchen.quantize_per_tensor_fp8(numbers, scale)
        decoded = comfy_kitchen.dequantize_per_tensor_fp8(codes, scale, torch.float32)
    else:
        codes, scale = comfy_kitchen.quantize_int8_rowwise(numbers)
        decoded = comfy_kitchen.dequantize_int8_simple(codes, scale)
    tensors = {"a.weight": codes, "a.weight_scale": scale}
    if second is not None:
        tensors["a.weight_scale_2"] = second
    text = json.dumps({"format_version": "1.0", "layers": {"a": {"format": kind}}})
    return Fixture(tensors, {"a.weight": decoded}, metadata={"format": "pt", "_quantization_metadata": text})


def mlx(mode, bits=4, size=64):
    import mlx.core as mx

    numbers = mx.array(weight().numpy())
    more = {"mode": mode} if mode != "affine" else {}
    parts = mx.quantize(numbers, group_size=size, bits=bits, **more)
    decoded = torch.from_numpy(np.array(mx.dequantize(*parts, group_size=size, bits=bits, **more).astype(mx.float32)))
    names = ["a.weight", "a.scales", "a.biases"]
    tensors = {name: torch.from_numpy(np.array(part)) for name, part in zip(names, parts)}
    return Fixture(tensors, {"a.weight": decoded},
                   {"quantization": {"group_size": size, "bits": bits, **({"mode": mode} if more else {})}})


def bitsandbytes(kind, nested):
    import bitsandbytes.functional as functional

    codes, state = functional.quantize_4bit(weight(), quant_type=kind, compress_statistics=nested)
    packed = {f"a.weight.{name}": tensor for name, tensor in state.as_dict(packed=True).items()}
    # Its kernels differ in the sign of FP4's code 8, whose number in the table is 0.
    decoded = functional.dequantize_4bit(codes, state) + (0.0 if kind == "fp4" else -0.0)
    return Fixture({"a.weight": codes, **packed}, {"a.weight": decoded}, {"quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind,
        "bnb_4bit_use_double_quant": nested}})


def bitsandbytes_int8():
    import bitsandbytes.functional as functional

    codes, magnitudes, _ = functional.int8_vectorwise_quant(weight().clamp(-100, 100).half())
    tensors = {"a.weight": codes, "a.SCB": magnitudes, "a.weight_format": torch.tensor(0, dtype=torch.uint8)}
    return Fixture(tensors, {"a.weight": functional.int8_vectorwise_dequant(codes, magnitudes)}, {
        "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}})


def convrot(size):
    """comfy-kitchen turns back in float32, and rounds each sum in an order of its own; ours has one rounding."""
    import comfy_kitchen.backends.eager.quantization as comfy

    # Sums of these numbers are exact, in whatever order a product of matrices adds them.
    numbers = (weight() * 1024).round() / 1024
    codes, scale = comfy.quantize_int8_convrot_weight(numbers, size)
    turned = codes.double().reshape(codes.shape[0], -1, size)
    step = 1
    while step < size:  # the regular Hadamard matrix of order 4, along each digit of the place in a group
        parts = turned.reshape(*turned.shape[:2], -1, 4, step)
        total = parts.sum(3, keepdim=True)
        turned = (total - 2 * parts.flip(3)).reshape(turned.shape)
        step *= 4
    exact = turned.reshape(codes.shape) / size**0.5
    decoded = (exact * scale.double()).float()
    of_tool = comfy.dequantize_int8_convrot_weight(codes, scale, size)
    if not torch.allclose(decoded, of_tool, rtol=1e-5, atol=float(scale.max()) * 1e-4):
        raise ValueError("comfy-kitchen turns weights back in another way")
    layer = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": size}
    text = json.dumps({"format_version": "1.0", "layers": {"a": layer}})
    return Fixture({"a.weight": codes, "a.weight_scale": scale}, {"a.weight": decoded},
                   metadata={"format": "pt", "_quantization_metadata": text}, quantized_from={"a.weight": numbers})


def groups_of(numbers, bits, size):
    """Scales and zero points of groups along the inputs, as auto-round takes them: (scales, zeros), [outputs, groups]."""
    most = 2**bits - 1
    cut = numbers.reshape(numbers.shape[0], -1, size)
    low, high = cut.amin(2).clamp(max=0), cut.amax(2).clamp(min=0)
    scales = ((high - low) / most).clamp(min=1e-5)
    return scales, (-low / scales).round().clamp(1, most)


def linear_of(numbers):
    linear = torch.nn.Linear(numbers.shape[1], numbers.shape[0], bias=False)
    linear.weight.data = numbers
    return linear


def gptq(bits, version=1, ordered=True, method="gptq"):
    """Written and decoded by auto-round, whose packages are those of AutoGPTQ. Zero points of version 1 are one less."""
    from auto_round_extension.torch import qlinear_torch, qlinear_torch_zp

    size, numbers = 32, weight(rows=32)
    scales, zeros = groups_of(numbers, bits, size)
    module = qlinear_torch_zp if version == 1 else qlinear_torch
    layer = module.QuantLinear(bits, size, numbers.shape[1], numbers.shape[0], bias=False, g_idx=True)
    layer.device = "cpu"
    layer.pack(linear_of(numbers), scales, zeros, device="cpu")
    if not ordered:  # as with desc_act
        layer.g_idx = layer.g_idx[torch.randperm(numbers.shape[1], generator=torch.Generator().manual_seed(7))]
    decoded = layer(torch.eye(numbers.shape[1], dtype=torch.float16)).T
    tensors = {f"a.{name}": getattr(layer, name) for name in ("qweight", "qzeros", "scales", "g_idx")}
    section = {"quant_method": method, "bits": bits, "group_size": size, "sym": False}
    if method == "gptq":
        section |= {"desc_act": not ordered, "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}
    else:
        section |= {"packing_format": "auto_round:auto_gptq"}
    return Fixture(tensors, {"a.weight": decoded}, {"quantization_config": section})


def awq(method="awq"):
    from auto_round.export.export_to_awq.utils import WQLinear_GEMM, dequantize_gemm

    bits, size, numbers = 4, 32, weight(rows=32)
    scales, zeros = groups_of(numbers, bits, size)
    layer = WQLinear_GEMM.from_linear(linear_of(numbers), bits, size, scales=scales.T.contiguous(),
                                      zeros=zeros.T.contiguous(), device="cpu")
    decoded = dequantize_gemm(layer.qweight, layer.qzeros, layer.scales, bits, size).T
    tensors = {f"a.{name}": getattr(layer, name) for name in ("qweight", "qzeros", "scales")}
    section = {"quant_method": method, "bits": bits, "group_size": size}
    section |= {"version": "gemm", "zero_point": True} if method == "awq" else {"packing_format": "auto_round:auto_awq"}
    return Fixture(tensors, {"a.weight": decoded}, {"quantization_config": section})


def torchao(make, decode=lambda tensor: tensor.dequantize(torch.float32), **size):
    """A subclass of tensors, as its safetensors support flattens it."""
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict

    tensor = make(weight(**size))
    tensors, metadata = flatten_tensor_state_dict({"a.weight": tensor})
    section = {"quant_method": "torchao", "quant_type": {"default": {"_type": "AOBaseConfig", "_version": 2, "_data": {}}},
               "quant_type_kwargs": {}, "include_input_output_embeddings": False, "untie_embedding_weights": False,
               "modules_to_not_convert": None}
    return Fixture(tensors, {"a.weight": decode(tensor)}, {"quantization_config": section}, metadata=metadata)


def torchao_float8(granularity):
    from torchao import quantization

    def make(numbers):
        numbers[3] = 1  # in place of zeros, whose scale of a row would be 0, and whose codes NaN
        return quantization.Float8Tensor.from_hp(numbers, granularity=getattr(quantization, granularity[0])(*granularity[1:]))

    return torchao(make)


def torchao_integers(width, granularity):
    from torchao import quantization

    type = getattr(torch, width)
    scheme = quantization.IntxWeightOnlyConfig(
        weight_dtype=type, granularity=getattr(quantization, granularity[0])(*granularity[1:]),
        mapping_type=quantization.MappingType.ASYMMETRIC)

    def make(numbers):
        layer = torch.nn.Linear(numbers.shape[1], numbers.shape[0], bias=False)
        layer.weight = torch.nn.Parameter(numbers, requires_grad=False)
        quantization.quantize_(layer, scheme)
        return layer.weight

    return torchao(make, lambda tensor: tensor.dequantize())


def torchao_int4(size=32):
    """Int4Tensor's codes are made and decoded by a GPU alone: here by the formula of its zero points."""
    from torchao.quantization import Int4Tensor

    def make(numbers):
        groups = numbers.view(numbers.shape[0], -1, size)
        least, most = groups.amin(-1), groups.amax(-1)
        scale = ((most - least) / 15).clamp(min=1e-6)
        codes = ((groups - least[..., None]) / scale[..., None]).round().clamp(0, 15).view(numbers.shape).to(torch.int8) - 8
        packed = (codes[:, 1::2] << 4) | (codes[:, ::2] & 15)
        zero = (least + scale * 8).bfloat16()
        return Int4Tensor(packed, scale.bfloat16().T.contiguous(), zero.T.contiguous(), [1, size], numbers.shape)

    def decode(tensor):
        low, high = (tensor.qdata << 4) >> 4, tensor.qdata >> 4
        codes = torch.stack([low, high], -1).view(tensor.shape[0], -1, size).float()
        numbers = codes * tensor.scale.T.float()[..., None] + tensor.zero_point.T.float()[..., None]
        return numbers.view(tensor.shape)

    return torchao(make, decode)


def torchao_mx(element, swizzled=False):
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    return torchao(lambda numbers: MXTensor.to_mx(numbers, getattr(torch, element), 32, is_swizzled_scales=swizzled),
                   rows=130 if swizzled else 40, columns=96)


def torchao_nvfp4(two_levels):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    def make(numbers):
        outer = per_tensor_amax_to_scale(numbers.abs().max()) if two_levels else None
        return NVFP4Tensor.to_nvfp4(numbers, per_tensor_scale=outer, is_swizzled_scales=two_levels)

    return torchao(make, rows=128, columns=96)


class Gguf:
    """One file with a tensor of each type that the gguf package decodes."""

    TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4",
             "NVFP4", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"]

    def write(self, folder):
        import gguf

        folder.mkdir(parents=True)
        writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
        random = np.random.default_rng(5)
        decoded = {}
        for kind in self.TYPES:
            number = gguf.GGMLQuantizationType[kind]
            elements, size = gguf.GGML_QUANT_SIZES[number]
            codes = random.integers(0, 256, (3, 512 // elements * size), dtype=np.uint8)
            # Scales of float16 that are infinite or NaN say nothing of arithmetic.
            try:
                numbers = gguf.quants.dequantize(codes, number)
            except NotImplementedError:
                continue
            codes[~np.isfinite(numbers).all(1)] = 0
            numbers = gguf.quants.dequantize(codes, number)
            writer.add_tensor(f"{kind.lower()}.weight", codes, raw_dtype=number)
            decoded[f"{kind.lower()}.weight"] = torch.from_numpy(numbers.astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        write_digests(folder, decoded)


FIXTURES = {
    "ct-fp8-tensor": lambda: compressed_tensors("float-quantized", "fp8", num_bits=8, type="float", strategy="tensor"),
    "ct-fp8-channel": lambda: compressed_tensors("float-quantized", "fp8", num_bits=8, type="float", strategy="channel"),
    "ct-fp8-block": lambda: compressed_tensors("float-quantized", "fp8", num_bits=8, type="float", strategy="block",
                                               block_structure=[8, 32]),
    "ct-int8-channel": lambda: compressed_tensors("int-quantized", "int8", num_bits=8, type="int", strategy="channel"),
    "ct-int4-group": lambda: compressed_tensors("pack-quantized", "int4", num_bits=4, type="int", strategy="group",
                                                group_size=32),
    "ct-int4-asymmetric": lambda: compressed_tensors("pack-quantized", "int4", num_bits=4, type="int", strategy="group",
                                                     group_size=32, symmetric=False),
    "ct-mxfp4": lambda: compressed_tensors("mxfp4-pack-quantized", "mxfp4", num_bits=4, type="float", strategy="group",
                                           group_size=32, scale_dtype=torch.uint8, zp_dtype=torch.uint8),
    "ct-mxfp8": lambda: compressed_tensors("mxfp8-quantized", "mxfp8", num_bits=8, type="float", strategy="group",
                                           group_size=32, scale_dtype=torch.uint8, zp_dtype=torch.uint8),
    "ct-nvfp4": lambda: compressed_tensors("nvfp4-pack-quantized", "nvfp4", num_bits=4, type="float",
                                           strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn,
                                           zp_dtype=torch.float8_e4m3fn),
    "modelopt-nvfp4": lambda: modelopt("NVFP4"),
    "modelopt-fp8": lambda: modelopt("FP8"),
    "modelopt-mxfp8": lambda: modelopt("MXFP8"),
    "comfyui-nvfp4": lambda: comfyui("nvfp4"),
    "comfyui-mxfp8": lambda: comfyui("mxfp8"),
    "comfyui-fp8": lambda: comfyui("float8_e4m3fn"),
    "comfyui-int8": lambda: comfyui("int8_tensorwise"),
    "mlx-affine-4": lambda: mlx("affine"),
    "mlx-affine-3": lambda: mlx("affine", 3),
    "mlx-mxfp4": lambda: mlx("mxfp4", 4, 32),
    "mlx-mxfp8": lambda: mlx("mxfp8", 8, 32),
    "mlx-nvfp4": lambda: mlx("nvfp4", 4, 16),
    "bitsandbytes-nf4": lambda: bitsandbytes("nf4", False),
    "bitsandbytes-nf4-nested": lambda: bitsandbytes("nf4", True),
    "bitsandbytes-fp4": lambda: bitsandbytes("fp4", False),
    "bitsandbytes-int8": bitsandbytes_int8,
    "comfyui-convrot-64": lambda: convrot(64),
    "comfyui-convrot-16": lambda: convrot(16),
    "ct-mxfp6": lambda: compressed_tensors("mxfp6-pack-quantized", "mxfp6", num_bits=6, type="float", strategy="group",
                                           group_size=32, scale_dtype=torch.uint8, zp_dtype=torch.uint8),
    **{f"gptq-{bits}": lambda bits=bits: gptq(bits) for bits in (2, 3, 4, 8)},
    **{f"gptq-v2-{bits}": lambda bits=bits: gptq(bits, 2) for bits in (2, 3, 4, 8)},
    "gptq-4-act-order": lambda: gptq(4, ordered=False),
    "awq": awq,
    "auto-round-gptq": lambda: gptq(4, method="auto-round"),
    "auto-round-awq": lambda: awq("auto-round"),
    "torchao-float8-row": lambda: torchao_float8(["PerRow"]),
    "torchao-float8-tensor": lambda: torchao_float8(["PerTensor"]),
    "torchao-float8-block": lambda: torchao_float8(["PerBlock", [8, 64]]),
    "torchao-int4": torchao_int4,
    "torchao-int8-row": lambda: torchao_integers("int8", ["PerAxis", 0]),
    "torchao-int4-group": lambda: torchao_integers("int4", ["PerGroup", 32]),
    "torchao-int3-group": lambda: torchao_integers("int3", ["PerGroup", 32]),
    "torchao-mxfp8": lambda: torchao_mx("float8_e4m3fn"),
    "torchao-mxfp8-swizzled": lambda: torchao_mx("float8_e4m3fn", swizzled=True),
    "torchao-mxfp4": lambda: torchao_mx("float4_e2m1fn_x2"),
    "torchao-nvfp4": lambda: torchao_nvfp4(two_levels=False),
    "torchao-nvfp4-swizzled": lambda: torchao_nvfp4(two_levels=True),
    "gguf": Gguf,
}


def content_of(path):
    """The bytes of a file; of safetensors the header is parsed, as the order of its metadata changes."""
    content = path.read_bytes()
    if path.suffix != ".safetensors":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def same_files(made, kept):
    """Reports whether two folders have the same files."""
    names = {path.name for path in made.iterdir()}
    return names == {path.name for path in kept.iterdir()} and all(
        content_of(made / name) == content_of(kept / name) for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) if given.check else given.folder
        for name, make in FIXTURES.items():
            if given.only and not name.startswith(given.only):
                continue
            try:
                make().write(folder / name)
            except (ImportError, AttributeError, TypeError, RuntimeError, ValueError) as error:
                failed.append(f"{name}: {type(error).__name__}: {error}")
                continue
            if given.check and not same_files(folder / name, HERE / name):
                failed.append(f"{name}: the tool makes other bytes now")
            print(name, flush=True)
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
