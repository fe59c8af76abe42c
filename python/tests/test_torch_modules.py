# SPDX-License-Identifier: Apache-2.0
"""tensorcast.torch.convert_module: names, shared tensors, and buffers that modules update."""

import copy

import pytest

import tensorcast as tc
from tensorcast import CastError

torch = pytest.importorskip("torch")
import tensorcast.torch as tct
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, 4)
        self.lm_head = nn.Linear(4, 4, bias=False)
        self.lm_head.weight = self.embed.weight


@pytest.mark.parametrize("compute", [None, "float32"])
@pytest.mark.parametrize("rule", ["lm_head", "embed", "weight"])
def test_a_rule_for_one_name_is_one_for_all(rule, compute):
    model = tct.convert_module(Tied(), {rule: "bfloat16"}, compute_dtype=compute)
    stored = [dict(layer.named_parameters()).popitem()[1] for layer in (model.embed, model.lm_head)]
    assert stored[0] is stored[1] and stored[0].dtype == torch.bfloat16 and len(list(model.parameters())) == 1
    with pytest.raises(CastError, match=r"embed.weight and lm_head.weight are one tensor, and get two types"):
        tct.convert_module(Tied(), {"lm_head": "bfloat16", "embed": "float16"})


def test_parameters_on_one_memory_stay_on_one():
    model = Tied()
    model.lm_head.weight = nn.Parameter(model.embed.weight.detach())
    tct.convert_module(model, {"lm_head": "bfloat16"})
    assert model.lm_head.weight.data_ptr() == model.embed.weight.data_ptr() and model.embed.weight.dtype == torch.bfloat16


def test_a_view_that_negates_is_another_tensor():
    pairs = torch.complex(torch.ones(3), torch.arange(3.0))
    model = nn.Module()
    model.register_buffer("a", pairs.imag)
    model.register_buffer("b", pairs.conj().imag)
    tct.convert_module(model, {"": "float16"})
    assert model.a.tolist() == [0, 1, 2] and model.b.tolist() == [0, -1, -2]


@pytest.mark.parametrize("compute", [None, "float32"])
def test_the_second_name_of_a_shared_module(compute):
    model = nn.Module()
    model.first = nn.Linear(3, 3)
    model.second = model.first
    keys = list(model.state_dict())
    tct.convert_module(model, {r"second\.weight": "bfloat16"}, compute_dtype=compute)
    state = model.state_dict()
    assert sorted(state) == sorted(keys) and {state[f"{name}.weight"].dtype for name in ("first", "second")} == {torch.bfloat16}
    assert state["first.bias"].dtype == torch.float32
    with pytest.raises(CastError, match="first.bias and second.bias are one tensor"):
        tct.convert_module(model, {"first.bias": "float16", "second.bias": "bfloat16"})


def test_a_second_call_knows_the_same_names():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    keys = list(model.state_dict())
    tct.convert_module(model, {r"^0\.weight$": "float8_e4m3fn", "running_mean": "bfloat16"}, compute_dtype="float32")
    weight = tc.cast(model.state_dict()["0.weight"], "float32")
    with pytest.raises(CastError, match="no tensor of the model matches 'parametrizations'"):
        tct.convert_module(model, {"parametrizations": "float16"})
    tct.convert_module(model, {r"^0\.weight$": "float16"}, compute_dtype="float64")
    assert model.state_dict()["0.weight"].dtype == torch.float16 and model[0].weight.dtype == torch.float64
    tct.convert_module(model, {r"^0\.weight$": "bfloat16", r"^1\.running_mean$": "float32"})
    assert model[0].weight.dtype == torch.bfloat16 and torch.equal(model[0].weight, weight.bfloat16())
    assert model[1].running_mean.dtype == torch.float32 and sorted(model.state_dict()) == sorted(keys)


@pytest.mark.parametrize("stored", ["bfloat16", "float16", "float64"])
def test_buffers_that_a_module_updates_are_stored(stored):
    torch.manual_seed(1)
    norm, reference = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    tct.convert_module(norm, {"running": stored}, compute_dtype="float32")
    for _ in range(50):
        batch = torch.randn(64, 4) * 3 + 5
        assert torch.allclose(norm(batch), reference(batch), atol=1e-4)
    state = norm.state_dict()
    assert state["running_mean"].dtype == getattr(torch, stored) and state["num_batches_tracked"] == 50
    for name in ("running_mean", "running_var"):
        assert torch.allclose(state[name].float(), reference.state_dict()[name], rtol=0.05)
        assert torch.equal(getattr(norm, name), state[name].float())
    norm.eval(), reference.eval()
    before = state["running_mean"].clone()
    assert torch.allclose(norm(batch), reference(batch), atol=0.1) and torch.equal(norm.state_dict()["running_mean"], before)


class Counter(nn.Module):
    """Updates its buffers in place, by assignment, and outside of forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x):
        seen = self.seen
        assert self.seen is seen
        seen += x
        self.last = x * 2
        return x + self.seen + self.last

    def reset(self):
        self.seen.zero_()


def test_other_ways_to_update_a_buffer():
    model, reference = Counter(), Counter()
    tct.convert_module(model, {"seen|last": "float16"}, compute_dtype="float32")
    for training in (True, False):
        model.train(training), reference.train(training)
        for x in (torch.tensor([1.0, 2.0]), torch.tensor([0.5, -3.0])):
            assert torch.equal(model(x), reference(x))
            for name, value in reference.state_dict().items():
                assert torch.equal(model.state_dict()[name].float(), value) and model.state_dict()[name].dtype == torch.float16
    model.reset()
    assert model.state_dict()["seen"].tolist() == [0, 0] and model.seen.tolist() == [0, 0]
    assert model.seen.tolist() == [0, 0]
    model.load_state_dict({"seen": torch.tensor([7.0, 8]), "last": torch.zeros(2)})
    assert model.seen.tolist() == [7, 8]
    again = copy.deepcopy(model)
    again(torch.ones(2))
    assert again.seen.tolist() == [8, 9] and model.seen.tolist() == [7, 8]


def test_what_a_narrower_compute_type_leaves_alone():
    model = Counter()
    model.seen.copy_(torch.tensor([1 + 2**-20, 0]))
    tct.convert_module(model, {"seen": "float64"}, compute_dtype="bfloat16")
    model(torch.tensor([0.0, 1.0]))
    assert model.state_dict()["seen"].tolist() == [1 + 2**-20, 1]


def test_compiled_modules_update_buffers():
    norm, reference = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    tct.convert_module(norm, {"running": "float64"}, compute_dtype="float32")
    compiled = torch.compile(norm, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        batch = torch.randn(8, 4) + 5
        assert torch.allclose(compiled(batch), reference(batch), atol=1e-5)
    assert torch.allclose(norm.state_dict()["running_mean"].float(), reference.running_mean, atol=1e-5)


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", torch.arange(3.0), persistent=False)
        self.register_buffer("kept", torch.arange(3.0))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight + self.inv_freq + self.kept


@pytest.mark.parametrize("compute", [None, "float32"])
def test_state_dict_keeps_its_keys(compute):
    model = Rotary()
    original = model.state_dict()
    tct.convert_module(model, {"": "bfloat16"}, compute_dtype=compute)
    assert sorted(model.state_dict()) == sorted(original) == ["kept", "weight"]
    assert model.load_state_dict(original) == ([], [])
    fresh = Rotary()
    assert fresh.load_state_dict(model.state_dict()) == ([], [])
    assert torch.equal(model(torch.ones(3)).float(), fresh(torch.ones(3)))
    tct.convert_module(model, {"inv_freq": "float16"})
    assert "inv_freq" not in model.state_dict() and model.inv_freq.dtype == torch.float16


def test_rules_as_those_of_files():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

        def forward(self, x):
            return self.norm(self.linear(x))

    model = tct.convert_module(Net(), {"norm": "float32", r"\.weight$": "float8_e4m3fn", "": "bfloat16"}, compute_dtype="bfloat16")
    for _ in range(2):  # the example of the documentation, also a second time
        assert model(torch.ones(2, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16
        tct.convert_module(model, {"norm": "float32", r"\.weight$": "float8_e4m3fn", "": "bfloat16"}, compute_dtype="bfloat16")
    rules = [tc.Rule("norm"), tc.Rule(rank=1), tc.Rule("linear", "float16", scale=2.0)]
    model, before = Net(), Net().state_dict()
    model.load_state_dict(before)
    stored = tct.convert_module(model, rules).state_dict()
    assert {name: tensor.dtype for name, tensor in stored.items()} == {
        "linear.weight": torch.float16, "linear.bias": torch.float32, "norm.weight": torch.float32, "norm.bias": torch.float32}  # fmt: skip
    assert torch.equal(stored["linear.weight"], (before["linear.weight"] * 2).half())
    with pytest.raises(tc.CastError, match="kind= of a rule is for files"):
        tct.convert_module(Net(), [tc.Rule(kind="attention", to="float16")])


def test_stochastic_rounding_goes_by_names():
    """As in files and mappings: equal tensors are not rounded alike."""
    model = nn.ModuleDict({name: nn.Linear(20, 20, bias=False) for name in "abcdefgh"})
    model["b"].weight.data.copy_(model["a"].weight.data)
    options = {"rounding": "stochastic", "seed": 2**64 - 3}
    expected = tc.cast(model.state_dict(), "float8_e4m3fn", **options)
    made = tct.convert_module(model, {"": "float8_e4m3fn"}, **options).state_dict()
    assert all(torch.equal(made[name].view(torch.uint8), expected[name].view(torch.uint8)) for name in expected)
    assert not torch.equal(made["a.weight"].view(torch.uint8), made["b.weight"].view(torch.uint8))
    with pytest.raises(tc.CastError, match="not -1"):
        tct.convert_module(nn.Linear(2, 2), {"": "float16"}, rounding="stochastic", seed=-1)


def test_what_is_no_module_or_cannot_be_converted_yet():
    rules = {"weight": "bfloat16"}
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module, not OrderedDict; tensorcast.cast\(\) takes mappings"):
        tct.convert_module(nn.Linear(2, 2).state_dict(), rules)
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module, not Tensor; tensorcast.cast\(\) takes tensors"):
        tct.convert_module(torch.ones(2), rules)
    with pytest.raises(CastError, match=r"the regular expression '\(' is wrong: missing \)"):
        tct.convert_module(nn.Linear(2, 2), {"(": "bfloat16"})
    lazy = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(CastError, match="module '0' has parameters without a shape yet; call the model once"):
        tct.convert_module(lazy, rules)
    lazy(torch.ones(1, 3))
    assert tct.convert_module(lazy, rules)[0].weight.dtype == torch.bfloat16
    scripted = torch.jit.trace(nn.Linear(2, 2), torch.ones(2))
    with pytest.raises(CastError, match="is a ScriptModule, which cannot cast tensors that are read; leave compute_dtype out"):
        tct.convert_module(scripted, rules, compute_dtype="float32")
    assert scripted.weight.dtype == torch.float32
    assert tct.convert_module(scripted, {"": "bfloat16"})(torch.ones(2).bfloat16()).dtype == torch.bfloat16
    traced = torch.jit.trace(tct.convert_module(nn.Linear(2, 2), rules, compute_dtype="float32"), torch.ones(2))
    assert traced(torch.ones(2)).dtype == torch.float32
