# SPDX-License-Identifier: Apache-2.0
"""Archives of NumPy are read, and archives of tcast are read by NumPy and by Python's zipfile."""

import io
import json
import os
import random
import struct
import subprocess
import zipfile
import zlib

import numpy as np
import pytest
from array_files import ML_TYPES, NUMBER_TYPES, NUMPY_TYPES, assert_same, convert, dtype_of, refuse, sample
from peak_memory import wait_and_measure


def load(path, names):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    with np.load(path) as arrays:
        return {key: arrays[key].view(dtype_of(names[key])) if names[key] in ML_TYPES else arrays[key] for key in arrays}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_numpy_type(run_tcast, tmp_path, save):
    arrays = {f"layer/{name}": sample(name) for name in NUMPY_TYPES}
    arrays["fortran"] = np.asfortranarray(sample("int32", (6, 7, 8)))
    arrays["text"] = np.array(["a", "é", ""])
    save(tmp_path / "in.npz", **arrays)
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--to", "float32", "--exclude", ".*", "--verify")
    with np.load(tmp_path / "out.npz") as read:
        assert list(read) == list(arrays)
        for key, array in arrays.items():
            assert_same(read[key], array)


@pytest.mark.parametrize("save, method", [(np.savez, zipfile.ZIP_STORED), (np.savez_compressed, zipfile.ZIP_DEFLATED)])
def test_compression_is_kept(run_tcast, tmp_path, save, method):
    save(tmp_path / "in.npz", a=np.zeros((300, 300), np.float32), b=np.ones(3))
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--to", "float16")
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert [entry.compress_type for entry in archive.infolist()] == [method, method]
    assert_same(np.load(tmp_path / "out.npz")["a"], np.zeros((300, 300), np.float16))


def test_types_that_numpy_lacks_are_known_again(run_tcast, tmp_path):
    names = {name: name for name in NUMBER_TYPES if name != "bool"}
    array = np.array([1, 2, 4], np.float32)
    np.savez(tmp_path / "in.npz", **{name: array for name in names})
    rules = [argument for name in names for argument in ("--rule", f"^{name}$={name}")]
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", *rules, "--out-of-range", "wrap", "--verify")
    for name, narrow in load(tmp_path / "out.npz", names).items():
        assert_same(narrow, array.astype(dtype_of(name)))
    convert(run_tcast, tmp_path / "out.npz", tmp_path / "back.npz", "--rule", ".*=float64")
    assert np.load(tmp_path / "back.npz")["float8_e8m0fnu"].tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("name", ML_TYPES)
def test_from_says_what_numpy_does_not(run_tcast, tmp_path, name):
    array = sample(name)
    np.savez(tmp_path / "in.npz", a=array, b=np.arange(3.0))
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--from", name, "--rule", "^b$=float32")
    assert_same(load(tmp_path / "out.npz", {"a": name, "b": "float32"})["a"], array)


def test_names_may_lack_their_suffix(run_tcast, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, sample("float32"))
    with zipfile.ZipFile(tmp_path / "in.npz", "w") as archive:
        archive.writestr("plain", buffer.getvalue())
        archive.writestr("usual.npy", buffer.getvalue())
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--to", "float32")
    assert list(np.load(tmp_path / "out.npz")) == ["plain", "usual"]


def test_streamed_archives_with_data_descriptors(run_tcast, tmp_path):
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.content = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.content += bytes(data)
            return len(data)

    pipe = Pipe()
    np.savez_compressed(pipe, a=sample("float32"), b=sample("int16"))
    (tmp_path / "in.npz").write_bytes(pipe.content)
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--to", "float32")
    assert_same(np.load(tmp_path / "out.npz")["b"], sample("int16"))


def test_names_that_climb_out_are_not_written(run_tcast, tmp_path):
    np.savez(tmp_path / "in.npz", **{"../outside": np.zeros(3)})
    assert "unsafe" in refuse(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--to", "float32")


def test_a_bomb_is_read_in_bounded_memory(tcast, tmp_path):
    """1 GiB of zeros in one megabyte of archive."""
    np.savez_compressed(tmp_path / "in.npz", a=np.zeros(1 << 28, np.float32))
    assert (tmp_path / "in.npz").stat().st_size < 2 << 20
    command = [str(tcast), "convert", "in.npz", "-o", "out.npz", "--rule", ".*=bool", "--threads", "1", "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    peak = wait_and_measure(process)
    assert process.returncode == 0
    assert peak < 512 << 20


def sparse_archive(path, elements, with_checksum=True):
    """Two arrays as numpy.savez writes them, the first of `elements` zero bytes that are a hole in the file."""
    def header(size):
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
        return buffer.getvalue()

    large, small = header(elements), header(3) + b"abc"
    checksum, zeros = zlib.crc32(large), bytes(1 << 24)
    for done in range(0, elements if with_checksum else 0, len(zeros)):
        checksum = zlib.crc32(zeros[: elements - done], checksum)
    with open(path, "wb") as file:
        entries = []
        for name, content, hole, crc in ((b"a.npy", large, elements, checksum), (b"b.npy", small, 0, zlib.crc32(small))):
            size = len(content) + hole
            entries.append((name, size, crc, file.tell()))
            file.write(struct.pack("<IHHHIIIIHH", 0x04034B50, 45, 0, 0, 33 << 16, crc, 0xFFFFFFFF, 0xFFFFFFFF, 5, 20))
            file.write(name + struct.pack("<HHQQ", 1, 16, size, size) + content)
            file.seek(hole, os.SEEK_CUR)
        directory = file.tell()
        for name, size, crc, offset in entries:
            values = [value for value in (size, size, offset) if value >= 0xFFFFFFFF]
            extra = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values) if values else b""
            small_size, small_offset = min(size, 0xFFFFFFFF), min(offset, 0xFFFFFFFF)
            file.write(struct.pack("<IHHHHIIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 33 << 16, crc, small_size, small_size,
                                   len(name), len(extra), 0, 0, 0, 0, small_offset) + name + extra)
        end = file.tell()
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 2, 2, end - directory, directory))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, end, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2, 2, end - directory, 0xFFFFFFFF, 0))


def test_archives_beyond_4_gib_are_listed(run_tcast, tmp_path):
    sparse_archive(tmp_path / "in.npz", 5 << 30, with_checksum=False)
    listed = run_tcast("inspect", "in.npz", "--json")
    assert listed.returncode == 0, listed.stderr
    tensors = {tensor["name"]: tensor["shape"] for tensor in json.loads(listed.stdout)["tensors"]}
    assert tensors == {"a": [5 << 30], "b": [3]}


@pytest.mark.skipif("TENSORCAST_THOROUGH" not in os.environ, reason="5 GB of disk; scripts/exhaustive --files")
def test_archives_beyond_4_gib_are_read_and_written(run_tcast, tmp_path):
    sparse_archive(tmp_path / "in.npz", 5 << 30)
    convert(run_tcast, tmp_path / "in.npz", tmp_path / "out.npz", "--rule", "b=int32", "--verify")
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.testzip() is None
        assert archive.getinfo("a.npy").file_size > 5 << 30
        assert np.load(archive.open("b.npy")).tolist() == [97, 98, 99]


def test_damage_is_found(run_tcast, tmp_path):
    """No single changed byte of the data passes unnoticed."""
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "in.npz", a=np.arange(50, dtype=np.float32))
        content = (tmp_path / "in.npz").read_bytes()
        with zipfile.ZipFile(tmp_path / "in.npz") as archive:
            entry = archive.infolist()[0]
        begin = 30 + len(entry.filename) + 20
        for offset in random.Random(1).sample(range(begin, begin + entry.compress_size), 20):
            damaged = bytearray(content)
            damaged[offset] ^= 0x10
            (tmp_path / "damaged.npz").write_bytes(damaged)
            refuse(run_tcast, tmp_path / "damaged.npz", tmp_path / "out.npz", "--to", "float16")
