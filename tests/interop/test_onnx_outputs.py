# SPDX-License-Identifier: Apache-2.0
"""Where `tcast onnx` writes: no external data is overwritten, and old data goes only if tensorcast wrote it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)


def save(folder, data="w.bin"):
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64])] for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", inputs, outputs, [numpy_helper.from_array(WEIGHTS, "w")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, folder / "i.onnx", save_as_external_data=True, location=data, size_threshold=0)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def weights(path):
    return numpy_helper.to_array(onnx.load(path).graph.initializer[0])


def test_in_place_and_back(run_tcast, tmp_path):
    save(tmp_path)
    assert run_tcast("onnx", "convert", "i.onnx", "-o", "o.onnx", "--to", "float16").returncode == 0
    for to in ("float32", "float16", "float16", "float32"):
        done = run_tcast("onnx", "convert", "o.onnx", "-o", "o.onnx", "--to", to, "--force")
        assert done.returncode == 0, done.stderr
        assert len(names(tmp_path)) == 4  # the data of the model before was ours
        np.testing.assert_array_equal(weights(tmp_path / "o.onnx"), WEIGHTS.astype(np.float16).astype(to))
    np.testing.assert_array_equal(weights(tmp_path / "i.onnx"), WEIGHTS)


def test_data_of_others_stays(run_tcast, tmp_path):
    """In place over a model whose data another program wrote under the name that the new data would have."""
    save(tmp_path, "i.onnx.data")
    before = (tmp_path / "i.onnx.data").read_bytes()
    done = run_tcast("onnx", "convert", "i.onnx", "-o", "i.onnx", "--to", "float16", "--force")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "i.onnx.data").read_bytes() == before and len(names(tmp_path)) == 3
    np.testing.assert_array_equal(weights(tmp_path / "i.onnx"), WEIGHTS.astype(np.float16))


def test_a_spare_file_of_a_crash_is_used(run_tcast, tmp_path):
    save(tmp_path, "i.onnx.data")
    old = (tmp_path / "i.onnx").read_bytes()
    assert run_tcast("onnx", "convert", "i.onnx", "-o", "i.onnx", "--to", "float16", "--force").returncode == 0
    made, new = names(tmp_path), (tmp_path / "i.onnx").read_bytes()
    (tmp_path / "i.onnx").write_bytes(old)  # as if killed before the rename of the model
    np.testing.assert_array_equal(weights(tmp_path / "i.onnx"), WEIGHTS)
    assert run_tcast("onnx", "convert", "i.onnx", "-o", "i.onnx", "--to", "float16", "--force").returncode == 0
    assert names(tmp_path) == made and (tmp_path / "i.onnx").read_bytes() == new


@pytest.mark.parametrize("arguments", [
    ("convert", "i.onnx", "-o", "w.dot", "--to", "float16"), ("clean", "i.onnx", "-o", "w.dot"),
    ("use-tensorcast", "i.onnx", "-o", "w.dot"), ("add-cast", "i.onnx", "-o", "w.dot", "--tensor", "x", "--to", "float16"),
    ("convert", "i.onnx", "-o", "p.onnx", "--to", "float16", "--picture", "w.dot"), ("casts", "i.onnx", "--picture", "w.dot"),
])
def test_the_data_of_the_input_is_never_an_output(run_tcast, tmp_path, arguments):
    save(tmp_path, "w.dot")
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    done = run_tcast("onnx", *arguments, "--force")
    assert done.returncode == 1 and "would overwrite the external data of the model" in done.stderr
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_copies_of_data_replace_nothing(run_tcast, tmp_path):
    save(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/w.bin").write_bytes(b"theirs")
    done = run_tcast("onnx", "use-tensorcast", "i.onnx", "-o", "out/o.onnx", "--force")
    assert done.returncode == 1 and "a file with other contents has the name of the model's external data" in done.stderr
    assert names(tmp_path / "out") == ["w.bin"] and (tmp_path / "out/w.bin").read_bytes() == b"theirs"
