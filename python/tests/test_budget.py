# SPDX-License-Identifier: Apache-2.0
"""tc.convert(budget=, candidates=): the size is kept, and the choice is the one of NumPy's errors by all combinations."""

import itertools

import block_samples as samples
import numpy as np
import pytest

import tensorcast as tc

CANDIDATES = ["nvfp4", "mxfp6", "mxfp8"]
NAMES = ["self_attn.o_proj", "mlp.down_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
JOINED = {"q_proj", "k_proj", "v_proj"}


@pytest.fixture
def weights():
    x = samples.sample("weights", "bfloat16")
    sizes = [(64, 1.0), (128, 0.1), (32, 4.0), (16, 2.0), (16, 0.5)]
    return {f"model.layers.0.{name}.weight": (np.roll(x, 9 * i, axis=0)[:rows].astype(np.float32) * scale).astype(x.dtype)
            for i, (name, (rows, scale)) in enumerate(zip(NAMES, sizes, strict=True))}  # fmt: skip


def groups_of(weights):
    joined = [name for name in weights if name.split(".")[-2] in JOINED]
    return [[name] for name in weights if name not in joined] + [joined]


def errors_and_bits(weights, spelled):
    found = {}
    for name, x in weights.items():
        for scheme in CANDIDATES:
            recipe = "compressed-tensors" if scheme == "nvfp4" else None
            q = tc.quantize(x, scheme, recipe=recipe if spelled else None)
            error = ((x.astype(np.float64) - q.dequantize()) ** 2).sum()
            found[name, scheme] = error, sum(np.asarray(part).nbytes for part in q.spelled("compressed-tensors").values()) * 8
    return found


@pytest.mark.parametrize("budget", [4.6, "5bits", 6, "7.25", 8.3])
def test_the_budget_is_kept_and_the_choice_is_best(tmp_path, weights, budget):
    tc.save(tmp_path / "m.safetensors", weights)
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", budget=budget, candidates=CANDIDATES)
    rows = [tensor for tensor in done.tensors if tensor.recipe]
    chosen = {row.name.rsplit(".", 1)[0] + ".weight": row for row in rows}
    limit = float(str(budget).removesuffix("bits"))
    elements = sum(x.size for x in weights.values())
    assert sum(row.elements for row in rows) == elements and len(rows) == len(weights)
    assert sum(row.bits * row.elements for row in rows) <= limit * elements + 1e-6
    costs = errors_and_bits(weights, spelled=False)
    groups = groups_of(weights)

    def cost(schemes):
        members = [(name, scheme) for group, scheme in zip(groups, schemes, strict=True) for name in group]
        return sum(costs[member][0] for member in members), sum(costs[member][1] for member in members)

    assert all(len({chosen[name].scheme for name in group}) == 1 for group in groups)
    best = min(error for error, bits in map(cost, itertools.product(CANDIDATES, repeat=len(groups))) if bits <= limit * elements)
    found, _ = cost([chosen[group[0]].scheme for group in groups])
    assert found <= best * (1 + 1e-9)
    assert all(" dB at " in row.choice for row in rows)


def test_candidates_may_name_recipes(tmp_path, weights):
    tc.save(tmp_path / "m.safetensors", weights)
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", budget=4.3, candidates=["mxfp4:even", "mxfp8:floor"])
    assert {(row.scheme, row.recipe) for row in done.tensors if row.recipe} == {("mxfp4", "even")}


def test_a_rule_for_one_of_joined_weights_is_for_all(tmp_path, weights):
    tc.save(tmp_path / "m.safetensors", weights)
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", budget=6, candidates=CANDIDATES,
                      rules={"q_proj": "mxfp8"})  # fmt: skip
    schemes = {row.name.split(".")[-2]: row.scheme for row in done.tensors if row.recipe}
    assert [schemes[name] for name in ("q_proj", "k_proj", "v_proj")] == ["mxfp8"] * 3
    assert sum(row.bits * row.elements for row in done.tensors) <= 6 * sum(row.elements for row in done.tensors)


def test_experts_of_a_layer_get_one_scheme(tmp_path):
    """As loaders fuse them; those of another layer, and the shared one, may have another."""
    x = samples.sample("weights", "bfloat16")
    names = [f"model.layers.{i}.mlp.experts.{e}.{m}_proj" for i in range(2) for e in range(2) for m in ("gate", "up", "down")]
    names += ["model.layers.0.mlp.shared_expert.down_proj"]
    weights = {f"{name}.weight": (np.roll(x, 7 * i, axis=0)[:16].astype(np.float32) * (1 + 3 * (i % 5))).astype(x.dtype)
               for i, name in enumerate(names)}  # fmt: skip
    tc.save(tmp_path / "m.safetensors", weights)
    seen = set()
    for budget in (4.6, 5.5, 6.5, 8.3):
        done = tc.convert(tmp_path / "m.safetensors", tmp_path / f"{budget}.safetensors", budget=budget, candidates=CANDIDATES)
        rows = [row for row in done.tensors if row.recipe]
        schemes = {}
        for row in rows:
            schemes.setdefault(row.name.split("experts.")[0] + str("experts" in row.name), set()).add(row.scheme)
        assert all(len(each) == 1 for each in schemes.values())
        assert sum(row.bits * row.elements for row in rows) <= budget * sum(row.elements for row in rows)
        seen |= {row.scheme for row in rows}
    assert len(seen) > 1


@pytest.mark.parametrize("options, complaint", [
    ({"budget": 4.1, "candidates": ["mxfp4"]}, "the smallest candidates need 4.25 bits on average, and the budget is 4.1"),
    ({"budget": 40}, "32"),
    ({"budget": "many"}, "budget"),
    ({"candidates": ["mxfp4"], "to": "nvfp4"}, "is of use with"),
    ({"budget": 5, "candidates": ["mxfp5"]}, 'there is no scheme "mxfp5"'),
    ({"budget": 5, "to": "nvfp4"}, "chooses schemes, so there is none to convert to"),
    ({"budget": 9, "candidates": ["q4_k", "q8_0"]}, "no candidate can be used for it: q4_k is a layout of GGUF"),
    ({"budget": 9, "rules": {"q_proj": "mxfp4", "k_proj": "mxfp8"}}, "rules name several schemes for weights that loaders join"),
    ({"budget": 9, "spelling": "gpt-oss", "candidates": ["mxfp8"]}, "no candidate can be used for it: gpt-oss has no mxfp8"),
])  # fmt: skip
def test_what_is_refused(tmp_path, weights, options, complaint):
    tc.save(tmp_path / "m.safetensors", weights)
    with pytest.raises((tc.CastError, ValueError, TypeError), match=complaint):
        tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", **options)
    assert not (tmp_path / "o.safetensors").exists()


def test_candidates_that_a_spelling_lacks_are_passed_over(tmp_path, weights):
    tc.save(tmp_path / "m.safetensors", weights)
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", budget=9, candidates=["q8_0", "mxfp4", "mxfp8"])
    assert {row.scheme for row in done.tensors if row.recipe} == {"mxfp8"}


def test_weights_that_are_not_finite(tmp_path, weights):
    weights[next(iter(weights))][3, 5] = np.nan
    tc.save(tmp_path / "m.safetensors", weights)
    with pytest.raises(tc.CastError, match="no candidate can be used for it: the weight has NaN or infinity") as error:
        tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", budget=5)
    assert error.value.tensor == next(iter(weights))


def test_weights_without_elements_take_no_bits(tmp_path, weights):
    empty = {"model.layers.1.mlp.down_proj.weight": np.zeros((0, 128), np.float32),
             "model.layers.1.mlp.up_proj.weight": np.zeros((128, 0), np.float32),
             "model.layers.2.mlp.up_proj.weight": np.ones((64, 1), np.float32)}  # fmt: skip
    tc.save(tmp_path / "m.safetensors", {**weights, **empty})
    options = {"budget": 6, "candidates": CANDIDATES, "force_layout": True}  # loaders of mxfp8 want more than one input
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", **options)
    rows = [row for row in done.tensors if row.recipe]
    assert len(rows) == len(weights) + 3
    assert sum(row.bits * row.elements for row in rows if row.elements) <= 6 * sum(row.elements for row in rows)


@pytest.mark.parametrize("scheme", ["fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8-channel", "int4-group"])
def test_weights_without_elements_in_each_scheme(tmp_path, scheme):
    shapes = {"model.layers.0.mlp.down_proj.weight": (0, 128), "model.layers.0.mlp.up_proj.weight": (128, 0)}
    tc.save(tmp_path / "m.safetensors", {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    done = tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", scheme, spelling="compressed-tensors")
    rows = [row for row in done.tensors if row.recipe]
    assert [(row.scheme, row.elements) for row in rows] == [(scheme, 0)] * 2


def folder(path, weights):
    path.mkdir(parents=True)
    tc.save(path / "model.safetensors", {**weights, "model.norm.weight": np.ones(512, np.float32)})
    (path / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    return path


def test_a_resumed_run_takes_the_choice_without_measuring(tmp_path, weights):
    source, options = folder(tmp_path / "in", weights), {"budget": 6, "candidates": CANDIDATES}
    first, second = [], []
    fresh = tc.convert(source, tmp_path / "a", progress=lambda *now: first.append(now), **options)
    measured = 2 * sum(x.nbytes for x in weights.values())
    assert first[0][1] == measured
    tc.checkpoint.plan(source, tmp_path / "b", **options)
    resumed = tc.convert(source, tmp_path / "b", progress=lambda *now: second.append(now), **options)
    assert resumed.resumed and not fresh.resumed
    assert measured not in {total for _, total, *_ in second}
    assert [(row.scheme, row.recipe, row.choice) for row in resumed.tensors] == [(row.scheme, row.recipe, row.choice) for row in fresh.tensors]
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()


def test_each_model_of_a_folder_has_the_budget(tmp_path, weights):
    """It is an average: one that all models keep is kept together."""
    small = {name: (x.astype(np.float32) * 1e-3).astype(x.dtype) for name, x in weights.items()}
    folder(tmp_path / "in/one", weights)
    folder(tmp_path / "in/two", small)
    done = tc.convert(tmp_path / "in", tmp_path / "out", budget=6, candidates=CANDIDATES)
    of_model = {"one": [], "two": []}
    for row in done.tensors:
        if row.recipe:
            of_model[row.file.split("/")[0]].append(row)
    for rows in of_model.values():
        assert sum(row.bits * row.elements for row in rows) <= 6 * sum(row.elements for row in rows)
    # The sizes of errors do not matter, as no model takes bits from the other.
    assert [row.scheme for row in of_model["one"]] == [row.scheme for row in of_model["two"]]
