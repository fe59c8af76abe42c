# SPDX-License-Identifier: Apache-2.0
"""torch.ops.tensorcast.cast under PyTorch's own compiler. scripts/checks/onnxruntime --models."""

import pytest

import tensorcast.torch  # noqa: F401

torch = pytest.importorskip("torch")


class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.ops.tensorcast.cast(x * 2, "float8_e4m3fn", saturate=False).float() + 1


def test_inductor_keeps_bits_and_layout():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    expected = Layer()(x)
    found = torch.compile(Layer(), fullgraph=True)(x)
    assert torch.equal(found, expected) and found.is_contiguous(memory_format=torch.channels_last)


def test_inductor_compiles_the_gradient():
    x = torch.randn(8, 3, requires_grad=True)
    compiled = torch.compile(lambda t: torch.ops.tensorcast.cast(t, "float16", scale=2.0).float().sum(), fullgraph=True)
    compiled(x).backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


@pytest.mark.parametrize("to", ["bfloat16", "float8_e5m2", "int8", "bool"])
def test_opcheck(to):
    options = {"out_of_range": "saturate"} if to == "int8" else {}
    for x in (torch.randn(3, 4, requires_grad=to == "bfloat16"), torch.randn(4, 6).t(),
              torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)):  # fmt: skip
        results = torch.library.opcheck(torch.ops.tensorcast.cast.default, (x, to), options)
        assert set(results.values()) == {"SUCCESS"}
