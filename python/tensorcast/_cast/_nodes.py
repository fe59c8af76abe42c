# SPDX-License-Identifier: Apache-2.0
"""Cast and CastLike as layers that train: forward, and backward for the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import _core
from . import _tensors
from .._arguments import plain_errors
from .._options import CastOptions, DTypeLike, shows_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._core import _SupportsDLPack

_Tensor = TypeVar("_Tensor", bound="_SupportsDLPack")


def _forward(core: Any, x: Any, *others: Any) -> Any:
    tensor = _tensors.to_core(x)
    ((_, done),) = core.forward(tensor, *map(_tensors.to_core, others))
    return _tensors.result(done, [(tensor, x)], _tensors.is_torch(x) and done.dtype != "string")


def _backward(core: Any, grad_output: Any) -> Any:
    tensor = _tensors.to_core(grad_output)
    done = core.backward(tensor)
    return _tensors.result(done, [(tensor, grad_output)], _tensors.is_torch(grad_output))


def _made(kind: type[Any], parameters: dict[str, Any]) -> Any:
    return kind(**parameters)


class _Node:
    """The part that both nodes share."""

    _core: Any

    def __init__(
        self,
        name: str,
        specified_outputs_name: Sequence[str],
        training: bool,
        lda_coeff: float,
        zero_saturated_gradient: bool,
        options: dict[str, Any],
    ) -> None:
        self._parameters = {
            "name": name,
            "specified_outputs_name": tuple(specified_outputs_name),
            "training": training,
            "lda_coeff": lda_coeff,
            "zero_saturated_gradient": zero_saturated_gradient,
            **options,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy waits for no gradient: forward() comes first again.
        return _made, (type(self), self._parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, without omitted options."""
        return dict(self._parameters)

    def _forward(self, x: Any, *others: Any) -> Any:
        if not _tensors.requires_grad(x):
            return _forward(self._core, x, *others)
        from .._interop._torch_nodes import node_forward

        # Several results may wait for their gradients, so each has what backward needs to itself.
        core = type(self)(**self._parameters)._core
        done = _forward(core, x.detach(), *others)
        self._core = core
        given = self._parameters
        options: dict[str, Any] = {name: given[name] for name in ("saturate", "round_mode") if name in given}
        return node_forward(x, done, partial(_backward, core), options)

    @property
    def output_name(self) -> str:
        """The name of the output: the specified one, or one made from the node's."""
        name: str = self._core.output_name
        return name

    @overload
    def backward(self, grad_output: npt.NDArray[Any] | np.generic) -> npt.NDArray[Any]: ...
    @overload
    def backward(self, grad_output: _Tensor) -> _Tensor: ...
    def backward(self, grad_output: Any) -> Any:
        """The gradient of the input of the last :meth:`forward`: ``cast(lda_coeff * grad_output, input's type)``.

        Straight-through, with a single rounding, under the node's ``saturate`` and ``round_mode``. This is our
        definition: the operators' texts have none. It is what PyTorch's autograd does for ``Tensor.to``, times what
        Graiphic's text calls the lda coeff, "the coefficient by which the loss derivative will be multiplied before
        being sent to the previous layer".

        Args:
            grad_output: array or tensor of the output's shape and of any floating-point type.

        Returns:
            An array or tensor of ``grad_output``'s kind, of the input's shape and type; ``grad_output`` itself where
            nothing changes.

        Raises:
            CastError: no forward in training mode before; an integer, bool or string end; another shape or a type that
                is not floating point.

        Examples:
            >>> node = tc.CastNode("float16", lda_coeff=0.5)
            >>> y = node.forward(np.float64([1, 2]))
            >>> node.backward(np.float16([4, 6]))
            array([2., 3.])
        """
        return _backward(self._core, grad_output)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._parameters['name']!r}, output_name={self.output_name!r})"


class CastNode(_Node):
    """Cast as a layer, with the parameters of Graiphic's (HAIBAL's) Cast node.

    Args:
        to: type of the output, as in :func:`cast`. It must be given.
        name: of the node, for messages and the output's name.
        specified_outputs_name: at most one name, of the output; without it the node's name and ``_output``.
        training: :meth:`forward` keeps what :meth:`backward` needs: the input's type and shape, not its data.
        lda_coeff: finite; the gradient is multiplied by it.
        zero_saturated_gradient: no gradient where :meth:`forward` saturated (one bit an element is kept for it).
        **options: ``saturate``, ``opset``, ``round_mode`` and the other conversion options of :func:`cast`.

    Raises:
        CastError: no type, more names than outputs, a coefficient that is not finite, options of another version.

    Examples:
        >>> node = tc.CastNode("float16", lda_coeff=0.5)
        >>> y = node.forward(np.float64([1, 2]))
        >>> node.backward(np.float16([4, 6]))
        array([2., 3.])

    Source: Graiphic's documentation of its Cast node; ONNX Cast 1 to 28.
    """

    @shows_options
    @plain_errors
    def __init__(
        self,
        to: DTypeLike | None = None,
        *,
        name: str = "",
        specified_outputs_name: Sequence[str] = (),
        training: bool = True,
        lda_coeff: float = 1.0,
        zero_saturated_gradient: bool = False,
        **options: Unpack[CastOptions],
    ) -> None:
        super().__init__(name, specified_outputs_name, training, lda_coeff, zero_saturated_gradient, {**options})
        if (isinstance(to, str) and to.upper() == "UNDEFINED") or (type(to) is int and to == 0):
            to = None  # ONNX's TensorProto.UNDEFINED
        self._core = _core.CastNode(
            to, name, list(specified_outputs_name), training, lda_coeff, zero_saturated_gradient, {**options}
        )
        self._parameters["to"] = _core.dtype_name(to)

    @overload
    def forward(self, x: npt.NDArray[Any] | np.generic) -> npt.NDArray[Any]: ...
    @overload
    def forward(self, x: _Tensor) -> _Tensor: ...
    def forward(self, x: Any) -> Any:
        """Casts ``x`` to the node's type. Returns an array or tensor of ``x``'s kind; ``x`` itself if nothing changes.

        For a tensor of PyTorch that requires a gradient, PyTorch's ``backward()`` gives that of :meth:`backward`, which
        has gradients itself (``create_graph=True``).

        Raises:
            CastError: as :func:`cast`; the message names the node.

        Examples:
            >>> tc.CastNode("bfloat16").forward(np.float32([0.1]))
            array([0.100098], dtype=bfloat16)
        """
        return self._forward(x)

    __call__ = forward


class CastLikeNode(_Node):
    """CastLike as a layer: as :class:`CastNode`, but the second input of :meth:`forward` gives the type.

    Examples:
        >>> node = tc.CastLikeNode()
        >>> node.forward(np.float32([1.5, 1e9]), np.empty(0, np.float16))
        array([1.5, inf], dtype=float16)
    """

    @shows_options
    @plain_errors
    def __init__(
        self,
        *,
        name: str = "",
        specified_outputs_name: Sequence[str] = (),
        training: bool = True,
        lda_coeff: float = 1.0,
        zero_saturated_gradient: bool = False,
        **options: Unpack[CastOptions],
    ) -> None:
        super().__init__(name, specified_outputs_name, training, lda_coeff, zero_saturated_gradient, {**options})
        self._core = _core.CastLikeNode(
            name, list(specified_outputs_name), training, lda_coeff, zero_saturated_gradient, {**options}
        )

    @overload
    def forward(self, x: npt.NDArray[Any] | np.generic, target_type: object) -> npt.NDArray[Any]: ...
    @overload
    def forward(self, x: _Tensor, target_type: object) -> _Tensor: ...
    def forward(self, x: Any, target_type: Any) -> Any:
        """Casts ``x`` to the dtype of ``target_type``, whose elements are ignored and which gets no gradient.

        Examples:
            >>> tc.CastLikeNode().forward(np.float32([1.5]), np.empty(0, np.int32))
            array([1], dtype=int32)
        """
        return self._forward(x, target_type)

    __call__ = forward
