#!/usr/bin/env python3
"""Writes the checkpoints of this folder with PyTorch 2.13.0, and expected.json with what they hold.

generate.py            writes all files again
generate.py --check    fails unless PyTorch reads from valid/ what expected.json says
"""

import argparse
import collections
import datetime
import io
import json
import math
import pathlib
import pickle
import struct
import sys
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
# PyTorch's types as safetensors spells them.
TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
         "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
         "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "complex64": "C64", "float4_e2m1fn_x2": "F4"}


def checkpoints(torch):
    import numpy

    torch.manual_seed(0)
    base = torch.arange(24, dtype=torch.float32)
    matrix = base.reshape(4, 6)
    types = {name: torch.arange(64, dtype=torch.uint8).view(getattr(torch, name)).reshape(2, -1) for name in TYPES
             if name != "bool"}
    types["bool"] = torch.tensor([[True, False, True]])
    strided = {"transposed": matrix.t(), "columns": matrix[:, 1:4], "every_other": base[1::2], "tail": base[20:],
               "expanded": base[:3].unsqueeze(1).expand(3, 5), "permuted": base.reshape(2, 3, 4).permute(2, 0, 1),
               "tied": matrix, "tied_again": matrix, "empty": torch.empty(0, 3), "scalar": torch.tensor(1.5),
               "overlapping": base.as_strided((3, 4), (2, 1)), "transposed_halves": matrix.half().t()}
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    training = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": float("nan"),
                "history": [0.5, 0.25, float("inf")], "note": "é \"quoted\"", "none": None, "flags": (True, False),
                "dtype": torch.bfloat16, "device": torch.device("cuda:1"), "size": torch.Size([2, 3]), "big": 1 << 70,
                "negative": -(1 << 63) - 1, "bytes": b"\x00\xff", "set": {7}, "nested": {"a": [{"b": matrix}, 1]},
                "score": numpy.float64(0.75), "count": numpy.int32(-5), "array": numpy.arange(6.0).reshape(2, 3),
                "fortran": numpy.asfortranarray(numpy.arange(6, dtype=numpy.int16).reshape(2, 3)),
                "big_endian": numpy.arange(3, dtype=">i4"), "parameter": torch.nn.Parameter(torch.ones(2))}
    special = torch.tensor([[1, -2, 0, float("nan")], [-0.0, float("inf"), -3, 0.5], [4, -5, 6, -7]])
    numbers = torch.complex(special, special.flip(0))
    # PyTorch subtracts complex numbers from zero, which loses the signs of zero and NaN; the views have them.
    finite = torch.complex(base[1:13].reshape(3, 4), base[2:14].reshape(3, 4))
    views = {"imaginary": numbers.clone().conj().imag, "conjugated": numbers.clone().conj(),
             "negated": finite.clone()._neg_view(), "both": finite.clone().conj()._neg_view(),
             "strided": numbers.clone().conj()[1:, ::2].t(), "doubles": numbers.to(torch.complex128).conj().imag,
             "halves": torch.complex(special.half(), special.half()).conj().imag, "brains": special.nan_to_num(1.0, float("inf")).bfloat16()._neg_view(),
             "parameter": torch.nn.Parameter(numbers.clone().conj())}
    module = torch.nn.Module()
    module.kept = torch.nn.Buffer(matrix)
    state = collections.OrderedDict(w=matrix)
    state._metadata = {"": {"version": 1}}
    objects = {"w": matrix, "args": argparse.Namespace(lr=0.5, names=["a"]), "path": pathlib.PurePosixPath("a/b"),
               "days": [datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)], "class": argparse.Namespace,
               "dtype": numpy.dtype("<f4"), "module_kept": module.kept, "state": state, "complex": 1 + 2j}
    plain = {"w": matrix, "t": matrix.t(), "half": base[:3].half(), "step": 7}
    return {"every-type": types, "strided": strided, "state_dict": model.state_dict(), "training": training,
            "tensor": base[:4].clone(), "plain": plain, "views": views, "objects": objects}


def big_endian(archive):
    """The archive as a big-endian machine writes it: storages of float32 and float16."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(result, "w") as target:
        halves = {"archive/data/1"}
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "archive/byteorder":
                data = b"big"
            elif entry.filename.startswith("archive/data/"):
                width = 2 if entry.filename in halves else 4
                data = b"".join(data[i:i + width][::-1] for i in range(0, len(data), width))
            target.writestr(zipfile.ZipInfo(entry.filename), data)
    return result.getvalue()


def valid_files(torch):
    """NAME.pt: its bytes, and what it holds."""
    def saved(value, **options):
        buffer = io.BytesIO()
        torch.save(value, buffer, **options)
        return buffer.getvalue()

    values = checkpoints(torch)
    files = {name: (saved(value), value) for name, value in values.items()}
    stacked = {"_use_new_zipfile_serialization": False}
    for name in ("strided", "training", "plain", "views"):
        files[f"{name}-stacked"] = (saved(values[name], **stacked), values[name])
    for protocol in (3, 4, 5):
        files[f"training-protocol-{protocol}"] = (saved(values["training"], pickle_protocol=protocol), values["training"])
    torch.serialization.set_crc32_options(False)
    files["plain-without-checksums"] = (saved(values["plain"]), values["plain"])
    torch.serialization.set_crc32_options(True)
    files["plain-big-endian"] = (big_endian(saved(values["plain"])), values["plain"])
    return files


def expectation(torch, value):
    """The tensors by name, as [type, shape, bytes], and the rest as JSON."""
    import numpy

    tensors = {}

    def visit(value, path):
        if isinstance(value, (numpy.ndarray,)):
            value = torch.from_numpy(numpy.ascontiguousarray(value).astype(value.dtype.newbyteorder("=")))
        if isinstance(value, torch.Tensor):
            shape = list(value.shape)
            if value.dtype == torch.float4_e2m1fn_x2:
                shape[-1] *= 2
            data = value.detach().resolve_conj().resolve_neg().contiguous()
            data = b"" if value.numel() == 0 else data.reshape(-1).view(torch.uint8).numpy().tobytes()
            tensors[path] = [TYPES[str(value.dtype).removeprefix("torch.")], shape, data.hex()]
            return None, False
        if isinstance(value, dict):
            attributes = {"_metadata": value._metadata} if hasattr(value, "_metadata") else {}
            rest = {}
            for key, entry in [*value.items(), *attributes.items()]:
                item, is_plain = visit(entry, f"{path}.{key}" if path else str(key))
                if is_plain:
                    rest[str(key)] = item
            return rest, bool(rest) or not value
        if isinstance(value, (torch.dtype, torch.device)):
            return str(value), True
        if isinstance(value, numpy.dtype):
            return value.str, True
        if isinstance(value, (argparse.Namespace, pathlib.PurePath, datetime.date, complex, type)):
            made_by = value if isinstance(value, type) else type(value)
            return {"object": f"{made_by.__module__}.{made_by.__qualname__}"}, True
        if isinstance(value, (list, tuple, set)):
            items = [visit(entry, f"{path}.{i}" if path else str(i)) for i, entry in enumerate(value)]
            return [item if is_plain else None for item, is_plain in items], not items or any(is_plain for _, is_plain in items)
        if isinstance(value, numpy.generic):
            return value.item(), True
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity", True
        if isinstance(value, bytes):
            return {"bytes": value.hex()}, True
        return value, True

    rest, is_plain = visit(value, "")
    return {"tensors": tensors, "other": rest if is_plain else None}


class Stub:
    """Pickles as a call of `name` with `arguments`, and a state."""

    def __init__(self, name, arguments=(), state=None):
        self.name, self.arguments, self.state = name, arguments, state


class Pickler(pickle._Pickler):
    """Python's pickler in Python, which stubs and storages can steer."""

    def save(self, value, save_persistent_id=True):
        if not isinstance(value, Stub):
            return super().save(value, save_persistent_id)
        module, _, name = value.name.rpartition(".")
        self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        if value.arguments is not None:
            super().save(tuple(value.arguments))
            self.write(b"R")
        if value.state is not None:
            self.save(value.state)
            self.write(b"b")

    def persistent_id(self, value):
        return value.identifier if isinstance(value, StorageStub) else None


class StorageStub:
    def __init__(self, key="0", items=6, kind="torch.FloatStorage"):
        self.identifier = ("storage", Stub(kind, None), key, "cpu", items)


def pickled(value, protocol=2):
    buffer = io.BytesIO()
    Pickler(buffer, protocol).dump(value)
    return buffer.getvalue()


def tensor(storage=None, offset=0, size=(2, 3), strides=(3, 1), function="torch._utils._rebuild_tensor_v2", extra=()):
    storage = StorageStub() if storage is None else storage
    return Stub(function, (storage, offset, size, strides, False, Stub("collections.OrderedDict"), *extra))


def archive(data, storages=None, order=b"little", compression=zipfile.ZIP_STORED, extra=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        entries = [("data.pkl", data), ("byteorder", order), *extra]
        entries += [(f"data/{key}", content) for key, content in (storages or {"0": bytes(24)}).items()]
        for name, content in entries:
            info = zipfile.ZipInfo(f"archive/{name}")
            info.compress_type = compression
            file.writestr(info, content)
    return buffer.getvalue()


def stacked(root, keys=("0",), storages=struct.pack("<q", 6) + bytes(24), magic=0x1950A86A20F9469CFC6C, version=1001):
    system = {"protocol_version": version, "little_endian": True, "type_sizes": {}}
    return b"".join(map(pickled, (magic, version, system))) + root + pickled(list(keys)) + storages


def other_tensors(torch):
    """Tensors that torch.save writes in ways that are not read."""
    matrix = torch.arange(6.0).reshape(2, 3)
    values = {"quantized-tensor": torch.quantize_per_tensor(matrix, 0.5, 1, torch.quint8), "sparse-coo": matrix.to_sparse(),
              "sparse-csr": matrix.to_sparse_csr(), "nested": torch.nested.nested_tensor([matrix, matrix[0:1]]),
              "meta": matrix.to("meta"), "nested-jagged": torch.nested.nested_tensor([matrix[0], matrix[1]],
                                                                                     layout=torch.jagged)}
    files = {}
    for name, value in values.items():
        buffer = io.BytesIO()
        torch.save({"w": value}, buffer)
        files[f"unsupported--{name}"] = buffer.getvalue()
    return files


def invalid_files(torch):
    good = pickled({"w": tensor()})
    put = b"q\x00"
    # A list in a list in a list, each twice: 2^40 visits unless they are counted.
    twice = b"".join(b"0](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(40))
    bomb = b"\x80\x02]" + put + twice + b"."
    pickles = {
        "parse--empty-pickle": b"",
        "parse--pickle-without-stop": b"\x80\x02}",
        "parse--pickle-cut-off-in-a-text": b"\x80\x02X\xff\xff\xff\x7fab.",
        "parse--stack-underflow": b"\x80\x02R.",
        "parse--mark-missing": b"\x80\x02e.",
        "parse--two-values-remain": b"\x80\x02]].",
        "parse--memo-never-put": b"\x80\x02h\x07.",
        "parse--memo-far-away": b"\x80\x02j\xff\xff\xff\xff.",
        "parse--operation-unknown": b"\x80\x02\xff.",
        "parse--key-without-value": b"\x80\x02}(K\x01u.",
        "parse--append-to-a-dict": b"\x80\x02}K\x01a.",
        "parse--text-not-utf8": b"\x80\x02X\x01\x00\x00\x00\xff.",
        "parse--long-not-decimal": b"L12x\n.",
        "parse--frame-cut-off": b"\x80\x04\x95\x01\x00",
        "unsupported--protocol-6": b"\x80\x06N.",
        "unsupported--long-of-2-gib": b"\x80\x02\x8b\xff\xff\xff\x7fab.",
        "unsupported--bomb-of-lists": bomb,
        "unsupported--os-system": pickled(Stub("posix.system", ("true",))),
        "unsupported--builtins-eval": pickled(Stub("builtins.eval", ("1",))),
        "unsupported--builtins-getattr": pickled(Stub("builtins.getattr", ("a", "b"))),
        "unsupported--tensor-in-an-object": pickled({"args": Stub("argparse.Namespace", (), {"w": [tensor()]})}),
        "unsupported--storage-in-an-object": pickled({"args": Stub("torchao.Weight", (StorageStub(), 3))}),
        "unsupported--storage-as-data": pickled({"a": StorageStub()}),
        "unsupported--property-unknown": pickled(tensor(extra=({"other": True},))),
        "unsupported--property-false": pickled(tensor(extra=({"neg": False},))),
        "unsupported--conjugated-floats": pickled(tensor(extra=({"conj": True},))),
        "unsupported--negated-integers": pickled(tensor(StorageStub(kind="torch.IntStorage"), extra=({"neg": True},))),
        "parse--properties-not-a-dict": pickled(tensor(extra=(7,))),
        "unsupported--tensor-of-a-class": pickled(Stub("torch._tensor._rebuild_from_type_v2",
                                                       (Stub("torch._utils._rebuild_tensor_v2", None),
                                                        Stub("user.Weight", None), tensor().arguments, {}))),
        "unsupported--device-tensor-of-another-type": pickled(Stub("torch._utils._rebuild_device_tensor_from_cpu_tensor",
                                                                   (tensor(), Stub("torch.bfloat16", None), "xla", False))),
        "unsupported--rebuilt-by-the-future": pickled(Stub("torch._utils._rebuild_tensor_v9", (1,))),
        "unsupported--quantized": pickled(tensor(function="torch._utils._rebuild_qtensor")),
        "unsupported--sparse": pickled(Stub("torch._utils._rebuild_sparse_tensor", ())),
        "unsupported--extension-registry": b"\x80\x02\x82\x01.",
        "unsupported--instance": b"(iposix\nsystem\n.",
        "unsupported--state-of-a-list": b"\x80\x02]}b.",
        "parse--numpy-array-too-short": pickled(Stub("numpy._core.multiarray._reconstruct",
                                                     (Stub("numpy.ndarray", None), (0,), b"b"),
                                                     (1, (9,), Stub("numpy.dtype", ("f4", False, True)), False, b"abcd")), 3),
        "unsupported--tensor-with-attributes": pickled(Stub("torch._tensor._rebuild_from_type_v2",
                                                            (Stub("torch._utils._rebuild_tensor_v2", None),
                                                             Stub("torch.Tensor", None), tensor().arguments, {"a": 1}))),
        "unsupported--names-collide": pickled({"a.b": tensor(), "a": {"b": tensor()}}),
        "parse--storage-missing": pickled(tensor(StorageStub("7"))),
        "parse--storage-key-climbs-out": pickled(tensor(StorageStub("../../../etc/passwd"))),
        "parse--storage-key-is-a-number": pickled(tensor(StorageStub(0))),
        "parse--storage-too-short": pickled(tensor(StorageStub(items=7))),
        "parse--storage-items-overflow": pickled(tensor(StorageStub(items=(1 << 62) + 1))),
        "parse--storage-items-negative": pickled(tensor(StorageStub(items=-1))),
        "parse--storage-type-is-a-function": pickled(tensor(StorageStub(kind="torch.Size"))),
        "parse--offset-beyond-storage": pickled(tensor(offset=1)),
        "parse--offset-negative": pickled(tensor(offset=-1)),
        "parse--strides-beyond-storage": pickled(tensor(strides=(4, 1))),
        "parse--strides-negative": pickled(tensor(strides=(-3, 1))),
        "parse--strides-overflow": pickled(tensor(size=(1 << 40, 1), strides=(1 << 40, 1))),
        "parse--strides-of-another-rank": pickled(tensor(strides=(3, 1, 1))),
        "parse--shape-product-overflows": pickled(tensor(size=(1 << 40, 1 << 40), strides=(0, 0))),
        "parse--65-dimensions": pickled(tensor(size=(1,) * 65, strides=(1,) * 65)),
        "parse--untyped-tensor-without-type": pickled(tensor(StorageStub(items=24, kind="torch.storage.UntypedStorage"))),
        "unsupported--expanded-to-a-terabyte": pickled(tensor(size=(1 << 38,), strides=(0,))),
    }
    files = {name: archive(data) for name, data in pickles.items()} | other_tensors(torch)
    files["parse--byteorder-middle"] = archive(good, order=b"middle")
    files["parse--checksum-of-a-storage"] = archive(good, {"0": b"checksum" * 3}).replace(b"checksum" * 3, bytes(24))
    files["unsupported--compressed-storages"] = archive(good, compression=zipfile.ZIP_DEFLATED)
    files["unsupported--torchscript"] = archive(good, extra=[("constants.pkl", b"\x80\x02).")])
    files["unsupported--no-data-pkl"] = archive(good).replace(b"archive/data.pkl", b"archive/data.pkx")
    files["unsupported--tar"] = (bytes(257) + b"ustar").ljust(1024, b"\0")
    files["unsupported--pickle-of-something-else"] = pickled({"a": 1})
    files["unsupported--stacked-of-version-1000"] = stacked(good, version=1000)
    files["parse--stacked-key-missing"] = stacked(good, keys=())
    files["parse--stacked-key-twice"] = stacked(good, keys=("0", "0"), storages=(struct.pack("<q", 6) + bytes(24)) * 2)
    files["parse--stacked-storage-cut-off"] = stacked(good)[:-1]
    files["parse--stacked-storage-huge"] = stacked(good, storages=struct.pack("<q", 1 << 61) + bytes(24))
    files["parse--stacked-storage-shorter-than-its-tensor"] = stacked(good, storages=struct.pack("<q", 5) + bytes(24))
    files["parse--not-a-pickle"] = b"neither a pickle nor an archive"
    return files


def main():
    import torch

    assert torch.__version__.split("+")[0] == "2.13.0", torch.__version__
    files = valid_files(torch)
    expected = {name: expectation(torch, value) for name, (_, value) in files.items()}
    if "--check" in sys.argv:
        assert json.loads((FOLDER / "expected.json").read_text()) == json.loads(json.dumps(expected))
        for name in files:
            torch.serialization.set_default_load_endianness(None)
            loaded = torch.load(FOLDER / "valid" / f"{name}.pt", weights_only=False)
            assert json.dumps(expectation(torch, loaded)) == json.dumps(expected[name]), name
        assert {path.name for path in (FOLDER / "invalid").iterdir()} == {f"{name}.pt" for name in invalid_files(torch)}
        return
    for folder in ("valid", "invalid"):
        (FOLDER / folder).mkdir(exist_ok=True)
    for name, (data, _) in files.items():
        (FOLDER / "valid" / f"{name}.pt").write_bytes(data)
    for name, data in invalid_files(torch).items():
        (FOLDER / "invalid" / f"{name}.pt").write_bytes(data)
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in expected.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
