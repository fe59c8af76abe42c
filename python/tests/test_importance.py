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


@pytest.mark.parametrize("scheme", ["q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs"])
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


EXPERTS = 3


def expert_matrix(path, part="ffn_down_exps"):
    """A row of sums and a count for each expert; nothing was counted for the last."""
    base = samples.importance(COLUMNS)
    sums = np.stack([np.roll(base, 31 * i) * np.float32(5 * (i + 1)) for i in range(EXPERTS)])
    counts = np.array([[5.0], [10.0], [0.0]], np.float32)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "imatrix")
    writer.add_tensor(f"blk.1.{part}.weight.in_sum2", sums)
    writer.add_tensor(f"blk.1.{part}.weight.counts", counts)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, np.stack([sums[0] / 5, sums[1] / 10, np.ones(COLUMNS, np.float32)])


@pytest.mark.parametrize("scheme", ["q4_k", "q6_k"])
def test_experts_of_gguf(tmp_path, scheme):
    """Each matrix has the bytes of ggml with its row of the importance matrix."""
    x = np.stack([np.roll(samples.sample("weights", "float32"), 5 * i, axis=0)[:16] for i in range(EXPERTS)])
    source = gguf.GGUFWriter(tmp_path / "in.gguf", "llama")
    source.add_tensor("blk.1.ffn_down_exps.weight", x)
    source.write_header_to_file()
    source.write_kv_data_to_file()
    source.write_tensors_to_file()
    source.close()
    file, importance = expert_matrix(tmp_path / "imatrix.gguf")
    tc.convert(tmp_path / "in.gguf", tmp_path / "out.gguf", scheme, importance=file)
    found = gguf.GGUFReader(tmp_path / "out.gguf").tensors[0].data.reshape(EXPERTS, 16, -1)
    for expert in range(EXPERTS):
        wanted = tc.gguf_quantize(x[expert], scheme, importance=importance[expert])
        assert found[expert].tobytes() == wanted.tobytes()
    assert found.tobytes() != tc.gguf_quantize(x, scheme, importance=importance[0]).tobytes()


@pytest.mark.parametrize("module", ["mlp.experts.{}.down_proj", "block_sparse_moe.experts.{}.w2"])
def test_experts_that_stand_alone(tmp_path, module):
    """model.layers.1.mlp.experts.E.down_proj has row E of blk.1.ffn_down_exps."""
    x = samples.sample("weights", "float32")
    weights = {f"model.layers.1.{module.format(i)}.weight": np.roll(x, 5 * i, axis=0)[:16] for i in range(EXPERTS)}
    tc.save(tmp_path / "m.safetensors", weights)
    file, importance = expert_matrix(tmp_path / "imatrix.gguf")
    for tensor in tc.inspect(tmp_path / "m.safetensors", stats=True, candidates=["mxfp4"], importance=file).tensors:
        expert = list(weights).index(tensor.name)
        numbers = tc.quantize(weights[tensor.name], "mxfp4").dequantize()
        noise = (importance[expert] * (weights[tensor.name].astype(np.float64) - numbers) ** 2).sum()
        assert tensor.stats.schemes[0].noise_power == pytest.approx(noise, rel=1e-9)
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", clip="mse", importance=file)
    assert [tensor.search for tensor in done.tensors if tensor.recipe] == ["clip mse, importance"] * EXPERTS
    made = tc.load(tmp_path / "o.safetensors")
    for expert, (name, tensor) in enumerate(weights.items()):
        wanted = tc.quantize(tensor, "int4-group", clip="mse", importance=importance[expert])
        got = made[name.removesuffix("weight") + "weight_scale"]
        np.testing.assert_array_equal(np.asarray(got, np.float32).ravel(), wanted.scales.ravel())


def test_experts_in_one_tensor(tmp_path):
    x = np.stack([np.roll(samples.sample("weights", "float32"), 5 * i, axis=0)[:16] for i in range(EXPERTS)])
    tc.save(tmp_path / "m.safetensors", {"model.layers.1.mlp.experts.gate_up_proj": x})
    file, importance = expert_matrix(tmp_path / "imatrix.gguf", "ffn_gate_exps")
    tensor = tc.inspect(tmp_path / "m.safetensors", stats=True, candidates=["mxfp4"], importance=file).tensors[0]
    errors = (x.astype(np.float64) - tc.quantize(x, "mxfp4").dequantize()) ** 2
    assert tensor.stats.schemes[0].noise_power == pytest.approx((importance[:, None] * errors).sum(), rel=1e-9)


def test_experts_beyond_the_matrix_are_an_error(tmp_path):
    tc.save(tmp_path / "m.safetensors", {"model.layers.1.mlp.experts.3.down_proj.weight": np.ones((16, COLUMNS), np.float32)})
    file, _ = expert_matrix(tmp_path / "imatrix.gguf")
    with pytest.raises(tc.CastError, match="it has 3 rows of importance, and none for expert 3"):
        tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", clip="mse", importance=file)


NAMES_IN_LLAMA = {
    "language_model.model.layers.1.self_attn.q_proj": "blk.1.attn_q",
    "model.language_model.layers.1.self_attn.v_proj": "blk.1.attn_qkv",
    "layers.1.attention.wo": "blk.1.attn_output",
    "layers.1.feed_forward.w3": "blk.1.ffn_up",
    "model.layers.1.self_attn.kv_a_proj_with_mqa": "blk.1.attn_kv_a_mqa",
    "model.layers.1.mlp.shared_experts.gate_proj": "blk.1.ffn_gate_shexp",
    "model.layers.1.mlp.shared_expert.up_proj": "blk.1.ffn_up_shexp",
    "model.layers.1.mlp.gate_up_proj": "blk.1.ffn_up",
    "model.layers.1.mlp.experts.2.w1": "blk.1.ffn_gate.2",
    "lm_head": "output",
}


@pytest.mark.parametrize("module", NAMES_IN_LLAMA)
def test_names_of_llama(tmp_path, module):
    x = samples.sample("weights", "float32")[:16]
    tc.save(tmp_path / "m.safetensors", {f"{module}.weight": x})
    importance = samples.importance(COLUMNS)
    file = write_matrix(tmp_path / "i.gguf", {"": (importance, np.float32(1))}, lambda _: NAMES_IN_LLAMA[module] + ".weight")
    tensor = tc.inspect(tmp_path / "m.safetensors", stats=True, candidates=["mxfp4"], importance=file).tensors[0]
    errors = (x.astype(np.float64) - tc.quantize(x, "mxfp4").dequantize()) ** 2
    assert tensor.stats.schemes[0].noise_power == pytest.approx((importance * errors).sum(), rel=1e-9)


@pytest.mark.parametrize("module", [
    "vision_tower.encoder.layers.1.self_attn.q_proj",  # an importance matrix counts the model of text alone
    "model.layers.1.self_attn.q_proj.lora_A",
    "model.layers.x.self_attn.q_proj",
    "model.layers.1.mlp.experts.x.down_proj",
    "model.layers.1.mlp.router",
    "model.layers.1.self_attn.experts.0.q_proj",
])  # fmt: skip
def test_names_that_are_no_ones(tmp_path, module):
    x = samples.sample("weights", "float32")[:16]
    tc.save(tmp_path / "m.safetensors", {f"{module}.weight": x})
    parts = ["attn_q", "ffn_down", "ffn_down_exps", "ffn_gate"]
    matrices = {part: (samples.importance(COLUMNS), np.float32(1)) for part in parts}
    file = write_matrix(tmp_path / "i.gguf", matrices, lambda part: f"blk.1.{part}.weight")
    tensor = tc.inspect(tmp_path / "m.safetensors", stats=True, candidates=["mxfp4"], importance=file).tensors[0]
    errors = (x.astype(np.float64) - tc.quantize(x, "mxfp4").dequantize()) ** 2
    assert tensor.stats.schemes[0].noise_power == pytest.approx(errors.sum(), rel=1e-9)


@pytest.mark.parametrize("values, complaint", [
    (np.full(COLUMNS, np.nan, np.float32), "negative, NaN or infinite"),
    (np.full(COLUMNS, -1, np.float32), "negative, NaN or infinite"),
    (np.full(COLUMNS, np.inf, np.float32), "negative, NaN or infinite"),
    (np.ones(COLUMNS - 1, np.float32), "importance of 511 numbers"),
    (np.ones((3, COLUMNS), np.float32), "importance of 1536 numbers"),
    (np.ones(0, np.float32), "it has no numbers"),
    (np.ones(COLUMNS, bool), "its importance is bool"),
    (np.zeros(COLUMNS, np.float32), None),
    (np.full(COLUMNS, 3e38, np.float32), None),
    (np.ones((1, COLUMNS), np.float64), None),
])  # fmt: skip
def test_odd_importance(tmp_path, weights, values, complaint):
    tc.save(tmp_path / "m.safetensors", {NAMES[0]: weights[NAMES[0]]})
    tc.save(tmp_path / "i.safetensors", {NAMES[0]: values})
    options = {"clip": "mse", "importance": tmp_path / "i.safetensors"}
    if complaint:
        with pytest.raises((tc.CastError, OSError), match=complaint):
            tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", **options)
        assert not (tmp_path / "o.safetensors").exists()
    else:
        done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", **options)
        assert done.tensors[0].search == "clip mse, importance"


def test_a_truncated_file(tmp_path, weights, matrices):
    tc.save(tmp_path / "m.safetensors", weights)
    whole = write_matrix(tmp_path / "whole.gguf", matrices).read_bytes()
    for size in [0, 3, 24, 200, len(whole) // 2, len(whole) - 31]:  # the last is in a count
        (tmp_path / "i.gguf").write_bytes(whole[:size])
        with pytest.raises((tc.CastError, OSError)):
            tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", "int4-group", clip="mse", importance=tmp_path / "i.gguf")
        assert not (tmp_path / "o.safetensors").exists()


def test_verify_knows_searched_weights(tmp_path, weights, matrices, file):
    """Clipping is found without an option; importance with its file only, and the error says so."""
    (tmp_path / "in").mkdir()
    tc.save(tmp_path / "in/model.safetensors", weights)
    (tmp_path / "in/config.json").write_text("{}")
    tc.convert(tmp_path / "in", tmp_path / "clipped", "int4-group", clip="mse")
    found = tc.checkpoint.verify(tmp_path / "clipped", against=tmp_path / "in")
    assert found.recipes == ("4 weights are int4-group by compressed-tensors with clip mse",)
    tc.convert(tmp_path / "in", tmp_path / "weighed", "int4-group", clip="mse", importance=file)
    with pytest.raises(tc.CastError, match="no recipe of int4-group makes these bytes") as error:
        tc.checkpoint.verify(tmp_path / "weighed", against=tmp_path / "in")
    assert "importance" in error.value.hint
    found = tc.checkpoint.verify(tmp_path / "weighed", against=tmp_path / "in", importance=file)
    assert sum("with clip mse, importance" in sentence for sentence in found.recipes) == 1
