# SPDX-License-Identifier: Apache-2.0
"""Small quantized checkpoints in every spelling, written byte by byte, and their weights decoded one by one.

Each decoding is the formula of the tool, in float32 steps; docs/checkpoints.md names them.
"""

import json
import math
import random
import struct

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "U8": 1, "I8": 1, "I32": 4, "U32": 4, "I64": 8}


def f32(number):
    """Rounds once to float32; sums and products of float32 are exact enough in a double for that."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def mul(a, b):
    return f32(a * b)


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.nan
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))


def e8m0(code):
    return math.nan if code == 255 else 2.0 ** (code - 127)


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
NF4 = [f32(x) for x in (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)]
FP4 = [f32(x / 12) for x in (0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3)]


def e2m3(code):
    sign = -1.0 if code & 32 else 1.0
    exponent, mantissa = code >> 3 & 3, code & 7
    return sign * (mantissa / 8 if exponent == 0 else (8 + mantissa) / 8 * 2.0 ** (exponent - 1))


def to_bfloat16(number):
    if math.isnan(number):
        return 0x7FC0
    word = struct.unpack("<I", struct.pack("<f", number))[0]
    return (word + 0x7FFF + (word >> 16 & 1)) >> 16


def bfloat16(number):
    """A number as bfloat16 holds it."""
    return struct.unpack("<f", struct.pack("<I", to_bfloat16(number) << 16))[0]


def floats(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def halves(numbers):
    return struct.pack(f"<{len(numbers)}e", *numbers)


def brains(numbers):
    return struct.pack(f"<{len(numbers)}H", *map(to_bfloat16, numbers))


def words(numbers):
    return struct.pack(f"<{len(numbers)}I", *(number & 0xFFFFFFFF for number in numbers))


def stream(codes, bits, width=32):
    """A dense stream of bits, lowest first, in whole words."""
    whole = sum((code & (1 << bits) - 1) << i * bits for i, code in enumerate(codes))
    count = -(-len(codes) * bits // width)
    return [whole >> i * width & (1 << width) - 1 for i in range(count)]


def safetensors(tensors, metadata=None):
    """The bytes of a file; `tensors` is {name: (dtype, shape, bytes)}."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, shape, content) in tensors.items():
        assert len(content) == math.prod(shape) * SIZES[dtype], (name, dtype, shape, len(content))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


class Model:
    """Tensors, files beside them, and the weights that they decode to: {name: (shape, [float32])}."""

    def __init__(self, seed, config=None, metadata=None, files=()):
        self.random = random.Random(seed)
        self.tensors = {"model.norm.weight": ("BF16", [8], brains([1.5] * 8))}
        self.weights = {}
        self.config = config
        self.metadata = metadata
        self.files = dict(files)

    def bytes(self, count, without=()):
        """Random bytes; all 256 first if they fit."""
        every = [byte for byte in range(256) if byte not in without]
        return [every[i] if i < len(every) and count >= 256 else self.random.choice(every) for i in range(count)]

    def scales(self, count):
        return [f32(self.random.uniform(-2, 2) * 2.0 ** self.random.randint(-8, 3)) for _ in range(count)]

    def write(self, folder, shards=1):
        """Tensors go to shards in turn, so that codes and scales are apart."""
        folder.mkdir()
        config = {"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", **(self.config or {})}
        (folder / "config.json").write_text(json.dumps(config, indent=2))
        for name, text in self.files.items():
            (folder / name).write_text(text)
        names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        if shards == 1:
            names = ["model.safetensors"]
        parts = [{} for _ in names]
        for i, (name, tensor) in enumerate(self.tensors.items()):
            parts[i % shards][name] = tensor
        for name, part in zip(names, parts):
            (folder / name).write_bytes(safetensors(part, self.metadata or {"format": "pt"}))
        if shards > 1:
            size = sum(len(content) for _, _, content in self.tensors.values())
            index = {"metadata": {"total_size": size},
                     "weight_map": {name: names[i % shards] for i, name in enumerate(self.tensors)}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


def blocks(rows, columns, values, scales, block_rows, block_columns):
    """values[r][c] * scales[r // block_rows][c // block_columns]"""
    return [mul(values[r][c], scales[r // block_rows][c // block_columns])
            for r in range(rows) for c in range(columns)]


def grid(flat, columns):
    return [flat[i:i + columns] for i in range(0, len(flat), columns)]


def deepseek(v4=False):
    config = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                                      "activation_scheme": "dynamic", **({"scale_fmt": "ue8m0"} if v4 else {})}}
    model = Model(1, config)
    rows, columns = 192, 200  # blocks at the edges are smaller
    codes = model.bytes(rows * columns)
    name = "model.layers.0.kv_a_proj.weight"
    model.tensors[name] = ("F8_E4M3", [rows, columns], bytes(codes))
    if v4:
        stored = [120, 0, 254, 3]
        scales = [e8m0(code) for code in stored]
        model.tensors["model.layers.0.kv_a_proj.scale"] = ("F8_E8M0", [2, 2], bytes(stored))
    else:
        scales = model.scales(4)
        model.tensors[name + "_scale_inv"] = ("F32", [2, 2], floats(scales))
    values = grid([e4m3(code) for code in codes], columns)
    model.weights[name] = ([rows, columns], blocks(rows, columns, values, grid(scales, 2), 128, 128))
    if v4:
        packed, stored = model.bytes(16 * 32), model.bytes(16 * 2)
        model.tensors["model.layers.0.experts.0.w1.weight"] = (
            "I8", [16, 32], bytes(packed))
        model.tensors["model.layers.0.experts.0.w1.scale"] = ("F8_E8M0", [16, 2], bytes(stored))
        values = grid([E2M1[nibble] for byte in packed for nibble in (byte & 15, byte >> 4)], 64)
        model.weights["model.layers.0.experts.0.w1.weight"] = (
            [16, 64], blocks(16, 64, values, grid([e8m0(code) for code in stored], 2), 1, 32))
    return model


def transformers_mxfp8():
    model = Model(2, {"quantization_config": {"quant_method": "mxfp8", "weight_block_size": [1, 32]}})
    codes, stored = model.bytes(128 * 64), model.bytes(128 * 2)
    model.tensors["a.weight"] = ("F8_E4M3", [128, 64], bytes(codes))
    model.tensors["a.weight_scale_inv"] = ("U8", [128, 2], bytes(stored))
    model.weights["a.weight"] = ([128, 64], blocks(128, 64, grid([e4m3(code) for code in codes], 64),
                                                   grid([e8m0(code) for code in stored], 2), 1, 32))
    return model


def groups(form, **weights):
    return {"quantization_config": {
        "quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}}


def compressed_float8(strategy):
    more = {"block_structure": [128, 128]} if strategy == "block" else {}
    model = Model(3, groups("float-quantized", num_bits=8, type="float", strategy=strategy, **more))
    rows, columns = 130, 40
    codes = model.bytes(rows * columns)
    block_rows, block_columns, shape = {"tensor": (rows, columns, [1]), "channel": (1, columns, [rows, 1]),
                                        "block": (128, 128, [2, 1])}[strategy]
    scales = [bfloat16(scale) for scale in model.scales(math.prod(shape))]
    model.tensors["a.weight"] = ("F8_E4M3", [rows, columns], bytes(codes))
    model.tensors["a.weight_scale"] = ("BF16", shape, brains(scales))
    model.weights["a.weight"] = ([rows, columns], blocks(rows, columns, grid([e4m3(code) for code in codes], columns),
                                                         grid(scales, 1), block_rows, block_columns))
    return model


def compressed_int8():
    model = Model(4, groups("int-quantized", num_bits=8, type="int", strategy="channel"))
    codes, scales = model.bytes(32 * 24), [bfloat16(scale) for scale in model.scales(32)]
    model.tensors["a.weight"] = ("I8", [32, 24], bytes(codes))
    model.tensors["a.weight_scale"] = ("BF16", [32, 1], brains(scales))
    values = grid([float(code - 256 if code > 127 else code) for code in codes], 24)
    model.weights["a.weight"] = ([32, 24], blocks(32, 24, values, grid(scales, 1), 1, 24))
    return model


def compressed_int4(symmetric=True, bits=4, columns=64):
    model = Model(5, groups("pack-quantized", num_bits=bits, type="int", strategy="group", group_size=32,
                            symmetric=symmetric))
    rows = 16
    of_row = -(-columns // 32)
    codes = [model.random.randrange(1 << bits) for _ in range(rows * columns)]
    zeros = [1 << bits - 1] * (rows * of_row)
    if not symmetric:
        zeros = [model.random.randrange(1 << bits) for _ in zeros]
    scales = [bfloat16(scale) for scale in model.scales(rows * of_row)]
    packed = [word for row in grid(codes, columns) for word in stream(row, bits)]
    model.tensors["a.weight_packed"] = ("I32", [rows, len(packed) // rows], words(packed))
    model.tensors["a.weight_scale"] = ("BF16", [rows, of_row], brains(scales))
    model.tensors["a.weight_shape"] = ("I64", [2], struct.pack("<2q", rows, columns))
    if not symmetric:
        down = [stream([zeros[r * of_row + g] for r in range(rows)], bits) for g in range(of_row)]
        model.tensors["a.weight_zero_point"] = (
            "I32", [len(down[0]), of_row], words([down[g][i] for i in range(len(down[0])) for g in range(of_row)]))
    values = [[float(codes[r * columns + c] - zeros[r * of_row + c // 32]) for c in range(columns)]
              for r in range(rows)]
    model.weights["a.weight"] = ([rows, columns], blocks(rows, columns, values, grid(scales, of_row), 1, 32))
    return model


def compressed_mx(bits):
    form = {4: "mxfp4-pack-quantized", 6: "mxfp6-pack-quantized"}[bits]
    model = Model(6, groups(form, num_bits=bits, type="float", strategy="group", group_size=32))
    codes, stored = [model.random.randrange(1 << bits) for _ in range(128 * 64)], model.bytes(128 * 2)
    packed = [byte for row in grid(codes, 64) for byte in stream(row, bits, 8)]
    model.tensors["a.weight_packed"] = ("U8", [128, 64 * bits // 8], bytes(packed))
    model.tensors["a.weight_scale"] = ("U8", [128, 2], bytes(stored))
    value = E2M1.__getitem__ if bits == 4 else e2m3
    model.weights["a.weight"] = ([128, 64], blocks(128, 64, grid([value(code) for code in codes], 64),
                                                   grid([e8m0(code) for code in stored], 2), 1, 32))
    return model


def nvfp4(spelling):
    """The same codes three times: a divisor, a factor, and tiles with the high nibble first."""
    rows, columns = 130, 96
    metadata = files = config = None
    if spelling == "compressed-tensors":
        config = groups("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16)
    elif spelling == "modelopt":
        files = {"hf_quant_config.json": json.dumps({
            "producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16,
                                                                "exclude_modules": ["lm_head"]}})}
    else:
        metadata = {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": {"a": {"format": "nvfp4"}}})}
    model = Model(7, config, metadata, files or {})
    codes = [model.random.randrange(16) for _ in range(rows * columns)]
    stored = model.bytes(rows * columns // 16, without=(0x7F, 0xFF))
    factor = 0.0123
    pairs = list(zip(codes[::2], codes[1::2]))
    if spelling == "comfyui":
        tiles = bytearray(-(-rows // 128) * 128 * 8)
        for r in range(rows):
            for c in range(columns // 16):
                tile = (r // 128) * 2 + c // 4
                tiles[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = stored[r * (columns // 16) + c]
        model.tensors["a.weight"] = ("U8", [rows, columns // 2], bytes(high << 4 | low for high, low in pairs))
        model.tensors["a.weight_scale"] = ("F8_E4M3", [256, 8], bytes(tiles))
        model.tensors["a.weight_scale_2"] = ("F32", [], floats([factor]))
    else:
        packed = bytes(low | high << 4 for low, high in pairs)
        modelopt = spelling == "modelopt"
        model.tensors["a.weight" if modelopt else "a.weight_packed"] = ("U8", [rows, columns // 2], packed)
        model.tensors["a.weight_scale"] = ("F8_E4M3", [rows, columns // 16], bytes(stored))
        if modelopt:
            model.tensors["a.weight_scale_2"] = ("F32", [], floats([factor]))
            model.tensors["a.input_scale"] = ("F32", [], floats([0.5]))
        else:
            model.tensors["a.weight_global_scale"] = ("F32", [1], floats([1 / factor]))
    divisor = f32(1 / factor)
    scales = [f32(e4m3(code) / divisor) if spelling == "compressed-tensors" else mul(e4m3(code), f32(factor))
              for code in stored]
    values = [abs(E2M1[code]) if code == 8 and spelling == "modelopt" else E2M1[code] for code in codes]
    model.weights["a.weight"] = ([rows, columns], blocks(rows, columns, grid(values, columns),
                                                         grid(scales, columns // 16), 1, 16))
    return model


def modelopt_float8():
    config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}}
    model = Model(8, config)
    codes = model.bytes(24 * 32)
    model.tensors["a.weight"] = ("F8_E4M3", [24, 32], bytes(codes))
    model.tensors["a.weight_scale"] = ("F32", [], floats([0.037]))
    model.tensors["a.k_scale"] = ("F32", [], floats([0.037]))
    model.weights["a.weight"] = ([24, 32], [mul(e4m3(code), f32(0.037)) for code in codes])
    return model


def gpt_oss():
    model = Model(9, {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}})
    experts, rows, count = 3, 40, 3
    packed, stored = model.bytes(experts * rows * count * 16), model.bytes(experts * rows * count)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    model.tensors[name + "_blocks"] = ("U8", [experts, rows, count, 16], bytes(packed))
    model.tensors[name + "_scales"] = ("U8", [experts, rows, count], bytes(stored))
    values = [E2M1[nibble] for byte in packed for nibble in (byte & 15, byte >> 4)]
    columns = count * 32
    model.weights[name] = ([experts, columns, rows], [
        mul(values[(e * rows + n) * columns + k], e8m0(stored[(e * rows + n) * count + k // 32]))
        for e in range(experts) for k in range(columns) for n in range(rows)])
    return model


def comfyui_float8(old):
    metadata = {} if old else {"_quantization_metadata": json.dumps({"layers": {"a": {"format": "float8_e4m3fn"}}})}
    model = Model(10, None, metadata)
    codes = model.bytes(24 * 32)
    model.tensors["a.weight"] = ("F8_E4M3", [24, 32], bytes(codes))
    model.tensors["a.scale_weight" if old else "a.weight_scale"] = ("F32", [], floats([0.037]))
    if old:
        model.tensors["scaled_fp8"] = ("F8_E4M3", [0], b"")
    model.weights["a.weight"] = ([24, 32], [mul(e4m3(code), f32(0.037)) for code in codes])
    return model


def comfyui_int8():
    model = Model(11)
    text = json.dumps({"format": "int8_tensorwise"}).encode()
    codes, scales = model.bytes(16 * 32), model.scales(16)
    model.tensors["a.weight"] = ("I8", [16, 32], bytes(codes))
    model.tensors["a.weight_scale"] = ("F32", [16, 1], floats(scales))
    model.tensors["a.comfy_quant"] = ("U8", [len(text)], text)
    values = grid([float(code - 256 if code > 127 else code) for code in codes], 32)
    model.weights["a.weight"] = ([16, 32], blocks(16, 32, values, grid(scales, 1), 1, 32))
    return model


def gptq(bits=4, version=1, ordered=True):
    config = {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": 32,
                                      "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}}
    model = Model(12, config)
    rows, columns = 32, 96  # of the weight
    count = columns // 32
    codes = [[model.random.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]
    zeros = [[model.random.randrange(1 << bits) for _ in range(count)] for _ in range(rows)]
    scales = [[model.random.uniform(-1, 1) for _ in range(count)] for _ in range(rows)]
    scales = [[struct.unpack("<e", struct.pack("<e", scale))[0] for scale in row] for row in scales]
    index = [column // 32 for column in range(columns)]
    if not ordered:
        model.random.shuffle(index)
    down = [stream(row, bits) for row in codes]
    model.tensors["a.qweight"] = ("I32", [len(down[0]), rows],
                                  words([down[r][i] for i in range(len(down[0])) for r in range(rows)]))
    across = [stream([zeros[r][g] for r in range(rows)], bits) for g in range(count)]
    model.tensors["a.qzeros"] = ("I32", [count, len(across[0])], words([word for row in across for word in row]))
    model.tensors["a.scales"] = ("F16", [count, rows], halves([scales[r][g] for g in range(count) for r in range(rows)]))
    model.tensors["a.g_idx"] = ("I32", [columns], words(index))
    model.weights["a.weight"] = ([rows, columns], [
        mul(float(codes[r][c] - zeros[r][index[c]] - (version == 1)), scales[r][index[c]])
        for r in range(rows) for c in range(columns)])
    return model


def awq():
    model = Model(13, {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}})
    rows, columns = 32, 64
    codes = [[model.random.randrange(16) for _ in range(columns)] for _ in range(rows)]
    zeros = [[model.random.randrange(16) for _ in range(2)] for _ in range(rows)]
    scales = [[struct.unpack("<e", struct.pack("<e", model.random.uniform(-1, 1)))[0] for _ in range(2)]
              for _ in range(rows)]
    order = (0, 2, 4, 6, 1, 3, 5, 7)

    def packed(number):
        return words([sum(number(word * 8 + order[i]) << 4 * i for i in range(8)) for word in range(rows // 8)])

    model.tensors["a.qweight"] = ("I32", [columns, rows // 8],
                                  b"".join(packed(lambda r, c=c: codes[r][c]) for c in range(columns)))
    model.tensors["a.qzeros"] = ("I32", [2, rows // 8], b"".join(packed(lambda r, g=g: zeros[r][g]) for g in range(2)))
    model.tensors["a.scales"] = ("F16", [2, rows], halves([scales[r][g] for g in range(2) for r in range(rows)]))
    model.weights["a.weight"] = ([rows, columns], [
        mul(float(codes[r][c] - zeros[r][c // 32]), scales[r][c // 32]) for r in range(rows) for c in range(columns)])
    return model


def bitsandbytes(kind="nf4", nested=True):
    model = Model(14, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}})
    table = NF4 if kind == "nf4" else FP4
    rows, columns, block = 7, 192, 64
    count = rows * columns // block
    codes = [model.random.randrange(16) for _ in range(rows * columns)]
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, columns]}
    model.tensors["a.weight"] = ("U8", [rows * columns // 2, 1],
                                 bytes(high << 4 | low for high, low in zip(codes[::2], codes[1::2])))
    if nested:
        numbers, outer, offset = model.scales(256), model.scales(1), 0.0371
        stored = model.bytes(count)
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=offset)
        model.tensors["a.weight.absmax"] = ("U8", [count], bytes(stored))
        model.tensors["a.weight.nested_absmax"] = ("F32", [1], floats(outer))
        model.tensors["a.weight.nested_quant_map"] = ("F32", [256], floats(numbers))
        scales = [f32(mul(numbers[code], outer[0]) + f32(offset)) for code in stored]
    else:
        scales = [abs(scale) for scale in model.scales(count)]
        model.tensors["a.weight.absmax"] = ("F32", [count], floats(scales))
    model.tensors["a.weight.quant_map"] = ("F32", [16], floats(table))
    text = json.dumps(state).encode()
    model.tensors["a.weight.quant_state.bitsandbytes__" + kind] = ("U8", [len(text)], text)
    model.weights["a.weight"] = ([rows, columns], [mul(table[code], scales[i // block]) for i, code in enumerate(codes)])
    return model


def bitsandbytes_int8():
    model = Model(15, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}})
    codes, scales = model.bytes(16 * 32), [abs(scale) for scale in model.scales(16)]
    model.tensors["a.weight"] = ("I8", [16, 32], bytes(codes))
    model.tensors["a.SCB"] = ("F32", [16], floats(scales))
    model.tensors["a.weight_format"] = ("U8", [], b"\0")
    values = [float(code - 256 if code > 127 else code) for code in codes]
    model.weights["a.weight"] = ([16, 32], [mul(mul(value, scales[i // 32]), f32(7.874015718698502e-3))
                                            for i, value in enumerate(values)])
    return model


def mlx(bits=4, metal=False):
    section = {"group_size": 32, "bits": bits}
    model = Model(16, {"quantization_config": {"quant_method": "metal", **section}} if metal else
                  {"quantization": section})
    rows, columns = 16, 64
    codes = [model.random.randrange(1 << bits) for _ in range(rows * columns)]
    scales = [bfloat16(scale) for scale in model.scales(rows * 2)]
    biases = [bfloat16(scale) for scale in model.scales(rows * 2)]
    packed = [word for row in grid(codes, columns) for word in stream(row, bits)]
    model.tensors["a.weight"] = ("U32", [rows, len(packed) // rows], words(packed))
    model.tensors["a.scales"] = ("BF16", [rows, 2], brains(scales))
    model.tensors["a.qbiases" if metal else "a.biases"] = ("BF16", [rows, 2], brains(biases))
    model.weights["a.weight"] = ([rows, columns], [
        f32(mul(float(code), scales[i // 32]) + biases[i // 32]) for i, code in enumerate(codes)])
    return model


def mlx_mx(mode):
    eight = mode == "mxfp8"
    block = 16 if mode == "nvfp4" else 32
    model = Model(17, {"quantization": {"group_size": block, "bits": 8 if eight else 4, "mode": mode}})
    rows, columns = 64, 64
    codes = [model.random.randrange(256 if eight else 16) for _ in range(rows * columns)]
    stored = model.bytes(rows * columns // block)
    packed = [word for row in grid(codes, columns) for word in stream(row, 8 if eight else 4)]
    model.tensors["a.weight"] = ("U32", [rows, len(packed) // rows], words(packed))
    model.tensors["a.scales"] = ("U8", [rows, columns // block], bytes(stored))
    value = e4m3 if eight else E2M1.__getitem__
    scale = e4m3 if mode == "nvfp4" else e8m0
    model.weights["a.weight"] = ([rows, columns], blocks(
        rows, columns, grid([value(code) for code in codes], columns),
        grid([scale(code) for code in stored], columns // block), 1, block))
    return model


# Every spelling, by what inspect says: (spelling, scheme).
MODELS = {
    "deepseek": (deepseek, "deepseek", "fp8-block"),
    "deepseek-v4": (lambda: deepseek(v4=True), "deepseek", "mxfp4"),
    "mxfp8": (transformers_mxfp8, "transformers-mxfp8", "mxfp8"),
    "ct-fp8-tensor": (lambda: compressed_float8("tensor"), "compressed-tensors", "fp8-tensor"),
    "ct-fp8-channel": (lambda: compressed_float8("channel"), "compressed-tensors", "fp8-channel"),
    "ct-fp8-block": (lambda: compressed_float8("block"), "compressed-tensors", "fp8-block"),
    "ct-int8": (compressed_int8, "compressed-tensors", "int8-channel"),
    "ct-int4": (compressed_int4, "compressed-tensors", "int4-group"),
    "ct-int4-asymmetric": (lambda: compressed_int4(symmetric=False), "compressed-tensors", "int4-group"),
    "ct-int4-odd": (lambda: compressed_int4(columns=61), "compressed-tensors", "int4-group"),
    "ct-int3": (lambda: compressed_int4(bits=3), "compressed-tensors", "int3-group"),
    "ct-mxfp4": (lambda: compressed_mx(4), "compressed-tensors", "mxfp4"),
    "ct-mxfp6": (lambda: compressed_mx(6), "compressed-tensors", "mxfp6"),
    "ct-nvfp4": (lambda: nvfp4("compressed-tensors"), "compressed-tensors", "nvfp4"),
    "modelopt-nvfp4": (lambda: nvfp4("modelopt"), "modelopt", "nvfp4"),
    "comfyui-nvfp4": (lambda: nvfp4("comfyui"), "comfyui", "nvfp4"),
    "modelopt-fp8": (modelopt_float8, "modelopt", "fp8-tensor"),
    "gpt-oss": (gpt_oss, "gpt-oss", "mxfp4"),
    "comfyui-fp8": (lambda: comfyui_float8(False), "comfyui", "fp8-tensor"),
    "comfyui-old-fp8": (lambda: comfyui_float8(True), "comfyui", "fp8-tensor"),
    "comfyui-int8": (comfyui_int8, "comfyui", "int8-channel"),
    "gptq": (gptq, "gptq", "gptq-4bit"),
    "gptq-v2": (lambda: gptq(version=2), "gptq", "gptq-4bit"),
    "gptq-2bit": (lambda: gptq(bits=2), "gptq", "gptq-2bit"),
    "gptq-3bit": (lambda: gptq(bits=3), "gptq", "gptq-3bit"),
    "gptq-8bit": (lambda: gptq(bits=8), "gptq", "gptq-8bit"),
    "gptq-order": (lambda: gptq(ordered=False), "gptq", "gptq-4bit"),
    "awq": (awq, "awq", "awq-4bit"),
    "nf4": (bitsandbytes, "bitsandbytes", "nf4"),
    "nf4-plain": (lambda: bitsandbytes(nested=False), "bitsandbytes", "nf4"),
    "fp4": (lambda: bitsandbytes("fp4"), "bitsandbytes", "fp4"),
    "bnb-int8": (bitsandbytes_int8, "bitsandbytes", "int8-channel"),
    "mlx": (mlx, "mlx", "int4-affine"),
    "mlx-3bit": (lambda: mlx(3), "mlx", "int3-affine"),
    "mlx-8bit": (lambda: mlx(8), "mlx", "int8-affine"),
    "metal": (lambda: mlx(metal=True), "mlx", "int4-affine"),
    "mlx-mxfp4": (lambda: mlx_mx("mxfp4"), "mlx", "mxfp4"),
    "mlx-mxfp8": (lambda: mlx_mx("mxfp8"), "mlx", "mxfp8"),
    "mlx-nvfp4": (lambda: mlx_mx("nvfp4"), "mlx", "nvfp4"),
}
