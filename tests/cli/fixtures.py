# SPDX-License-Identifier: Apache-2.0
"""Small files for the cases: written byte by byte, so that nothing under test helps to make them."""

import io
import json
import struct
import zipfile


def npy(descriptor, shape, data):
    header = f"{{'descr': {descriptor!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii") + data


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def float32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def float16(*values):
    return struct.pack(f"<{len(values)}e", *values)


def bfloat16(*values):
    """Only for values that bfloat16 holds exactly."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def message(*fields):
    """A protobuf message of (number, value): integers as varints, text and messages with their lengths."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        content = value.encode("utf-8") if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(content)) + content

    return b"".join(field(number, value) for number, value in fields)


FLOAT, FLOAT16 = 1, 10  # TensorProto.DataType

TENSOR_PICKLE = (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
                 b"X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89NtR")


def checkpoint(operations):
    """As torch.save writes it: a pickle of `operations`, and a storage of 6 float32."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in (("data.pkl", b"\x80\x02" + operations + b"."), ("byteorder", b"little"),
                           ("data/0", struct.pack("<6f", *range(6)))):
            archive.writestr(zipfile.ZipInfo("model/" + name), data)
    return buffer.getvalue()


def gguf(tensors, file_type=None, original_shapes=None, numbers=None):
    """(name, dimensions from the fastest one, ggml's type, data) and two or three keys of metadata; `original_shapes` as
    ComfyUI's converter writes them; `numbers` are more keys."""
    def text(value):
        return struct.pack("<Q", len(value)) + value

    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors),
                                   (2 if file_type is None else 3) + len(original_shapes or {}) + len(numbers or {}))
    header += text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    header += text(b"llama.rope.freq_base") + struct.pack("<If", 6, 10000)
    if file_type is not None:
        header += text(b"general.file_type") + struct.pack("<II", 4, file_type)
    for key, number in (numbers or {}).items():
        header += text(key.encode()) + struct.pack("<II", 4, number)
    for name, shape in (original_shapes or {}).items():
        header += text(b"comfy.gguf.orig_shape." + name.encode())
        header += struct.pack(f"<IIQ{len(shape)}i", 9, 5, len(shape), *shape)
    data = b""
    for name, dimensions, kind, content in tensors:
        header += text(name if isinstance(name, bytes) else name.encode()) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, len(data))
        data += content + bytes(-len(content) % 32)
    return header + bytes(-len(header) % 32) + data


CONVERT_IR = b"""\
<?xml version="1.0"?>
<net name="convert" version="11">
    <layers>
        <layer id="0" name="x" type="Parameter" version="opset1">
            <data shape="?" element_type="f32"/>
            <output><port id="0" precision="FP32" names="x"><dim>-1</dim></port></output>
        </layer>
        <layer id="1" name="to_half" type="Convert" version="opset1">
            <data destination_type="f16"/>
            <input><port id="0" precision="FP32"><dim>-1</dim></port></input>
            <output><port id="1" precision="FP16" names="half"><dim>-1</dim></port></output>
        </layer>
        <layer id="2" name="result" type="Result" version="opset1">
            <input><port id="0" precision="FP16"><dim>-1</dim></port></input>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
    </edges>
</net>
"""

CAST_MDF = b"""\
model:
    format: ModECI MDF v0.4
    graphs:
        main:
            nodes:
                Cast_1:
                    input_ports:
                        x: {type: float32}
                    parameters:
                        to: {value: 10}
                        onnx_Cast_1: {function: "onnx::Cast", args: {input: x}}
                    output_ports:
                        half: {value: onnx_Cast_1}
"""


def onnx_node(op_type, inputs, output, name, **integers):
    attributes = [(5, message((1, key), (3, value), (20, 2))) for key, value in integers.items()]
    return message(*((1, value) for value in inputs), (2, output), (3, name), (4, op_type), *attributes)


def onnx_model(nodes, inputs, outputs, opset=25):
    """inputs and outputs: {name: type}, of one dimension of any length."""
    def value(name, dtype):
        shape = message((1, message((2, "n"))))
        return message((1, name), (2, message((1, message((1, dtype), (2, shape))))))

    graph = message(*((1, node) for node in nodes), (2, "graph"), *((11, value(*item)) for item in inputs.items()),
                    *((12, value(*item)) for item in outputs.items()))
    return message((1, 10), (7, graph), (8, message((2, opset))))


MODEL = [
    ("embed.weight", "F32", [4, 8], float32(*[(i - 16) / 7 for i in range(32)])),
    ("layer.0.norm.weight", "F32", [8], float32(*[1.0] * 8)),
    ("layer.0.mlp.weight", "F16", [2, 4], float16(0.5, -2.25, 1e-7, 300, -65504, 0.1, 0, -0.0)),
    ("layer.0.mlp.bias", "BF16", [4], bfloat16(1.5, -3.0, 1e30, 2.0**-120)),
    ("step", "I64", [], struct.pack("<q", 12345)),
    ("mask", "BOOL", [3], bytes([1, 0, 1])),
]


def write_all(folder):
    def write(name, content):
        (folder / name).write_bytes(content)

    nan, inf = float("nan"), float("inf")
    weights = npy("<f4", (2, 3), float32(0.1, -1.5, 65536.0, 1e-9, nan, -inf))
    write("weights.npy", weights)
    write("exact.npy", npy("<f4", (4,), float32(0.5, -2.0, 0.0, 1.0)))
    write("pixels.npy", npy("<f4", (5,), float32(0.0, 0.25, 0.5, 1.0, 300.0)))
    write("bytes.npy", npy("|u1", (3,), bytes([0, 127, 255])))
    write("wraps.npy", npy("<f4", (1,), float32(255.0)))  # to int8 with an error just larger than the number
    write("opaque.npy", npy("|V1", (3,), bytes([0x38, 0x7E, 0x7F])))
    write("values.bin", bfloat16(1.0, -2.5, 0.0, 3.0))
    write("model.safetensors", safetensors(MODEL, {"format": "pt"}))
    write("hostile_name.safetensors", safetensors([("a\n\x1b[31mb", "F32", [1], float32(1.0))]))

    write("convert.xml", CONVERT_IR)
    write("cast.yaml", CAST_MDF)
    cast = onnx_node("Cast", ["x"], "half", "to_half", to=FLOAT16)
    write("cast.onnx", onnx_model([cast], {"x": FLOAT}, {"half": FLOAT16}))
    write("castlike.onnx", onnx_model([onnx_node("CastLike", ["x", "like"], "y", "same")], {"x": FLOAT, "like": 0}, {"y": 0}))
    write("relu.onnx", onnx_model([cast, onnx_node("Relu", ["half"], "y", "act")], {"x": FLOAT}, {"y": FLOAT16}))
    write("old.onnx", onnx_model([onnx_node("Neg", ["x"], "y", "")], {"x": FLOAT}, {"y": FLOAT}, opset=12))
    write("names.onnx", onnx_model([onnx_node("Identity", ["x"], name, "") for name in ("../up", "a\n\x1b[31m", ".a")],
                                   {"x": FLOAT}, {"../up": FLOAT, "a\n\x1b[31m": FLOAT, ".a": FLOAT}))

    (folder / "kinds").mkdir()
    small = [("embed.weight", "F32", [4, 6], float32(*[(i - 12) / 100 for i in range(24)])),
             ("head.weight", "F32", [8, 3], float32(*[(i - 12) / 20 for i in range(24)]))]
    write("kinds/embed.safetensors", safetensors(small))
    write("kinds/scaled_codes.safetensors", safetensors([
        ("mlp.weight", "F8_E4M3", [2, 2], bytes([0x38, 0x40, 0xB8, 0x00])),
        ("mlp.weight_scale_inv", "F32", [1, 1], float32(0.25)),
        ("norm.weight", "F32", [2], float32(1.0, 1.0)),
    ]))
    write("kinds/many.safetensors", safetensors(
        [(f"layer.{i}.weight", "F32", [i + 1], float32(*range(i + 1))) for i in range(24)]
        + [(f"layer.{i}.norm", "BF16", [2], bfloat16(1.0, 2.0)) for i in range(24)]))
    with zipfile.ZipFile(folder / "kinds/mixed.npz", "w") as archive:
        for name, content in (("known", npy("<f4", (2,), float32(1.0, 2.0))),
                              ("opaque", npy("|V1", (3,), bytes([0x38, 0x7E, 0x7F])))):
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content)
    write("llama.gguf", gguf([("token_embd.weight", [3, 4], 0, struct.pack("<12f", *range(12))),
                              ("blk.0.attn_q.weight", [32, 2], 8, bytes(range(68)))]))
    write("kinds/pickle.bin", b"\x80\x04\x95")
    write("plain.pt", checkpoint(b"}(X\x04\x00\x00\x00stepK\x07X\x01\x00\x00\x00w" + TENSOR_PICKLE + b"u"))
    write("evil.pt", checkpoint(b"cposix\nsystem\n(X\x04\x00\x00\x00truetR"))
    write("kinds/foreign.pt", checkpoint(b"}(X\x04\x00\x00\x00argscargparse\nNamespace\n)\x81}X\x02\x00\x00\x00lrK\x07sb"
                                         b"X\x01\x00\x00\x00w" + TENSOR_PICKLE + b"u"))
    write("kinds/pointer.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    write("kinds/download.safetensors", b"<!doctype html>\n<html><title>Not found</title></html>\n")
    write("kinds/model.safetensors.index.json", b'{"weight_map": {}}\n')

    write("truncated.npy", weights[:-1])
    write("objects.npy", npy("|O", (1,), b"\x80\x04N."))
    write("long_header.safetensors", struct.pack("<Q", 1 << 40) + b"{}")
    write("overlap.safetensors", safetensors([("a", "F32", [1], float32(1.0))]).replace(b"[0,4]", b"[0,8]"))
    write("unknown.dat", b"what is this\n")
    write("rules.txt", b"# keep the norms\nnorm=float32\n\n  mlp\\.weight = float8_e5m2\n".replace(b" = ", b"="))
    write("bad_rules.txt", b"norm=float32\nmlp: float16\n")
