# SPDX-License-Identifier: Apache-2.0
"""CastNode and CastLikeNode against PyTorch's autograd of Tensor.to()."""

import math
import threading

import ml_dtypes
import numpy as np
import pytest
from arrays import ONNX_TYPES, codes, samples

import tensorcast as tc
from tensorcast import CastError

torch = pytest.importorskip("torch")

WIDE = ["float64", "float32", "float16", "bfloat16"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
SATURATED_BY_TORCH = {"float8_e4m3fn"}  # of the four; the others overflow
CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor):
    return tensor.detach().contiguous().view(CARRIER[tensor.element_size()])


def values(count, dtype, seed=5):
    generator = torch.Generator().manual_seed(seed)
    wide = torch.randn(count, dtype=torch.float64, generator=generator)
    return (wide * torch.exp2(torch.randint(-12, 12, (count,), generator=generator))).to(getattr(torch, dtype))


def same_numbers(ours, theirs):
    """Equal bits but for the payload of NaN."""
    nan = torch.isnan(ours.double())
    assert torch.equal(nan, torch.isnan(theirs.double()))
    assert torch.equal(bits(ours)[~nan], bits(theirs)[~nan])


@pytest.mark.parametrize("to", WIDE)
@pytest.mark.parametrize("source", WIDE)
def test_gradients_equal_autograd(source, to):
    x = values(4000, source).reshape(40, 100).requires_grad_()
    y = x.to(getattr(torch, to))
    grad = values(4000, to, seed=6).reshape(40, 100)
    node = tc.CastNode(to)
    same_numbers(node.forward(x), y)
    ours = node.backward(grad)
    if y is x:  # autograd has nothing to do there
        assert ours is grad
        return
    y.backward(grad)
    assert ours.dtype == x.dtype and ours.shape == x.shape
    # PyTorch narrows float64 to 16 bits by way of float32: two roundings. Ours is one, as float64 itself shows.
    if (to, source) in (("float64", "float16"), ("float64", "bfloat16")):
        exact = grad.numpy().astype(np.float16 if source == "float16" else ml_dtypes.bfloat16)
        close = torch.isclose(ours.double(), x.grad.double(), rtol=2e-2 if source == "bfloat16" else 2e-3, atol=1e-7)
        assert close.all()
        if source == "float16":
            assert np.array_equal(ours.numpy(), exact)
    else:
        same_numbers(ours, x.grad)


@pytest.mark.parametrize("to", WIDE)
@pytest.mark.parametrize("source", FLOAT8)
def test_gradients_of_float8_inputs_equal_autograd(source, to):
    """PyTorch goes by way of float32, so that gradients that float32 has are compared."""
    x = values(2000, "float32").clamp(-200, 200).to(getattr(torch, source)).requires_grad_()
    y = x.to(getattr(torch, to))
    grad = values(2000, "float32", seed=8).to(torch.bfloat16).to(getattr(torch, to))
    y.backward(grad)
    node = tc.CastNode(to, saturate=source in SATURATED_BY_TORCH)
    same_numbers(node.forward(x), y)
    same_numbers(node.backward(grad), x.grad)


@pytest.mark.parametrize("to", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
def test_gradients_of_float8_outputs_equal_autograd(source, to):
    x = values(2000, source).requires_grad_()
    y = x.to(getattr(torch, to))
    grad = values(2000, "float32", seed=9).clamp(-100, 100).to(getattr(torch, to))
    y.backward(grad)
    node = tc.CastNode(to, saturate=to in SATURATED_BY_TORCH)
    same_numbers(node.forward(x), y)
    same_numbers(node.backward(grad), x.grad)


@pytest.mark.parametrize("coefficient", [0.5, -2.0, 0.1, 0.0, 1 / 3])
@pytest.mark.parametrize("to", WIDE)
@pytest.mark.parametrize("source", WIDE)
def test_lda_coeff_scales_with_one_rounding(source, to, coefficient):
    node = tc.CastNode(to, lda_coeff=coefficient)
    node.forward(values(3000, source))
    grad = values(3000, to, seed=10)
    ours = node.backward(grad)
    assert ours.dtype == getattr(torch, source)
    assert torch.equal(bits(ours), bits(tc.cast(grad, source, scale=coefficient)))
    if to == "float64" or coefficient not in (0.5, -2.0, 0.0):
        return
    # A power of two changes no digits, unless they are those of a subnormal: autograd of a scaled loss agrees.
    x = values(3000, source).requires_grad_()
    (x.to(getattr(torch, to)) if source != to else x * 1).backward(grad)
    exact = (x.grad.double() * coefficient).to(x.dtype)
    normal = exact.double().abs() > 1e-3
    assert torch.equal(ours[normal], exact[normal])


def test_one_rounding_not_two():
    node = tc.CastNode("float32", lda_coeff=1 + 2.0**-30)
    node.forward(np.float16([0]))
    (ours,) = node.backward(np.float32([1 + 2.0**-11]))
    assert ours == np.float16(1 + 2.0**-10)
    assert np.float16(np.float32(1 + 2.0**-11) * np.float32(1 + 2.0**-30)) == 1  # what two roundings give


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("to", [*FLOAT8, "float8_e8m0fnu", "float4_e2m1fn", "float16", "bfloat16", "float32"])
def test_the_mask_zeroes_exactly_the_saturated(to, saturate):
    special = [0, -0.0, 6, 7, 447, 448, 449, 464, 465, 57344, 61439, 61440, 7e4, 1e38, math.inf, math.nan, 1e-45]
    array = np.concatenate([np.float32(special), -np.float32(special), values(3000, "float32").numpy() * 64])
    grad = np.full(array.shape, 1.5, np.float32)
    node = tc.CastNode(to, saturate=saturate, zero_saturated_gradient=True)
    node.forward(array)
    ones = (array[i : i + 1] for i in range(array.size))
    expected = [0 if tc.cast(one, to, saturate=saturate, report=True)[1].saturated else 1.5 for one in ones]
    assert node.backward(grad).tolist() == expected
    assert 0 in expected or not saturate or to in ("float16", "bfloat16", "float32")
    plain = tc.CastNode(to, saturate=saturate)
    plain.forward(array)
    assert plain.backward(grad) is grad


@pytest.mark.parametrize("to", ONNX_TYPES)
@pytest.mark.parametrize("source", ONNX_TYPES)
def test_forward_is_cast(source, to):
    array = samples(source)
    node = tc.CastNode(to)
    assert np.array_equal(codes(node.forward(array)), codes(tc.cast(array, to)))
    grad = np.ones(array.shape, np.float32)
    if "float" in source and "float" in to:
        result = node.backward(grad)
        assert result.dtype == array.dtype and result.shape == array.shape
        assert np.array_equal(result.astype(np.float32), grad)
    else:
        with pytest.raises(CastError, match="has no gradient, because .* is not floating point") as failure:
            node.backward(grad)
        assert failure.value.code == "unsupported"


def test_parameters():
    node = tc.CastNode("float16", name="n", specified_outputs_name=["out"], lda_coeff=2, opset=19)
    assert node.output_name == "out" and repr(node) == "CastNode(name='n', output_name='out')"
    assert node.parameters == {
        "name": "n",
        "specified_outputs_name": ("out",),
        "training": True,
        "lda_coeff": 2,
        "zero_saturated_gradient": False,
        "opset": 19,
        "to": "float16",
    }
    assert tc.CastNode("float16", name="n").output_name == "n_output"
    assert tc.CastLikeNode().output_name == "CastLike_output"
    for arguments, keywords, words in [
        ((), {}, "the type to cast to is undefined"),
        ((None,), {}, "the type to cast to is undefined"),
        (("UNDEFINED",), {}, "the type to cast to is undefined"),
        ((0,), {}, "the type to cast to is undefined"),
        (("int8",), {"specified_outputs_name": ["a", "b"]}, "has 2 names, but the node has 1 output"),
        (("int8",), {"lda_coeff": math.nan}, "lda_coeff must be a finite number"),
        (("int8",), {"lda_coeff": -math.inf}, "lda_coeff must be a finite number"),
        (("int4",), {"opset": 19}, "int4 is a type of Cast since opset 21"),
        (("int8",), {"opset": 13, "saturate": False}, "saturate is an attribute of Cast since opset 19"),
    ]:
        with pytest.raises(CastError, match=words):
            tc.CastNode(*arguments, **keywords)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        tc.CastNode("int8", colour=1)
    with pytest.raises(CastError, match="CastLike exists since opset 15"):
        tc.CastLikeNode(opset=13)


def test_backward_needs_a_forward_in_training():
    x = np.float32([1, 2])
    node = tc.CastNode("float16", name="n")
    with pytest.raises(CastError, match='node "n" \\(Cast\\): backward needs a forward before it'):
        node.backward(x)
    node.forward(x)
    for wrong, words in [
        (x[:1], "the gradient is float32 \\[1\\], but the output was float16 \\[2\\]"),
        (x.reshape(2, 1), "but the output was"),
        (np.int32([1, 2]), "a gradient is of a floating-point type, not int32"),
    ]:
        with pytest.raises(CastError, match=words):
            node.backward(wrong)
    assert node.backward(np.float16([3, 4])).dtype == np.float32
    inference = tc.CastNode("float16", training=False)
    assert inference(x).tolist() == [1, 2]
    with pytest.raises(CastError, match="backward needs a forward in training mode"):
        inference.backward(x)


def test_cast_like():
    node = tc.CastLikeNode(lda_coeff=0.5, zero_saturated_gradient=True)
    y = node.forward(np.float32([[1, 1e9]]), np.empty(0, ml_dtypes.float8_e5m2))
    assert y.dtype == ml_dtypes.float8_e5m2
    assert node.backward(np.float32([[3, 3]])).tolist() == [[1.5, 0]]
    tensor = torch.tensor([2.0], dtype=torch.float64)
    assert node(tensor, torch.empty(1, dtype=torch.bfloat16)).dtype == torch.bfloat16
    gradient = node.backward(torch.ones(1, dtype=torch.bfloat16))
    assert gradient.dtype == torch.float64 and gradient.tolist() == [0.5]


def test_autograd_calls_backward():
    node = tc.CastNode("float8_e4m3fn", lda_coeff=0.5, zero_saturated_gradient=True)
    x = torch.tensor([1.3, 1e9], requires_grad=True)
    first, second = node(x), node(torch.tensor([[3.0]]).requires_grad_())
    assert first.requires_grad and torch.equal(first.float(), torch.tensor([1.25, 448]))
    first.float().sum().backward()
    assert x.grad.tolist() == [0.5, 0]  # the node's own gradient, of its first forward
    assert node.backward(torch.ones(1, 1)).shape == (1, 1)  # of its last
    like = tc.CastLikeNode()
    like(x, torch.zeros(1, dtype=torch.bfloat16)).sum().backward()
    assert x.grad.tolist() == [1.5, 1]
    same = tc.CastNode("float32")(x)
    assert same is not x and same.requires_grad
    with torch.no_grad():
        assert not node(x).requires_grad
    assert not tc.CastNode("int8")(torch.ones(1, requires_grad=True)).requires_grad  # as of Tensor.to
    del second


def higher_derivatives(cast, x, count=4):
    """Of the sum of powers of the cast number: each is the gradient of the one before."""
    made = [(cast(x).double() ** 5).sum()]
    for _ in range(count):
        made += torch.autograd.grad(made[-1].sum(), x, create_graph=True)
    return made[1:]


@pytest.mark.parametrize("to", ["float64", "float32", "float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("source", WIDE)
def test_gradients_of_gradients_equal_autograd(source, to):
    x = torch.tensor([3.0, -1.5, 0.75], dtype=getattr(torch, source), requires_grad=True)
    expected = higher_derivatives(lambda x: x.to(getattr(torch, to)), x)
    for cast in (tc.CastNode(to), lambda x: tc.CastLikeNode()(x, torch.zeros(1, dtype=getattr(torch, to)))):
        for ours, theirs in zip(higher_derivatives(cast, x), expected, strict=True):
            assert ours.dtype == x.dtype
            same_numbers(ours, theirs)


def test_a_gradient_penalty_has_the_coefficient_and_the_mask():
    node = tc.CastNode("float16", lda_coeff=0.5, zero_saturated_gradient=True, out_of_range="saturate")
    x = torch.tensor([3.0, 1e9], requires_grad=True)
    y = node(x)
    (first,) = torch.autograd.grad((y.float() ** 2).sum(), x, create_graph=True)  # 2y * 0.5
    (second,) = torch.autograd.grad((first**2).sum(), x)  # 2 * first * 2 * 0.5 * 0.5
    assert first.tolist() == [3, 0] and second.tolist() == [3, 0]
    node(torch.ones(3, requires_grad=True))  # another forward changes nothing
    grad = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (first,) = torch.autograd.grad(y, x, grad, create_graph=True)
    (second,) = torch.autograd.grad(first, grad, torch.tensor([4.0, 4.0]))
    assert first.tolist() == [0.5, 0] and second.tolist() == [2, 0] and second.dtype == torch.float16


@pytest.mark.parametrize("saturate", [True, False])
def test_gradients_of_gradients_have_the_options_of_the_node(saturate):
    node = tc.CastNode("float8_e4m3fn", saturate=saturate)
    x, grad = torch.ones(1, requires_grad=True), torch.ones(1).to(torch.float8_e4m3fn).requires_grad_()
    (first,) = torch.autograd.grad(node(x), x, grad, create_graph=True)
    (second,) = torch.autograd.grad(first, grad, torch.tensor([1e9]))
    assert second.float().item() == 448 if saturate else second.float().isnan().all()


def test_kinds_and_sharing():
    array = np.float32([1, 2])
    node = tc.CastNode("float32")
    assert node.forward(array) is array and node.backward(array) is array
    tensor = torch.from_numpy(array)
    assert node.forward(tensor) is tensor
    assert isinstance(tc.CastNode("float16").forward(tensor), torch.Tensor)
    text = tc.CastNode("string").forward(tensor)
    assert text.tolist() == ["1.0", "2.0"]
    assert tc.CastNode("float64").forward(np.array(["1.5"])).tolist() == [1.5]
    scalar = tc.CastNode("float16")
    assert scalar.forward(np.float64(2)).shape == () and scalar.backward(np.float16(3)).shape == ()


def test_threads_may_share_a_node():
    node = tc.CastNode("float16")
    failures = []

    def work(count):
        for _ in range(200):
            y = node.forward(np.ones(count, np.float32))
            try:
                gradient = node.backward(y)
                if gradient.size != count:
                    failures.append(count)
            except CastError:  # another thread's forward came between, of another shape
                pass

    threads = [threading.Thread(target=work, args=(count,)) for count in (10, 1000, 100000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
