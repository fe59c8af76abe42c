# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors, and DLPack from peers."""

import sys

import ml_dtypes
import numpy as np
import pytest
from arrays import BITS, NUMPY_TYPES, codes, samples

import tensorcast as tc
from tensorcast import CastError, _core

torch = pytest.importorskip("torch")

TORCH_NAMES = [name for name in NUMPY_TYPES if BITS[name] >= 8 and hasattr(torch, name)]
CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def tensor_of(array):
    """A torch tensor of the same codes and type."""
    carrier = torch.from_numpy(codes(array).view(f"{'u' if array.itemsize == 1 else 'i'}{array.itemsize}").copy())
    return carrier.view(getattr(torch, array.dtype.name))


def codes_of(tensor):
    return tensor.contiguous().view(CARRIER[tensor.element_size()]).numpy().view(f"u{tensor.element_size()}")


def test_torch_has_the_types():
    assert len(TORCH_NAMES) == 18


@pytest.mark.parametrize("to", TORCH_NAMES)
@pytest.mark.parametrize("source", TORCH_NAMES)
def test_tensors_equal_arrays(source, to):
    array = samples(source)
    result = tc.cast(tensor_of(array), to)
    assert isinstance(result, torch.Tensor) and result.dtype == getattr(torch, to)
    assert np.array_equal(codes_of(result), codes(tc.cast(array, to)))


def test_torch_types_as_targets():
    assert tc.cast(np.float32([1]), torch.bfloat16).dtype == ml_dtypes.bfloat16
    assert tc.cast(torch.ones(2), torch.float8_e4m3fn).dtype == torch.float8_e4m3fn
    assert tc.cast(torch.ones(2), np.float64).dtype == torch.float64


def test_shapes_and_strides_of_tensors():
    matrix = torch.randn(40, 30, dtype=torch.bfloat16)
    expected = matrix.float().numpy()
    for view, array in [
        (matrix.T, expected.T),
        (matrix[::2, 1::3], expected[::2, 1::3]),
        (matrix[:0], expected[:0]),
        (matrix[3, 4], expected[3, 4]),
    ]:
        result = tc.cast(view, "float32")
        assert result.shape == view.shape and np.array_equal(result.numpy(), array)
    assert tc.cast(torch.ones(2, requires_grad=True), "float16").tolist() == [1, 1]
    assert tc.cast(torch.tensor([1 + 2j]).conj().imag, "float16").tolist() == [-2]  # a lazily negated view


class General:
    """Counts the calls that go through Python code."""

    def __init__(self, monkeypatch):
        from tensorcast._interop import _torch_cast

        self.calls, original = 0, _torch_cast.cast_tensor

        def counted(*arguments):
            self.calls += 1
            return original(*arguments)

        monkeypatch.setattr(_torch_cast, "cast_tensor", counted)

    def of(self, x, to="bfloat16", **options):
        before = self.calls
        return tc.cast(x, to, **options), self.calls - before


def test_plain_tensors_take_the_short_way(monkeypatch):
    tc.cast(torch.ones(1), "float16")  # loads what the short way needs
    general = General(monkeypatch)
    for x in (torch.randn(100), torch.randn(3, 4, 5), torch.randn(()), torch.empty(0, 3), torch.randn(1 << 17),
              torch.nn.Parameter(torch.randn(5), requires_grad=False), torch.randn(4, 6)[1:3]):  # fmt: skip
        result, calls = general.of(x)
        assert calls == 0 and type(result) is torch.Tensor and not result.requires_grad
        assert result.shape == x.shape and result.stride() == x.stride() and torch.equal(result, x.bfloat16())
        result.resize_(9)  # the memory is PyTorch's own
    with torch.no_grad():
        result, calls = general.of(torch.ones(2, requires_grad=True), torch.float8_e4m3fn, saturate=False)
        assert calls == 0 and result.dtype == torch.float8_e4m3fn and not result.requires_grad
    with torch.inference_mode():
        result, calls = general.of(torch.ones(2))
        assert calls == 0 and result.is_inference()
    with pytest.raises(tc.OutOfRangeError, match="element 70000"):
        general.of(torch.arange(70001.0), "int32", out_of_range="error", scale=30678.5)
    assert general.calls == 0


def test_other_tensors_take_the_long_way(monkeypatch):
    tc.cast(torch.ones(1), "float16")
    general = General(monkeypatch)
    with torch.device("cpu"):  # a function mode
        assert general.of(torch.ones(2))[1] == 1
    for x in (torch.randn(4, 6).T, torch.randn(4, 6)[:, ::2], torch.randn(3).expand(2, 3), torch.randn(2, requires_grad=True),
              torch.complex(torch.ones(2), torch.ones(2)).conj().imag, torch.empty(2, device="meta"),
              type("Named", (torch.Tensor,), {})([1.0, 2])):  # fmt: skip
        result, calls = general.of(x)
        assert calls == 1 and result.dtype == torch.bfloat16 and result.shape == x.shape
        assert x.is_meta or torch.equal(result.detach(), x.detach().bfloat16())
    assert general.of(torch.ones(2), report=True)[1] == general.of(torch.ones(2), copy=False)[1] == 1
    with pytest.raises(TypeError, match="dense"):
        general.of(torch.ones(2).to_sparse())
    assert general.calls == 11


def test_copy_and_out_of_tensors():
    x = torch.tensor([1.0, 2.0])
    assert tc.cast(x, "float32", copy=False) is x
    out = torch.empty(2, dtype=torch.float8_e5m2)
    result, report = tc.cast(x, "float8_e5m2", out=out, report=True)
    assert result is out and report.count == 2 and out.float().tolist() == [1, 2]
    for wrong in (torch.empty(3, dtype=torch.float16), torch.empty(2), np.empty(2, np.float16)):
        with pytest.raises(CastError, match="out must be"):
            tc.cast(x, "float16", out=wrong)
    with pytest.raises(CastError, match="overlaps"):
        tc.cast(x, "float32", out=x)


def test_pairs_of_float4():
    x = torch.tensor([[0.5, -6.0, 1.5, 3.0]])
    pairs = tc.cast(x, "float4_e2m1fn")
    assert pairs.dtype == torch.float4_e2m1fn_x2 and pairs.shape == (1, 2)
    assert pairs.view(torch.uint8).tolist() == [[0xF1, 0x53]]
    assert torch.equal(tc.cast(pairs, "float32"), x)
    assert torch.equal(tc.cast(pairs, "bfloat16"), x.bfloat16())
    with pytest.raises(CastError, match="even"):
        tc.cast(torch.ones(3), "float4_e2m1fn")


def test_tensors_that_are_refused():
    with pytest.raises(TypeError, match="PyTorch has no int4"):
        tc.cast(torch.ones(2), "int4")
    with pytest.raises(TypeError, match="no cast knows"):
        tc.cast(torch.ones(2, dtype=torch.complex64), "float32")
    with pytest.raises(TypeError, match="to_dense"):
        tc.cast(torch.ones(2).to_sparse(), "float32")
    with pytest.raises(ValueError, match="NumPy arrays"):
        tc.cast(torch.ones(2), "float16", packed=True)


class OnDevice:
    """What a CUDA tensor says of itself."""

    def __dlpack__(self, **_):
        raise AssertionError("its memory must not be asked for")

    def __dlpack_device__(self):
        return (2, 0)


def test_memory_of_a_device_is_refused_with_advice():
    with pytest.raises(CastError, match=r"on a device.*\.cpu\(\)"):
        tc.cast(OnDevice(), "float32")


class Peer:
    """A library that shares memory by DLPack and by nothing else; `versioned` False is one of before 2024."""

    def __init__(self, tensor, versioned=True):
        self.tensor, self.versioned = tensor, versioned

    def __dlpack__(self, *, stream=None, **options):
        if options and not self.versioned:
            raise TypeError("unexpected keyword")
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class ArrayApiPeer(Peer):
    """The same, and it follows the array API, so that results can go back to it."""

    def __array_namespace__(self):
        return torch


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", TORCH_NAMES)
def test_dlpack_in(name, versioned):
    array = samples(name)
    result = tc.cast(Peer(tensor_of(array), versioned), "float32")
    assert type(result) is np.ndarray and np.array_equal(codes(result), codes(tc.cast(array, "float32")))


@pytest.mark.parametrize("name", TORCH_NAMES)
def test_dlpack_out(name):
    array = np.float32([[0, 1, 2], [3, 4, 5]])
    result = tc.cast(ArrayApiPeer(torch.from_numpy(array).T), name)
    assert isinstance(result, torch.Tensor) and result.dtype == getattr(torch, name) and result.shape == (3, 2)
    assert np.array_equal(codes_of(result), codes(tc.cast(array.T, name)))


def test_dlpack_strides_shapes_and_lives():
    matrix = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    assert tc.cast(Peer(matrix.T[1:, ::2]), "float64").tolist() == matrix.T[1:, ::2].tolist()
    assert tc.cast(Peer(matrix[1, 2]), "float64").tolist() == 6
    assert tc.cast(Peer(matrix[:0]), "float64").shape == (0, 4)
    peer = Peer(matrix)
    assert tc.cast(peer, "bfloat16", copy=False) is peer
    result, report = tc.cast(peer, "float8_e4m3fn", report=True)
    assert result.shape == (3, 4) and report.count == 12
    array, name, shape = _core.from_dlpack(matrix.__dlpack__())
    assert array.ctypes.data == matrix.data_ptr() and (name, shape) == ("bfloat16", (3, 4))
    kept = torch.from_dlpack(Exporter(tc.cast(np.arange(1000.0), "bfloat16")))
    del matrix, peer
    assert array[2, 3] == 11 and kept[999] == 1000


class Exporter:
    def __init__(self, array, versioned=True):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **_):
        return _core.to_dlpack(self.array, self.versioned, False)

    def __dlpack_device__(self):
        return (1, 0)


def test_dlpack_of_types_under_8_bits():
    pairs = torch.tensor([[0xF1, 0x53]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    peer = Peer(pairs)
    assert tc.cast(peer, "float32").tolist() == [[0.5, -6.0, 1.5, 3.0]]
    assert tc.cast(peer, "int4").tolist() == [[0, -6, 1, 3]]
    single = tc.cast(np.float32([[1, -2, 3]]), "int4")
    assert tc.cast(Exporter(single), "float32").tolist() == [[1, -2, 3]]
    assert tc.cast(Exporter(single[:, ::-1]), "int4").tolist() == [[3, -2, 1]]
    with pytest.raises(BufferError, match="version 1.1"):
        _core.to_dlpack(single, False, False)


def test_dlpack_that_is_refused():
    with pytest.raises(TypeError, match="DLPack type"):
        tc.cast(Peer(torch.ones(2, dtype=torch.complex64)), "float32")
    with pytest.raises(TypeError, match="not a DLPack capsule"):
        _core.from_dlpack(object())
    capsule = torch.ones(2).__dlpack__()
    _core.from_dlpack(capsule)
    with pytest.raises(TypeError, match="used before"):
        _core.from_dlpack(capsule)
    with pytest.raises(BufferError, match="no type for"):
        tc.dlpack(np.array(["a"]))
    with pytest.raises(TypeError, match="out="):
        tc.cast(Peer(torch.ones(2)), "float16", out=np.empty(2, np.float16))


def test_dlpack_keeps_nothing():
    tensor = torch.ones(1 << 20)
    array = np.ones(1 << 20, np.float32)
    before = sys.getrefcount(array)
    for _ in range(200):
        tc.cast(Peer(tensor.clone()), "float16")
        torch.from_dlpack(Exporter(array))
        _core.to_dlpack(array, True, False)
        _core.to_dlpack(array, False, False)
    assert sys.getrefcount(array) == before


FLOATS = [name for name in TORCH_NAMES if "float" in name]


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", ["float32", "bfloat16", "float64"])
def test_gradients_pass_straight_through(source, to):
    x = torch.tensor([0.1, -2.0, 1e6], dtype=getattr(torch, source), requires_grad=True)
    y = tc.cast(x, to)
    assert y.requires_grad and y.dtype == getattr(torch, to)
    assert torch.equal(codes_view(y), codes_view(tc.cast(x.detach(), to)))
    y.backward(torch.ones_like(y))
    assert x.grad.dtype == x.dtype and x.grad.tolist() == [1, 1, 1]


def codes_view(tensor):
    return tensor.detach().contiguous().view(CARRIER[tensor.element_size()])


def test_gradients_with_scales_reports_and_layers():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y, report = tc.cast(x, "bfloat16", scale=[[2], [0.5]], report=True)
    (y.float() * torch.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert report.count == 4 and x.grad.tolist() == [[2, 20], [50, 500]]
    weight = torch.nn.Parameter(torch.ones(3, 2))
    loss = torch.nn.functional.linear(torch.ones(1, 2), tc.cast(tc.cast(weight, "float8_e4m3fn"), "float32")).sum()
    loss.backward()
    assert weight.grad.tolist() == [[1, 1]] * 3
    same = tc.cast(weight, "float32")
    assert same.requires_grad and same is not weight and tc.cast(weight, "float32", copy=False) is weight


def test_gradients_of_gradients():
    x = torch.tensor([2.0], requires_grad=True, dtype=torch.float64)
    (first,) = torch.autograd.grad((tc.cast(x, "float32", scale=3.0) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.item() == 3 * 6**2 * 3 and second.item() == 6 * 6 * 9


def test_gradients_that_cannot_pass():
    x = torch.ones(2, requires_grad=True)
    for to in ("int8", "bool", "float4_e2m1fn"):
        with pytest.raises(CastError, match=rf"x requires a gradient, and {to} cannot carry one; pass x.detach\(\)"):
            tc.cast(x, to)
        tc.cast(x.detach(), to)
        with torch.no_grad():
            assert not tc.cast(x, to).requires_grad
    with pytest.raises(CastError, match=r"out= cannot carry a gradient.*x.detach\(\)"):
        tc.cast(x, "float16", out=torch.empty(2, dtype=torch.float16))
    with pytest.raises(CastError, match=r"out.detach\(\)"):
        tc.cast(x.detach(), "float16", out=torch.empty(2, dtype=torch.float16, requires_grad=True))


@pytest.mark.parametrize("to", ["float16", "float8_e4m3fn", "int8", "float64"])
def test_memory_formats_are_kept(to):
    for x in (
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d),
        torch.randn(5, 4).T,
        torch.randn(6, 4)[::2, ::2],
        torch.randn(3, 1).expand(3, 4),
        torch.randn(4, 3, 2).permute(1, 2, 0),
    ):
        result = tc.cast(x, to)
        assert result.stride() == torch.empty_like(x, dtype=getattr(torch, to)).stride()
        assert torch.equal(codes_view(result), codes_view(tc.cast(x.contiguous(), to)))
        assert tc.cast(x, to, order="C").is_contiguous()
        _, report = tc.cast(x, to, report=True)
        assert report.count == x.numel()


def test_out_is_a_change_that_autograd_sees():
    w, out = torch.ones(3, requires_grad=True), torch.zeros(3)
    product = w * out
    tc.cast(torch.arange(3.0), "float32", out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    with torch.inference_mode():
        out = torch.zeros(3)
        assert tc.cast(torch.arange(3.0), "float32", out=out).tolist() == [0, 1, 2]


def test_out_whose_elements_overlap_is_refused():
    memory = torch.zeros(40)
    for out in (torch.zeros(1).expand(3), memory.as_strided((4, 4), (2, 1)), memory.as_strided((3, 3, 3), (6, 3, 2))):
        with pytest.raises(CastError, match="elements of out share memory"):
            tc.cast(torch.ones(out.shape), "float32", out=out)
    for out in (memory.as_strided((2, 2), (3, 2)), memory[::3], memory.view(5, 8).T, torch.zeros(0, 3).expand(0, 3)):
        assert torch.equal(tc.cast(torch.ones(out.shape), "float32", out=out), torch.ones(out.shape))
    with pytest.raises(CastError, match="conjugation or negation"):
        tc.cast(torch.ones(1), "float32", out=torch.tensor([1 + 2j]).conj().imag)


@pytest.mark.parametrize("left", [0, 8])
def test_a_tensor_whose_storage_was_freed_is_refused(left, tmp_path):
    x, out = torch.arange(4.0), torch.zeros(4, dtype=torch.float16)
    for tensor in (x, out):
        tensor.untyped_storage().resize_(min(left, tensor.nbytes - 1))
    whole = torch.arange(4.0)
    for call in (lambda: tc.cast(x, "float16", report=True), lambda: tc.cast(whole, "float16", out=out),
                 lambda: tc.cast(x, "float4_e2m1fn"), lambda: tc.save(tmp_path / "x.safetensors", {"x": x})):  # fmt: skip
        with pytest.raises(CastError, match="storage has .* bytes and its elements need .*: it was freed"):
            call()
    if not left:  # the short way asks for the address alone
        for call in (lambda: tc.cast(x, "float16"), lambda: torch.ops.tensorcast.cast(x, "float16")):
            with pytest.raises(CastError, match="it was freed"):
                call()


def test_default_devices_and_nested_tensors():
    with torch.device("meta"):
        pairs = tc.cast(torch.ones(2, 4, device="cpu"), "float4_e2m1fn")
        assert pairs.device.type == "cpu" and pairs.view(torch.uint8).tolist() == [[0x22, 0x22]] * 2
        assert tc.cast(pairs, "float32").tolist() == [[1] * 4] * 2
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
        with pytest.raises(TypeError, match=r"nested tensor.*unbind"):
            tc.cast(nested, "float16")
