# SPDX-License-Identifier: Apache-2.0
"""`--picture` of `tcast onnx casts` and `tcast onnx convert`: a model as DOT text, and as SVG where Graphviz is."""

import os
import re
import shutil

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

MODEL = """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
g (float[1,3] x, bool c) => (float[1,3] y) <float[3] w = {1, 2, 3}, float[1,3] h> {
    [half] h16 = Cast<to = 10>(x)
    [back] h = Cast<to = 1>(h16)
    [if_1] t = If(c) <then_branch: graph = t () => (float[1,3] a) { [n] a = Neg(h) },
                      else_branch: graph = e () => (float[1,3] b) { b = mine.Twice(x) }>
    y = Add(t, w)
}
<opset_import: ["" : 21], domain: "mine"> Twice (p) => (q) { q = Add(p, p) }"""


@pytest.fixture
def model(tmp_path):
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def labels(text, pattern):
    return re.findall(rf'{pattern} \[label="((?:[^"\\]|\\.)*)"', text)


def test_everything_is_in_the_text(run_tcast, model, tmp_path):
    done = run_tcast("onnx", "casts", model, "--picture", "model.dot")
    assert done.returncode == 0 and "2 Casts" in done.stdout
    text = (tmp_path / "model.dot").read_text()
    assert text.startswith("digraph model {\n") and text.endswith("}\n") and text.count("{") == text.count("}")
    assert labels(text, r"n\d+") == [
        r"Cast\nfloat32 to float16\nhalf", r"Cast\nfloat16 to float32\nback", r"If\nif_1", r"Neg\nn", r"mine::Twice\nb",
        r"Add\ny", r"Add\nq",
    ]
    assert labels(text, r"v\d+")[:3] == [r"x\nfloat32", r"c\nbool", r"w\nfloat32"]
    assert len(re.findall(r"n\d+ \[[^\n]*shape=hexagon", text)) == 2
    clusters = re.findall(r'subgraph cluster_\w+ \{\n *label="([^"]*)"', text)
    assert clusters == ["if_1.then_branch", "if_1.else_branch", "function mine::Twice", "precision"]
    # The colour of a node is that of its result.
    fills = dict(re.findall(r'label="Cast\\n\w+ to (\w+)\\n\w+", fillcolor="(#\w+)"', text))
    legend = dict(re.findall(r'legend\d \[label="([\w, ]+)", fillcolor="(#\w+)"', text))
    assert list(legend) == ["float32", "float16", "integers, bool, string"]
    assert fills == {name: legend[name] for name in fills} and len(fills) == 2
    run_tcast("onnx", "casts", model, "--picture", "again.dot")
    assert (tmp_path / "again.dot").read_text() == text


def test_edges_join_what_makes_and_what_takes_a_value(run_tcast, model, tmp_path):
    assert run_tcast("onnx", "casts", model, "--picture", "model.gv").returncode == 0
    text = (tmp_path / "model.gv").read_text()
    ids = {label: id for id, label in re.findall(r'(\w+) \[label="((?:[^"\\]|\\.)*)"', text)}
    edges = set(re.findall(r"(\w+) -> (\w+) ", text))
    half, back, neg = ids[r"Cast\nfloat32 to float16\nhalf"], ids[r"Cast\nfloat16 to float32\nback"], ids[r"Neg\nn"]
    assert {(ids[r"x\nfloat32"], half), (half, back), (back, neg), (neg, ids[r"a\nfloat32"]),
            (ids[r"a\nfloat32"], ids[r"If\nif_1"]), (ids[r"w\nfloat32"], ids[r"Add\ny"])} <= edges
    drawn = set(ids.values())
    assert all(edge <= drawn for edge in map(set, edges))


def test_names_are_escaped(run_tcast, tmp_path):
    odd = 'a"];b -> c\\n\n\x01\u00e9<b>'
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"], name=odd)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    bytes_of_model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    assert bytes_of_model.count("\u00e9".encode()) == 1
    (tmp_path / "utf8.onnx").write_bytes(bytes_of_model)
    (tmp_path / "latin.onnx").write_bytes(bytes_of_model.replace("\u00e9".encode(), b"\xe9\xff"))
    for name, shown in (("utf8", "\u00e9"), ("latin", "\ufffd")):
        assert run_tcast("onnx", "casts", f"{name}.onnx", "--picture", f"{name}.dot").returncode == 0
        text = (tmp_path / f"{name}.dot").read_bytes().decode()
        (label,) = labels(text, r"n\d+")
        assert label.startswith('Neg\\na\\"];b -> c\\\\n  ' + shown) and label.endswith("<b>")


def test_initializers_and_large_models(run_tcast, tmp_path):
    nodes = [helper.make_node("Add", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(1500)]
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [1.0]) for i in range(1500)]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])  # noqa: E731
    for count in (900, 1500):
        graph = helper.make_graph(nodes[:count], "g", [value("x0")], [value(f"x{count}")], weights[:count])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / f"{count}.onnx")
        assert run_tcast("onnx", "casts", f"{count}.onnx", "--picture", f"{count}.dot").returncode == 0
        text = (tmp_path / f"{count}.dot").read_text()
        assert len(labels(text, r"n\d+")) == count
        assert ("1500 initializers are left out" in text) == (count == 1500) == ('"w7\\n' not in text)
    nodes = [helper.make_node("Neg", [f"x{i}"], [f"x{i + 1}"]) for i in range(2100)]
    graph = helper.make_graph(nodes, "g", [value("x0")], [value("x2100")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "large.onnx")
    for command in (["casts", "large.onnx"], ["convert", "large.onnx", "-o", "new.onnx", "--to", "float16"]):
        done = run_tcast("onnx", *command, "--picture", "large.dot")
        assert done.returncode == 1 and "2102 nodes, inputs and outputs" in done.stderr
        assert not (tmp_path / "large.dot").exists() and not (tmp_path / "new.onnx").exists()


def test_convert_draws_the_new_model(run_tcast, model, tmp_path):
    done = run_tcast("onnx", "convert", model, "-o", "new.onnx", "--to", "float16", "--picture", "new.dot")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "new.dot").read_text()
    assert r"Add\ny" in text and r"y\nfloat16" in text
    # Refused before anything is written.
    done = run_tcast("onnx", "convert", model, "-o", "other.onnx", "--to", "float16", "--picture", "new.dot")
    assert done.returncode == 1 and "the picture exists already" in done.stderr
    done = run_tcast("onnx", "convert", model, "-o", "same.dot", "--to", "float16", "--picture", "same.dot")
    assert done.returncode == 1 and "would overwrite" in done.stderr
    for arguments, words in ((["--picture", "new.png"], 'does not end in .svg, .dot or .gv'),
                             (["--picture", "a.dot", "--dry-run"], "--dry-run")):
        done = run_tcast("onnx", "convert", model, "-o", "other.onnx", "--to", "float16", *arguments)
        assert done.returncode == 2 and words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "new.dot", "new.onnx"]


def fake_dot(folder, script):
    folder.mkdir()
    (folder / "dot").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "dot").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_svg_is_what_dot_makes_of_the_text(run_tcast, model, tmp_path):
    """A stand-in for `dot` shows what it was given."""
    environment = fake_dot(tmp_path / "bin", 'echo "<svg $*>"; cat; echo noise >&2')
    assert run_tcast("onnx", "casts", model, "--picture", "model.dot").returncode == 0
    done = run_tcast("onnx", "casts", model, "--picture", "model.svg", env=environment)
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "model.svg").read_text() == "<svg -Tsvg>\n" + (tmp_path / "model.dot").read_text()


def test_without_graphviz_and_with_one_that_fails(run_tcast, model, tmp_path):
    (tmp_path / "empty").mkdir()
    command = ["onnx", "convert", model, "-o", "new.onnx", "--to", "float16", "--picture", "new.svg"]
    done = run_tcast(*command, env={**os.environ, "PATH": str(tmp_path / "empty")})
    assert done.returncode == 1 and "needs the program dot of Graphviz" in done.stderr and "install" in done.stderr
    assert not (tmp_path / "new.onnx").exists()
    done = run_tcast("onnx", "casts", model, "--picture", "new.svg", env=fake_dot(tmp_path / "bin", 'echo "no way" >&2; exit 3'))
    assert done.returncode == 1 and "dot failed: no way" in done.stderr
    assert not (tmp_path / "new.svg").exists()


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_svg_by_graphviz(run_tcast, model, tmp_path):
    assert run_tcast("onnx", "casts", model, "--picture", "model.svg").returncode == 0
    text = (tmp_path / "model.svg").read_text()
    assert "<svg" in text and "if_1.then_branch" in text and "float32 to float16" in text
