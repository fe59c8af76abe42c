# SPDX-License-Identifier: Apache-2.0
"""importance=FILE: llama.cpp's importance matrix and safetensors, in rankings, budgets and the searches of scales."""

import block_samples as samples
import numpy as np
import pytest

import tensorcast as tc

gguf = pytest.importorskip("gguf")
COLUMNS = 512
NAMES = [f"model.layers.{i}.{module}.weight" for i in range(2) for module in ("self_attn.o_proj", "mlp.down_proj")]
IN_LLAMA = {"self_attn.o_proj": "attn_output", "mlp.down_proj": "ffn_down"}


def in_llama(name):
    _, _, number, block, module, _ = name.split(".")
    return f"blk.{number}.{IN_LLAMA[block + '.' + module]}.weight"


@pytest.fixture
def weights():
    x = samples.sample("weights", "float32")
    return {name: np.ascontiguousarray(np.roll(x, 17 * i, axis=0)[: 32 * (i + 1)]) for i, name in enumerate(NAMES)}


@pytest.fixture
def matrices():
    """Sums of squares and counts; nothing was counted for the last weight."""
    base = samples.importance(COLUMNS)
    return {name: (np.roll(base, 31 * i) * np.float32(7 * (i + 1)), np.float32(0 if i == 3 else 7 * (i + 1)))
            for i, name in enumerate(NAMES)}  # fmt: skip


def importance_of(matrices, name):
    sums, count = matrices[name]
    return sums / count if count > 0 else np.ones_like(sums)


def write_matrix(path, matrices, name_of=in_llama):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "imatrix")
    for name, (sums, count) in matrices.items():
        writer.add_tensor(name_of(name) + ".in_sum2", sums.reshape(1, -1))
        writer.add_tensor(name_of(name) + ".counts", np.array([[count]], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_columns(path, matrices):
    tc.save(path, {name: importance_of(matrices, name) for name in matrices})
    return path


@pytest.fixture(params=["matrix", "columns"])
def file(request, tmp_path, matrices):
    if request.param == "matrix":
        return write_matrix(tmp_path / "imatrix.gguf", matrices)
    return write_columns(tmp_path / "columns.safetensors", matrices)


def test_ranking_is_weighed(tmp_path, weights, matrices, file):
    tc.save(tmp_path / "m.safetensors", weights)
    candidates = ["nvfp4", "mxfp4:even", "int4-group", "fp8-block", "q6_k"]
    for tensor in tc.inspect(tmp_path / "m.safetensors", stats=True, candidates=candidates, importance=file).tensors:
        x, importance = weights[tensor.name], importance_of(matrices, tensor.name)
        for fit in tensor.stats.schemes:
            if fit.scheme == "q6_k":
                rows = tc.gguf_quantize(x, "q6_k", importance=importance)
                numbers = tc.dequantize(rows, None, "q6_k", spelling="gguf", dtype="float32").reshape(x.shape)
            else:
                numbers = tc.quantize(x, fit.scheme, recipe=fit.recipe).dequantize()
            wide = x.astype(np.float64)
            assert fit.noise_power == pytest.approx((importance * (wide - numbers) ** 2).sum(), rel=1e-9)
            assert fit.signal_power == pytest.approx((importance * wide**2).sum(), rel=1e-9)


@pytest.mark.parametrize("scheme", ["q4_k", "q6_k"])
def test_gguf_has_ggmls_bytes(tmp_path, weights, matrices, scheme):
    """tests of quantize() compare its bytes with ggml's."""
    source = gguf.GGUFWriter(tmp_path / "in.gguf", "llama")
    for name, tensor in weights.items():
        source.add_tensor(in_llama(name), tensor)
    source.write_header_to_file()
    source.write_kv_data_to_file()
    source.write_tensors_to_file()
    source.close()
    matrix = write_matrix(tmp_path / "imatrix.gguf", matrices)
    done = tc.convert(tmp_path / "in.gguf", tmp_path / "out.gguf", scheme, importance=matrix)
    assert {tensor.search for tensor in done.tensors} == {"importance"}
    found = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    for name, tensor in weights.items():
        wanted = tc.gguf_quantize(tensor, scheme, importance=importance_of(matrices, name))
        assert found[in_llama(name)].tobytes() == wanted.tobytes()
        assert wanted.tobytes() != tc.gguf_quantize(tensor, scheme).tobytes()


def test_a_budget_and_clipping_are_weighed(tmp_path, weights, matrices, file):
    """Where only one weight counts, it gets the bits."""
    matrices = {name: (sums * np.float32(1e6 if name == NAMES[1] else 1), count or np.float32(1))
                for name, (sums, count) in matrices.items()}  # fmt: skip
    rewrite = write_matrix if file.suffix == ".gguf" else write_columns
    file.unlink()
    rewrite(file, matrices)
    tc.save(tmp_path / "m.safetensors", weights)
    options = {"budget": "6bits", "candidates": ["mxfp4", "int4-group", "mxfp8"], "importance": file}
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", clip="mse", **options)
    chosen = {tensor.name.rsplit(".", 1)[0] + ".weight": tensor for tensor in done.tensors if tensor.recipe}
    assert chosen[NAMES[1]].scheme == "mxfp8" and chosen[NAMES[1]].search == "clip mse, importance"
    total = sum(tensor.bits * tensor.elements for tensor in chosen.values())
    assert total <= 6 * sum(tensor.elements for tensor in chosen.values())


def test_names_and_what_is_missing(tmp_path, weights):
    tc.save(tmp_path / "m.safetensors", weights)
    ones = np.ones(COLUMNS, np.float32)
    tc.save(tmp_path / "i.safetensors", {NAMES[0].removesuffix(".weight"): ones * 3})
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", clip="mse",
                      importance=tmp_path / "i.safetensors")  # fmt: skip
    assert [tensor.search for tensor in done.tensors if tensor.recipe] == ["clip mse, importance"] + ["clip mse"] * 3


@pytest.mark.parametrize("file, complaint", [
    ("m.safetensors", "importance of .* numbers, where the weight has 512 columns"),
    ("no.gguf", "No such file"),
    ("other.safetensors", "the file has the importance of none of the weights"),
    ("model.gguf", "the file has no importance of weights"),
])  # fmt: skip
def test_files_that_are_refused(tmp_path, weights, file, complaint):
    tc.save(tmp_path / "m.safetensors", weights)
    tc.save(tmp_path / "other.safetensors", {"model.layers.7.mlp.down_proj.weight": np.ones(COLUMNS, np.float32)})
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tensor("blk.0.attn_output.weight", weights[NAMES[0]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises((tc.CastError, OSError), match=complaint):
        tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", clip="mse", importance=tmp_path / file)
    assert not (tmp_path / "o.safetensors").exists()
