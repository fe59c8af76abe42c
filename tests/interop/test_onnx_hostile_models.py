# SPDX-License-Identifier: Apache-2.0
"""Models that are broken or hostile: `tcast onnx convert` refuses them or converts them, quickly, and leaves nothing behind."""

import resource
import subprocess

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

F32 = TensorProto.FLOAT


@pytest.fixture
def attempt(tcast, tmp_path):
    """attempt(path) converts with 2 GiB of memory; gives the status and the complaint. A failure leaves no file."""

    def attempted(path, *options):
        target = tmp_path / "new.onnx"
        command = [tcast, "onnx", "convert", path, "-o", target, "--to", "float16", "--quiet", *options]
        bounded = lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))  # noqa: E731
        before = set(tmp_path.iterdir())
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, preexec_fn=bounded)
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        assert "internal" not in done.stderr
        if done.returncode:
            assert done.stderr.startswith("tcast: error: ") and set(tmp_path.iterdir()) == before
        for made in set(tmp_path.iterdir()) - before:
            made.unlink()
        return done.returncode, done.stderr

    return attempted


def test_every_hostile_file_of_the_repository(attempt, source_dir):
    files = sorted((source_dir / "src/models/onnx/testdata/invalid").glob("*.onnx"))
    refused = [path.name for path in files if attempt(path)[0] == 1]
    assert len(files) > 90
    # What only `tcast run` cannot run, a conversion copies.
    assert {"parse--text.onnx", "parse--truncated.onnx", "parse--varint-runs-off.onnx", "parse--no-graph.onnx",
            "invalid_argument--dangling-input.onnx", "invalid_argument--defined-twice.onnx",
            "parse--length-beyond-the-end.onnx"} <= set(refused)


def test_every_cut_of_a_model(attempt, source_dir, tmp_path):
    whole = (source_dir / "src/models/onnx/testdata/valid/if.onnx").read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 40)):
        (tmp_path / "cut.onnx").write_bytes(whole[:end])
        attempt(tmp_path / "cut.onnx")


def save(model, path):
    path.write_bytes(model.SerializeToString())
    return path


def edge(name="x"):
    return helper.make_tensor_value_info(name, F32, [1])


def test_graphs_in_graphs(attempt, tmp_path):
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["y0"])], "g", [], [edge("y0")])
    for i in range(30):
        node = helper.make_node("If", ["c"], [f"y{i + 1}"], then_branch=body, else_branch=body)
        nested = helper.make_graph([node], "g", [], [edge(f"y{i + 1}")])
        if nested.ByteSize() > 1 << 20:
            break
        body = nested
    body.input.extend([edge(), helper.make_tensor_value_info("c", TensorProto.BOOL, [])])
    attempt(save(helper.make_model(body, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "deep.onnx"))


def test_functions_that_call_functions(attempt, tmp_path):
    """Each calls the next one twice: 2^40 calls."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = [helper.make_function("mine", "f40", ["a"], ["b"], [helper.make_node("Sin", ["a"], ["b"])], opsets)]
    for i in reversed(range(40)):
        calls = [helper.make_node(f"f{i + 1}", ["a"], ["t"], domain="mine"),
                 helper.make_node(f"f{i + 1}", ["t"], ["b"], domain="mine")]
        functions.append(helper.make_function("mine", f"f{i}", ["a"], ["b"], calls, opsets))
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="mine")], "g", [edge()], [edge("y")])
    path = save(helper.make_model(graph, functions=functions, opset_imports=opsets), tmp_path / "many.onnx")
    attempt(path)
    status, complaint = attempt(path, "--functions", "inline")
    assert status == 1 and "--functions copy" in complaint


def test_a_function_that_calls_itself(attempt, tmp_path):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    call = helper.make_node("f", ["a"], ["b"], domain="mine")
    function = helper.make_function("mine", "f", ["a"], ["b"], [call], opsets)
    graph = helper.make_graph([helper.make_node("f", ["x"], ["y"], domain="mine")], "g", [edge()], [edge("y")])
    path = save(helper.make_model(graph, functions=[function], opset_imports=opsets), tmp_path / "self.onnx")
    attempt(path)
    status, complaint = attempt(path, "--functions", "inline")
    assert status == 1 and "64 deep" in complaint


def test_names_that_are_wanted_again_and_again(attempt, tmp_path):
    """Calls of one name, and Ifs with values of one name, of which each needs a Cast."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    halves = [helper.make_node("Neg", ["a"], ["t"], name="k"), helper.make_node("Abs", ["t"], ["b"], name="k")]
    function = helper.make_function("mine", "f", ["a"], ["b"], halves, opsets[:1])
    calls = [helper.make_node("f", [f"v{i}"], [f"v{i + 1}"], name="same", domain="mine") for i in range(20000)]
    graph = helper.make_graph(calls, "g", [edge("v0")], [edge("v20000")])
    path = save(helper.make_model(graph, functions=[function], opset_imports=opsets), tmp_path / "calls.onnx")
    assert attempt(path, "--functions", "inline")[0] == 0

    inside = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Own", ["t"], ["u"], domain="own")]
    branch = helper.make_graph(inside, "b", [], [edge("u")])
    ifs = [helper.make_node("If", ["c"], [f"y{i}"], then_branch=branch, else_branch=branch) for i in range(20000)]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    graph = helper.make_graph(ifs, "g", [edge(), condition], [edge("y0")])
    path = save(helper.make_model(graph, opset_imports=[opsets[0], helper.make_opsetid("own", 1)]), tmp_path / "ifs.onnx")
    assert attempt(path)[0] == 0


def test_types_in_types(attempt, tmp_path):
    """A sequence of sequences of ..., 4000 deep."""
    value = helper.make_tensor_type_proto(F32, [1]).SerializeToString()
    for _ in range(4000):
        value = message(4, message(1, value))
    graph = message(1, helper.make_node("Identity", ["x"], ["y"]).SerializeToString())
    graph += message(11, message(1, b"x") + message(2, value)) + message(12, message(1, b"y") + message(2, value))
    (tmp_path / "types.onnx").write_bytes(b"\x08\x0a" + message(7, graph) + b"\x42\x02\x10\x15")
    assert attempt(tmp_path / "types.onnx")[0] == 1


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "link.bin", "missing.bin", "."])
def test_external_data_elsewhere(attempt, tmp_path, location):
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.bin").symlink_to("../secret.bin")
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[16] x) => (float[16] y) { y = Add(x, w) }')
    tensor = model.graph.initializer.add(name="w", data_type=F32, dims=[16], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    status, complaint = attempt(save(model, inside / "model.onnx"))
    assert status == 1 and "model.onnx" in complaint


@pytest.mark.parametrize("dims", [[1 << 40, 1 << 40], [-1], [1 << 62], [3]])
def test_tensors_that_claim_too_much(attempt, tmp_path, dims):
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] y) { y = Add(x, w) }')
    model.graph.initializer.add(name="w", data_type=F32, dims=dims, raw_data=bytes(16))
    assert attempt(save(model, tmp_path / "claims.onnx"))[0] == 1


def test_many_small_messages(attempt, tmp_path):
    """A graph of 400,000 empty nodes is 800 kB and takes little memory."""
    graph = message(7, b"\x0a\x00" * 400_000)
    (tmp_path / "empty.onnx").write_bytes(b"\x08\x0a" + graph + b"\x42\x02\x10\x15")
    attempt(tmp_path / "empty.onnx")


def message(field, contents):
    """A field of protobuf that has contents."""
    return bytes([field << 3 | 2]) + varint(len(contents)) + contents


def varint(number):
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def test_many_small_nodes(attempt, tmp_path):
    """200,000 nodes are 6 MB, and the Casts of the new model are no larger."""
    graph = b"".join(message(1, message(1, f"v{i}".encode()) + message(2, f"v{i + 1}".encode()) + message(4, b"Sin" if i % 2 else b"Relu"))
                     for i in range(200_000))
    graph += message(2, b"g") + message(11, edge("v0").SerializeToString()) + message(12, edge("v200000").SerializeToString())
    (tmp_path / "nodes.onnx").write_bytes(b"\x08\x0a" + message(7, graph) + b"\x42\x02\x10\x15")
    assert attempt(tmp_path / "nodes.onnx", "--keep", "op:Sin") == (0, "")
