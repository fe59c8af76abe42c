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


@pytest.mark.parametrize("options, complaint", [
    ({"budget": 4.1, "candidates": ["mxfp4"]}, "the smallest candidates need 4.25 bits on average, and the budget is 4.1"),
    ({"budget": 40}, "32"),
    ({"budget": "many"}, "budget"),
    ({"candidates": ["mxfp4"], "to": "nvfp4"}, "is of use with"),
    ({"budget": 5, "candidates": ["mxfp5"]}, 'there is no scheme "mxfp5"'),
    ({"budget": 5, "to": "nvfp4"}, "chooses schemes, so there is none to convert to"),
])  # fmt: skip
def test_what_is_refused(tmp_path, weights, options, complaint):
    tc.save(tmp_path / "m.safetensors", weights)
    with pytest.raises((tc.CastError, ValueError, TypeError), match=complaint):
        tc.convert(tmp_path / "m.safetensors", tmp_path / "o.safetensors", **options)
    assert not (tmp_path / "o.safetensors").exists()
