# SPDX-License-Identifier: Apache-2.0
"""tensorcast.torch: the operator under compilers, autograd and in modules."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError

torch = pytest.importorskip("torch")

import tensorcast.torch as tct
from torch import nn

FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


@pytest.mark.parametrize("to", [*FLOATS, "int8", "uint16", "bool", "float8_e8m0fnu"])
def test_the_operator_equals_cast(to):
    x = torch.randn(7, 33) * 300
    result = torch.ops.tensorcast.cast(x, to)
    assert result.dtype == getattr(torch, to) and torch.equal(bits(result), bits(tc.cast(x, to)))
    assert torch.equal(bits(tct.cast(x, getattr(torch, to))), bits(result))


def test_options():
    x = torch.tensor([1e9, -1.5, 2.5, 300])
    for to, options in [("float8_e4m3fn", {"saturate": False}), ("int8", {"out_of_range": "saturate"}),
                        ("int32", {"rounding": "nearest_even"}), ("float16", {"scale": 0.25, "threads": 1}),
                        ("float8_e5m2fnuz", {"opset": 19, "fnuz_inf": "flt_max"})]:  # fmt: skip
        assert torch.equal(bits(torch.ops.tensorcast.cast(x, to, **options)), bits(tc.cast(x, to, **options)))
    with pytest.raises(CastError, match="element 0"):
        torch.ops.tensorcast.cast(x, "int8", out_of_range="error")
    numbers = torch.tensor([300, -5])
    assert torch.ops.tensorcast.cast(numbers, "uint8", out_of_range="saturate").tolist() == [255, 0]
    assert torch.ops.tensorcast.cast(x, "float16", out_of_range="saturate")[0] == 65504
    for refused, to in [(numbers, "uint8"), (x, "float16")]:
        with pytest.raises(CastError, match="element 0"):
            torch.ops.tensorcast.cast(refused, to, out_of_range="error")
    with pytest.raises(TypeError, match="PyTorch has no int4"):
        torch.ops.tensorcast.cast(x, "int4")
    with pytest.raises(CastError, match="e4m3"):
        torch.ops.tensorcast.cast(x, "e4m3x")
    with pytest.raises(TypeError, match="no cast knows"):
        torch.ops.tensorcast.cast(torch.ones(1, dtype=torch.complex64), "float32")


def test_it_passes_the_checks_of_pytorch():
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    torch.library.opcheck(torch.ops.tensorcast.cast, (image, "float16"))
    torch.library.opcheck(torch.ops.tensorcast.cast, (torch.randn(4, 6)[:, ::2], "float32"))


def test_pytorch_sees_the_operator_where_it_looks():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Called(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    x = torch.ones(3)
    with Dispatched():
        torch.ops.tensorcast.cast(x, "float16")
    assert torch.ops.tensorcast.cast.default in seen
    seen.clear()
    with Called():
        torch.ops.tensorcast.cast.default(x, "float16")
    assert torch.ops.tensorcast.cast.default in seen
    with torch.profiler.profile() as profile:
        torch.ops.tensorcast.cast(x, "float16")
    assert "tensorcast::cast" in {event.key for event in profile.key_averages()}
    for wrong in ({"float_string": "plain"}, {"nothing": 1}):
        with pytest.raises(RuntimeError, match="argument"):
            torch.ops.tensorcast.cast(x, "float16", **wrong)
    with pytest.raises(RuntimeError, match="to"):
        torch.ops.tensorcast.cast(x, torch.float16)


def test_layouts_stay():
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for x in (image, torch.randn(4, 5).T, torch.randn(6, 8)[::2, 1::3], torch.randn(1, 5).expand(4, 5), torch.empty(0, 3)):
        result = torch.ops.tensorcast.cast(x, "bfloat16")
        assert result.stride() == torch.empty_like(x, dtype=torch.bfloat16).stride()
        assert torch.equal(result, x.bfloat16())
    assert torch.ops.tensorcast.cast(image, "float16").is_contiguous(memory_format=torch.channels_last)


def test_it_returns_a_new_tensor():
    x = torch.ones(3)
    result = torch.ops.tensorcast.cast(x, "float32")
    assert result.data_ptr() != x.data_ptr() and torch.equal(result, x)


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float8_e5m2"])
def test_the_gradient_is_straight_through(to):
    x = torch.tensor([0.1, -3.0, 1000.0], requires_grad=True)
    y = torch.ops.tensorcast.cast(x, to)
    assert y.requires_grad
    weights = torch.tensor([1.0, 2.0, 0.25])
    (torch.ops.tensorcast.cast(y, "float32") * weights).sum().backward()
    assert x.grad.tolist() == weights.tolist() and x.grad.dtype == torch.float32
    node = tc.CastNode(to, training=True)
    node.forward(x.detach())
    assert torch.equal(node.backward(weights), x.grad)


def test_the_gradient_has_the_scale_and_integers_have_none():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    torch.ops.tensorcast.cast(x, "float16", scale=4.0).sum().backward()
    assert x.grad.tolist() == [4, 4]
    assert not torch.ops.tensorcast.cast(x, "int32").requires_grad
    assert not torch.ops.tensorcast.cast(torch.tensor([1, 2]), "float32").requires_grad


BY_NAME = lambda x: torch.ops.tensorcast.cast(x, "float16", scale=2.0)
GENERAL = lambda x: tc.cast(x, torch.bfloat16, scale=2.0)


@pytest.mark.parametrize("cast", [BY_NAME, GENERAL], ids=["operator", "cast"])
def test_derivatives_of_torch_func(cast):
    x, one = torch.randn(3), torch.ones(3)
    expected = torch.full((3,), 2.0)
    value, tangent = torch.func.jvp(cast, (x,), (one,))
    assert torch.equal(value, cast(x)) and tangent.dtype == value.dtype and torch.equal(tangent.float(), expected)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, one)
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(cast(dual)).tangent.float(), expected)
    assert torch.equal(torch.func.grad(lambda x: cast(x).float().sum())(x), expected)
    for jacobian in (torch.func.jacfwd, torch.func.jacrev):
        assert torch.equal(jacobian(lambda x: cast(x).float())(x), torch.diag(expected))
    cube = lambda x: (cast(x).float() ** 3).sum()
    hessian = torch.func.hessian(cube)(x)
    assert torch.equal(hessian, torch.func.jacrev(torch.func.jacrev(cube))(x)) and torch.all(hessian.diagonal() != 0)
    rows = torch.randn(5, 3)
    assert torch.equal(torch.vmap(cast)(rows), cast(rows))
    assert torch.equal(torch.vmap(torch.func.grad(lambda x: cast(x).float().sum()))(rows), torch.full((5, 3), 2.0))
    integers = torch.func.jvp(lambda x: tc.cast(x, "int8").float(), (x,), (one,))[1]
    assert torch.equal(integers, torch.zeros(3))


def test_cast_is_the_operator_where_pytorch_traces():
    x = torch.randn(2, 3)
    narrow_and_back = lambda x: tc.cast(tc.cast(x, "float8_e4m3fn"), np.float32)
    assert narrow_and_back(x.to("meta")).shape == (2, 3)
    assert str(torch.jit.trace(narrow_and_back, (x,)).graph).count("tensorcast::cast") == 2

    class Module(nn.Module):
        def forward(self, x):
            return narrow_and_back(x)

    assert str(torch.export.export(Module(), (x,)).graph).count("tensorcast.cast") == 2
    for changed in (narrow_and_back, GENERAL, lambda x: tc.cast(x, "float32", copy=False) + 1,
                    lambda x: torch.func.jvp(GENERAL, (x,), (x,))[1]):  # fmt: skip
        assert torch.equal(torch.compile(changed, fullgraph=True, backend="aot_eager")(x), changed(x))
    weight = torch.randn(3, requires_grad=True)
    torch.compile(lambda w: GENERAL(w).float().sum(), fullgraph=True, backend="aot_eager")(weight).backward()
    assert weight.grad.tolist() == [2, 2, 2]


def test_what_the_operator_lacks_breaks_the_graph():
    x = torch.randn(3)
    for changed in (lambda x: tc.cast(x, "float16", report=True)[0], lambda x: tc.cast(x, "float16", scale=[1, 2, 3])):
        assert torch.equal(torch.compile(changed, backend="eager")(x), changed(x))
        with pytest.raises(CastError, match="no elements yet"):
            changed(x.to("meta"))


def test_the_compiler_learns_of_cast_when_it_is_loaded():
    code = ("import tensorcast as tc, torch; assert 'torch._dynamo' not in __import__('sys').modules;"
            "print(torch.compile(lambda x: tc.cast(x, 'float16'), fullgraph=True, backend='eager')(torch.ones(2)).dtype)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch.float16\n"
    assert "torch" not in subprocess.run([sys.executable, "-c", "import tensorcast, sys; print(*sys.modules)"],
                                         capture_output=True, text=True, check=True).stdout.split()  # fmt: skip


def test_a_scale_that_changes_does_not_compile_again():
    from torch._dynamo.testing import CompileCounterWithBackend

    x = torch.randn(2, 3)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x, scale: tc.cast(x, "float16", scale=scale), fullgraph=True, backend=counter)
    for i in range(12):
        assert torch.equal(compiled(x, 1.5 + i), tc.cast(x, "float16", scale=1.5 + i))
    assert counter.frame_count <= 3
    for of_tensor in (torch.tensor(2.5), torch.tensor([[2.0], [0.5]]), torch.tensor([1, 2, 3], dtype=torch.float64)):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, scale: tc.cast(x, "float16", scale=scale), fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(x, of_tensor), tc.cast(x, "float16", scale=of_tensor))


def test_a_scale_in_a_tensor():
    x, scale = torch.randn(2, 3), torch.tensor([[2.0], [0.5]])
    expected = tc.cast(x, "bfloat16", scale=scale)
    assert torch.equal(torch.ops.tensorcast.cast_scaled(x, "bfloat16", scale), expected)
    torch.library.opcheck(torch.ops.tensorcast.cast_scaled, (x.clone().requires_grad_(), "float16", scale))
    assert torch.equal(torch.vmap(lambda row, scale: tc.cast(row, "bfloat16", scale=scale))(x, scale), expected)
    assert torch.equal(torch.vmap(lambda row: tc.cast(row, "bfloat16", scale=torch.tensor(2.0)))(x), tc.cast(x, "bfloat16", scale=2))
    assert torch.equal(torch.vmap(lambda scale: tc.cast(x, "bfloat16", scale=scale))(scale[:, 0]),
                       torch.stack([tc.cast(x, "bfloat16", scale=2), tc.cast(x, "bfloat16", scale=0.5)]))  # fmt: skip
    gradient = torch.func.grad(lambda x: tc.cast(x, "float16", scale=scale).float().sum())(x)
    assert torch.equal(gradient, scale.expand(2, 3))
    with pytest.raises(CastError, match=r"scale.detach\(\)"):
        tc.cast(x, "float16", scale=scale.clone().requires_grad_())


def test_vmap_of_scalars_has_no_pairs():
    numbers = torch.tensor([1.0, 2, 3, 4])
    for cast in (torch.ops.tensorcast.cast, tc.cast):
        with pytest.raises(CastError, match="pairs"):
            cast(torch.tensor(1.0), "float4_e2m1fn")
        with pytest.raises(CastError, match="pairs"):
            torch.vmap(lambda number: cast(number, "float4_e2m1fn"))(numbers)
        pairs = torch.vmap(lambda row: cast(row, "float4_e2m1fn"))(numbers.reshape(2, 2))
        assert pairs.view(torch.uint8).tolist() == [[0x42], [0x65]]
        with pytest.raises(CastError, match="pairs"):
            torch.vmap(lambda pair: cast(pair, "float32"))(pairs[:, 0])


@pytest.mark.parametrize("to, options", [("float16", {"out_of_range": "never"}), ("float4_e2m1fn", {"scale": float("nan")}),
                                         ("float8_e8m0fnu", {"round_mode": "even"}), ("int8", {"opset": -1})])  # fmt: skip
def test_meta_refuses_what_a_run_refuses(to, options):
    for device in ("cpu", "meta"):
        with pytest.raises(CastError):
            torch.ops.tensorcast.cast(torch.ones(2, 2, device=device), to, **options)


def test_script_calls_the_operator():
    @torch.jit.script
    def narrow(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.tensorcast.cast(x, "float8_e4m3fn", saturate=False)

    x = torch.tensor([0.1, 1e9])
    assert "tensorcast::cast" in str(narrow.graph) and torch.equal(bits(narrow(x)), bits(tc.cast(x, "float8_e4m3fn", saturate=False)))


class Foreign(torch.Tensor):
    """A class of tensors, such as those of torchao, that takes no operators of others."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError(f"{cls.__name__} dispatch: attempting to run an unimplemented operator")


def test_tensors_that_take_no_operators_are_refused():
    for cast in (tc.cast, tct.cast):
        with pytest.raises(TypeError, match=r"Foreign does not take operators of others.*dequantize"):
            cast(Foreign(torch.ones(2)), "float16")
        with pytest.raises(TypeError, match="unbind"):
            cast(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "float16")


def test_distributed_tensors_cast_their_own_parts():
    """In a process of its own, as one of two."""
    pytest.importorskip("torch.distributed.tensor")
    code = """
import torch, tensorcast as tc
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
import torch.distributed as dist
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
local = torch.tensor([[0.1, 300.0, 2.0, 3.0]])
for placement, shape in ((Shard(0), (2, 4)), (Shard(1), (1, 8)), (Replicate(), (1, 4))):
    x = DTensor.from_local(local, mesh, [placement])
    for y, expected in ((tc.cast(x, "float8_e4m3fn"), tc.cast(local, "float8_e4m3fn")),
                        (torch.ops.tensorcast.cast(x, "int8", scale=2.0), tc.cast(local, "int8", scale=2.0)),
                        (tc.cast(x, "bfloat16", scale=torch.tensor(2.0)), tc.cast(local, "bfloat16", scale=2.0))):
        assert type(y) is DTensor and y.placements == (placement,) and y.shape == shape, (y, placement)
        assert torch.equal(y.to_local().view(torch.uint8), expected.view(torch.uint8))
assert tc.cast(DTensor.from_local(local, mesh, [Shard(0)]), "float4_e2m1fn").placements == (Shard(0),)
assert tc.cast(DTensor.from_local(local, mesh, [Partial()]), "bfloat16").placements in ((Replicate(),), (Shard(0),), (Shard(1),))
random = {"rounding": "stochastic", "seed": 2**63}
assert tc.cast(DTensor.from_local(local, mesh, [Shard(0)]), "bfloat16", **random).placements == (Replicate(),)
whole = tc.cast(DTensor.from_local(local, mesh, [Replicate()]), "bfloat16", **random).to_local()
assert torch.equal(whole.view(torch.uint8), tc.cast(local, "bfloat16", **random).view(torch.uint8))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


class Exported(nn.Module):
    def __init__(self, cast):
        super().__init__()
        self.cast = cast

    def forward(self, x):
        return self.cast(x) + 1


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize(
    "cast, expected",
    [
        (lambda x: torch.ops.tensorcast.cast(x, "float16"), [{"to": 10}]),
        (lambda x: tc.cast(tc.cast(x, "float8_e4m3fn", saturate=False), "float32"), [{"to": 17, "saturate": 0}, {"to": 1}]),
    ],
)
def test_export_to_onnx_writes_cast(cast, expected, dynamo, tmp_path):
    onnx = pytest.importorskip("onnx")
    if dynamo:
        pytest.importorskip("onnxscript")
    path = tmp_path / "m.onnx"
    torch.onnx.export(Exported(cast), (torch.randn(2, 3),), path, dynamo=dynamo, opset_version=20, verbose=False)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    casts = [node for node in model.graph.node if node.op_type == "Cast" and not node.domain]
    assert [{attribute.name: attribute.i for attribute in node.attribute} for node in casts] == expected


@pytest.mark.parametrize("dynamo", [True, False])
def test_export_refuses_what_cast_lacks(dynamo, tmp_path):
    if dynamo:
        pytest.importorskip("onnxscript")
    module = Exported(lambda x: torch.ops.tensorcast.cast(x, "float16", scale=2.0))
    with pytest.raises(Exception, match="ONNX's Cast has no scale") as caught:
        torch.onnx.export(module, (torch.ones(2),), tmp_path / "m.onnx", dynamo=dynamo, opset_version=20, verbose=False)
    assert not (tmp_path / "m.onnx").exists(), caught


@pytest.mark.parametrize("source, to, message", [
    (torch.float32, "float8_e4m3fn", "Cast to float8_e4m3fn needs opset 19, and this export has 18"),
    (torch.float8_e4m3fn, "float32", "Cast from float8_e4m3fn needs opset 19, and this export has 18"),
    (torch.float8_e5m2, "float8_e8m0fnu", "Cast to float8_e8m0fnu needs opset 24, and this export has 18"),
])  # fmt: skip
def test_export_of_float8_needs_its_opset(source, to, message):
    module = Exported(lambda x: torch.ops.tensorcast.cast(x, to))
    with pytest.raises(Exception, match="ONNX") as refused:
        torch.onnx.export(module, (torch.ones(3).to(source),), dynamo=True, opset_version=18, verbose=False)
    causes = []
    while (error := refused.value if not causes else causes[-1].__cause__) is not None:
        causes.append(error)
    assert any(message in str(each) for each in causes)


@pytest.mark.parametrize("cast, opset", [(lambda x: torch.ops.tensorcast.cast(x, "float8_e4m3fn"), 19),
                                         (lambda x: torch.ops.tensorcast.cast(x, "bfloat16"), 13)])  # fmt: skip
def test_the_older_exporter_writes_what_the_opset_has(cast, opset, tmp_path):
    onnx = pytest.importorskip("onnx")

    class Only(Exported):
        def forward(self, x):
            return torch.ops.tensorcast.cast(self.cast(x), "float32")

    path = tmp_path / "m.onnx"
    for version in (opset - 1, opset):
        export = lambda version=version: torch.onnx.export(Only(cast), (torch.ones(2),), path, dynamo=False, opset_version=version)
        if version < opset:
            with pytest.raises(Exception, match=f"since opset {opset}; export with opset_version={opset}"):
                export()
            continue
        export()
        onnx.checker.check_model(onnx.load(path), full_check=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        y = torch.ops.tensorcast.cast(self.linear(x), "float8_e4m3fn", saturate=False)
        return torch.ops.tensorcast.cast(y, "float32") + x


def test_compile():
    torch.manual_seed(0)
    block, x = Block(), torch.randn(4, 8, requires_grad=True)
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
    for count in (4, 6):
        x = torch.randn(count, 8, requires_grad=True)
        expected = block(x)
        assert torch.equal(compiled(x), expected)
        (ours,) = torch.autograd.grad(compiled(x).sum(), x)
        (theirs,) = torch.autograd.grad(expected.sum(), x)
        assert torch.equal(ours, theirs)


def test_export():
    block, x = Block(), torch.randn(4, 8)
    exported = torch.export.export(block, (x,), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2)}})
    assert "tensorcast.cast" in str(exported.graph)
    for count in (4, 9):
        x = torch.randn(count, 8)
        assert torch.equal(exported.module()(x), block(x))


def test_meta_and_vmap():
    fake = torch.ops.tensorcast.cast(torch.ones(2, 3, device="meta"), "float16")
    assert fake.device.type == "meta" and fake.shape == (2, 3) and fake.dtype == torch.float16
    x = torch.randn(5, 3)
    assert torch.equal(torch.vmap(lambda row: torch.ops.tensorcast.cast(row, "float16"), in_dims=1)(x), x.T.half())


def test_pairs_of_float4():
    x = torch.tensor([[0.5, -6.0, 1.5, 3.0]])
    pairs = torch.ops.tensorcast.cast(x, "float4_e2m1fn")
    assert pairs.view(torch.uint8).tolist() == [[0xF1, 0x53]]
    assert torch.equal(torch.ops.tensorcast.cast(pairs, "float32"), x)
    assert torch.ops.tensorcast.cast(torch.ones(2, 6, device="meta"), "float4_e2m1fn").shape == (2, 3)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, ids):
        return self.head(self.norm(self.embed(ids)))


def test_convert_module():
    torch.manual_seed(1)
    model = Tied()
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.norm.bias.requires_grad_(False)
    assert tct.convert_module(model, {"norm": "float32", "weight$": torch.bfloat16, "table": "int8"}) is model
    assert model.norm.weight.dtype == torch.float32 and not model.norm.bias.requires_grad
    assert model.head.weight is model.embed.weight and model.head.weight.requires_grad
    assert torch.equal(model.embed.weight, tc.cast(expected["embed.weight"], "bfloat16"))
    assert model.table.dtype == torch.int8 and "table" in model.state_dict()


def test_convert_module_that_computes_in_another_type():
    torch.manual_seed(2)
    model, ids = Tied(), torch.tensor([[1, 2, 3]])
    reference = copy.deepcopy(model)
    with torch.no_grad():
        rounded = tc.cast(tc.cast(reference.embed.weight, "float8_e4m3fn"), "float32")
        reference.embed.weight.copy_(rounded)
    tct.convert_module(model, {"embed|head": "float8_e4m3fn"}, compute_dtype="float32")
    assert model.embed.parametrizations.weight.original.dtype == torch.float8_e4m3fn
    assert model.embed.parametrizations.weight.original is model.head.parametrizations.weight.original
    assert torch.equal(model(ids), reference(ids))
    layer = tct.convert_module(nn.Linear(3, 2), {"weight": "float8_e5m2"}, compute_dtype="float32")
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad.float().tolist() == [[1, 1, 1]] * 2


def test_convert_module_changes_nothing_after_an_error():
    model = Tied()
    before = {name: tensor.dtype for name, tensor in model.state_dict().items()}
    for rules, message in [({"weight": "float16", "absent": "int8"}, "no tensor of the model matches 'absent'"),
                           ({"embed": "float16", "head": "bfloat16"}, "two types"), ({"norm": "e4m3x"}, "e4m3")]:  # fmt: skip
        with pytest.raises(CastError, match=message):
            tct.convert_module(model, rules)
    assert {name: tensor.dtype for name, tensor in model.state_dict().items()} == before


def test_numpy_is_not_taken():
    with pytest.raises((TypeError, RuntimeError)):
        torch.ops.tensorcast.cast(np.ones(2), "float16")
