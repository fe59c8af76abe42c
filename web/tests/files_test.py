# SPDX-License-Identifier: Apache-2.0
"""Files in the page: what is inside, what types would lose, and conversions that have the bytes of tcast convert."""

import json
import struct
import subprocess

import numpy as np
import pytest

RNG = np.random.default_rng(5)


def safetensors(path, tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def weights(*shape, dtype="<f4"):
    numbers = RNG.standard_normal(shape) * 10.0 ** RNG.integers(-6, 4, shape)
    return numbers.astype(dtype)


def mixed(folder):
    return safetensors(
        folder / "mixed.safetensors",
        {
            "a.bias": ("F16", weights(7, dtype="<f2")),
            "b.weight": ("F32", weights(4, 6)),
            "b.weight64": ("F64", weights(3, 2, dtype="<f8")),
            "idx": ("I64", np.arange(5)),
            "mask": ("BOOL", np.array([True, False])),
            "empty": ("F32", weights(0, 4)),
        },
        {"format": "pt", "name": "ünïcode \"quoted\"", "10": "a number", "2": "another"},
    )


def gguf(path):
    """float32, float16 and blocks of Q8_0."""
    blocks = b"".join(
        struct.pack("<e", float(RNG.uniform(0.001, 0.1))) + RNG.integers(-127, 128, 32).astype("i1").tobytes() for _ in range(64)
    )
    tensors = [("w.f32", (4, 8), 0, weights(4, 8).tobytes()), ("w.q8", (32, 64), 8, blocks), ("w.f16", (5,), 1, weights(5, dtype="<f2").tobytes())]

    def text(words):
        return struct.pack("<Q", len(words)) + words.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2)
    out += text("general.name") + struct.pack("<I", 8) + text("tiny")
    out += text("general.list") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<3I", 1, 2, 3)
    data = b""
    for name, shape, kind, raw in tensors:
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    path.write_bytes(out + b"\0" * (-len(out) % 32) + data)
    return path


def message(field, payload):
    def varint(value):
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    if isinstance(payload, int):
        return varint(field << 3) + varint(payload)
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def onnx(path, array):
    tensor = b"".join(message(1, n) for n in array.shape) + message(2, 1) + message(8, b"w") + message(9, array.tobytes())
    node = message(1, b"w") + message(2, b"y") + message(4, b"Identity")
    graph = message(1, node) + message(2, b"g") + message(5, tensor)
    path.write_bytes(message(1, 8) + message(2, b"tests") + message(7, graph))
    return path


def choose(opened, path, state="#view=file"):
    page = opened(state)
    page.set_input_files("#file", path)
    page.wait_for_selector("#convert, [role=alert]")
    return page


def test_a_file_is_dropped(opened, tmp_path):
    source = mixed(tmp_path)
    page = opened("#view=file")
    drop = """([name, hex]) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(hex.match(/../g), two => parseInt(two, 16))], name));
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop, [source.name, source.read_bytes().hex()])
    page.wait_for_selector("#convert")
    assert "6 tensors" in page.inner_text("[aria-label='The file']")


def converted(page):
    page.click("#convert")
    page.wait_for_selector("#download")
    with page.expect_download() as download:
        page.click("#download")
    return open(download.value.path(), "rb").read()


@pytest.mark.parametrize("to", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float6_e3m2fn", "float32"])
@pytest.mark.parametrize("make", [mixed, lambda folder: gguf(folder / "tiny.gguf")], ids=["safetensors", "gguf"])
def test_conversions_have_the_bytes_of_the_command(opened, tcast, tmp_path, make, to):
    source = make(tmp_path)
    page = choose(opened, source, f"#view=file&to={to}")
    done = subprocess.run(
        [tcast, "convert", source, "-o", tmp_path / "out.safetensors", "--to", to, "--force", "--allow-loss"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    given, wanted = converted(page), (tmp_path / "out.safetensors").read_bytes()

    def parsed(raw):
        length = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        return {name: (e["dtype"], e["shape"], raw[8 + length :][slice(*e["data_offsets"])]) for name, e in header.items()}, metadata

    assert parsed(given) == parsed(wanted)
    assert given == wanted


def test_pieces_of_large_tensors_stay_in_order(opened, tcast, tmp_path):
    numbers = np.random.default_rng(2).standard_normal((3, 4_000_003)).astype("<f4")
    source = safetensors(tmp_path / "large.safetensors", {"a": ("F32", numbers), "b": ("F32", weights(5, 7))})
    page = choose(opened, source, "#view=file&to=float8_e4m3fn")
    subprocess.run([tcast, "convert", source, "-o", tmp_path / "out.safetensors", "--to", "float8_e4m3fn", "--force", "--quiet"], check=True)
    assert converted(page) == (tmp_path / "out.safetensors").read_bytes()


def test_a_number_that_an_option_refuses_ends_a_conversion(opened, tmp_path):
    numbers = np.ones(12_000_000, "<f4")
    numbers[11_000_003] = 1e6
    source = safetensors(tmp_path / "x.safetensors", {"w": ("F32", numbers)})
    page = choose(opened, source, "#view=file&to=float8_e4m3fn&out_of_range=error")
    page.click("#convert")
    page.wait_for_selector("[aria-label=Convert] .error")
    assert page.inner_text("[aria-label=Convert] .error").startswith("w: element 11000003: value 1e+06 does not fit")


def test_arrays_of_numpy_are_converted(opened, tcast, tmp_path):
    array = weights(33, 5)
    np.save(tmp_path / "x.npy", array)
    np.savez_compressed(tmp_path / "y.npz", w=array, i=np.arange(4))
    np.savez(tmp_path / "z.npz", w=array, i=np.arange(4))
    for name in ("x.npy", "y.npz", "z.npz"):
        page = choose(opened, tmp_path / name, "#view=file&to=float16")
        subprocess.run([tcast, "convert", tmp_path / name, "-o", tmp_path / "out.safetensors", "--to", "float16", "--force", "--quiet"], check=True)
        assert converted(page) == (tmp_path / "out.safetensors").read_bytes(), name


def test_initializers_of_a_model_are_shown(opened, tmp_path):
    page = choose(opened, onnx(tmp_path / "m.onnx", weights(6, 4)))
    text = page.inner_text("main")
    assert "onnx, " in text and "[6, 4]" in text and "1 tensors" in text
    page.click("button.link:has-text('w')")
    page.wait_for_selector("#study")


def test_losses_are_those_of_the_command(opened, tcast, tmp_path):
    source = safetensors(tmp_path / "x.safetensors", {"w": ("F32", weights(64, 64))})
    page = choose(opened, source)
    page.click("button.link:has-text('w')")
    page.wait_for_selector("#study")
    done = subprocess.run([tcast, "inspect", source, "--stats", "--json", "--candidates", "float8_e4m3fn,float16"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {row.split("\t")[0]: row.split("\t") for row in page.locator("#study tbody tr").all_inner_texts()}
    candidates = json.loads(done.stdout)["tensors"][0]["stats"]["candidates"]
    assert len(candidates) == 2
    for name, report in candidates.items():
        cells = rows[name][1:]
        assert cells[1] == f"{report['snr_db']:.1f} dB"
        assert cells[3] == f"{report['underflowed_to_zero']:,}"
        assert cells[4] == f"{report['saturated'] + report['overflowed']:,}"


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("x.safetensors", b"\xff" * 64, "no safetensors file"),
        ("x.safetensors", struct.pack("<Q", 4) + b"{]}}", "no JSON"),
        ("x.safetensors", struct.pack("<Q", 64) + b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'.ljust(64), "does not fit the file"),
        ("x.gguf", b"GGUF" + struct.pack("<IQQ", 3, 5, 5), "ends within its header"),
        ("x.npz", b"PK\x03\x04" + b"\0" * 40, "no zip archive"),
        ("x.onnx", b"\xff" * 40, "no ONNX model"),
        ("x.npy", b"", "empty"),
    ],
)
def test_damaged_files_are_refused(opened, tmp_path, name, raw, said):
    (tmp_path / name).write_bytes(raw)
    page = choose(opened, tmp_path / name)
    assert said in page.inner_text("[role=alert]")


def test_a_made_up_file_shows_what_the_view_does(opened):
    page = opened("#view=file&to=float8_e4m3fn")
    page.click("text=try a made-up one")
    page.click("button.link:has-text('mlp')")
    page.wait_for_selector("#study")
    assert page.locator("#study tbody tr").count() >= 10
    assert len(converted(page)) > 180_000
