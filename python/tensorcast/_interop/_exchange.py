# SPDX-License-Identifier: Apache-2.0
"""Tensors of other libraries, by DLPack and without copying: the result is of the library that the input came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core
from .._cast import _numpy_types
from .._errors import CastError

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import CapsuleType

_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_CPU = (1, 0)


def is_tensor(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")


def is_jax(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


def is_narrow_jax(x: Any) -> bool:
    """Whether it is an array of JAX of a type under 8 bits, which JAX does not lend by DLPack."""
    if not is_jax(x):
        return False
    try:
        return _numpy_types.is_packable(_core.dtype_name(x.dtype))
    except (TypeError, CastError):
        return False


def on_a_device(device: Any) -> CastError:
    return CastError(f"the tensor is on a device ({device}); move it to the host first, e.g. with .cpu()")


def capsule_of(x: Any, device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
    wanted: dict[str, Any] = {"max_version": (1, 1)}
    if device is not None:
        wanted["dl_device"] = device
    else:
        _require_cpu(x)
    if copy is not None:
        wanted["copy"] = copy
    try:
        return x.__dlpack__(**wanted)
    except TypeError:  # a library of before DLPack 1
        _require_cpu(x)
        return x.__dlpack__()


def _require_cpu(x: Any) -> None:
    device_type, device_id = x.__dlpack_device__()
    if int(device_type) not in _CPU_DEVICES:
        raise on_a_device(getattr(x, "device", f"DLPack device {int(device_type)}:{device_id}"))


def as_in_library_of(x: Any, result: npt.NDArray[Any]) -> Any:
    """Returns the result as an array of x's library, if that library supports it and has the type."""
    if not hasattr(x, "__array_namespace__") or result.dtype.kind in "OUT":
        return result
    name = _numpy_types.NAME_OF_TYPE.get(result.dtype, "")
    library = type(x).__module__.partition(".")[0].removesuffix("lib")
    try:
        if is_jax(x) and name and _numpy_types.is_packable(name):
            return x.__array_namespace__().asarray(result)
        return x.__array_namespace__().from_dlpack(DLPackArray(result))
    except (BufferError, TypeError, RuntimeError) as error:  # JAX's is a RuntimeError
        raise CastError(f"{library} takes no array of {name or result.dtype}; pass numpy.asarray(x) for a NumPy result") from error


class DLPackArray:
    """The memory of a NumPy array for ``from_dlpack`` of other libraries; :func:`tensorcast.dlpack` makes it.

    NumPy's own ``__dlpack__`` refuses the types of ml_dtypes, and this does not.

    Examples:
        >>> x = tc.cast(np.float32([1, 2]), "bfloat16")
        >>> tc.dlpack(x)
        <DLPackArray of bfloat16, shape (2,)>
        >>> tc.from_dlpack(tc.dlpack(x)) is not x
        True
    """

    __module__ = "tensorcast"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array

    @property
    def array(self) -> npt.NDArray[Any]:
        """The array whose memory it is."""
        return self._array

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A DLPack capsule, as the array API standard defines it.

        Raises:
            BufferError: another device than the host, a stream, or what the asked version of DLPack cannot express.
        """
        if stream is not None:
            raise BufferError("memory of the host has no streams; pass stream=None")
        if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != _CPU:
            raise BufferError(f"the array is in host memory, DLPack device {_CPU}, not {tuple(dl_device)}")
        array = self._array.copy() if copy else self._array
        return _core.to_dlpack(array, max_version is not None and max_version[0] >= 1, bool(copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __repr__(self) -> str:
        return f"<DLPackArray of {self._array.dtype.name}, shape {self._array.shape}>"


def dlpack(array: npt.NDArray[Any], /) -> DLPackArray:
    """Lends the memory of a NumPy array, ml_dtypes' types included, to a library that reads DLPack. Copies nothing.

    Args:
        array: of any type but strings, of this machine's byte order, of any strides. It stays
            alive as long as the other library uses it; writes on either side show on the other.

    Raises:
        BufferError: a type or byte order that DLPack lacks; else when the other library asks.

    Examples:
        >>> import torch
        >>> torch.from_dlpack(tc.dlpack(tc.cast(np.float32([1, 2]), "bfloat16")))
        tensor([1., 2.], dtype=torch.bfloat16)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"dlpack() takes a NumPy array, not {type(array).__name__}; tensors have __dlpack__ themselves")
    _core.to_dlpack(array, True, False)
    return DLPackArray(array)


def from_dlpack(x: Any, /, *, device: Literal["cpu"] | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
    """A NumPy array on the memory of a tensor, as ``numpy.from_dlpack``, but with ml_dtypes' types too.

    Args:
        x: an object with ``__dlpack__``, such as a tensor of PyTorch or JAX.
        device: ``"cpu"`` asks the library to move a tensor of another device to the host, if it can.
        copy: ``True`` always copies, ``False`` never, ``None`` where it must.

    Returns:
        An array that cannot be written to if the tensor's library says so, or never changes its arrays, as JAX.

    Raises:
        CastError: a tensor on a device. BufferError: ``copy=False`` where a copy is due. TypeError: an unknown type.

    Examples:
        >>> import torch
        >>> tc.from_dlpack(torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
        array([1, 2], dtype=bfloat16)
    """
    if not is_tensor(x):
        raise TypeError(f"from_dlpack() takes an object with __dlpack__, not {type(x).__name__}")
    if device not in ("cpu", None):
        raise CastError(f"device must be 'cpu' or None, not {device!r}")
    if is_narrow_jax(x) and copy is not False:
        return np.array(x)
    on_host = int(x.__dlpack_device__()[0]) in _CPU_DEVICES
    codes, name, shape = _core.from_dlpack(capsule_of(x, _CPU if device == "cpu" and not on_host else None))
    if _core.dtype_name(codes.dtype) == name:
        if copy:
            return codes.copy()
        if is_jax(x):
            codes.flags.writeable = False
        return codes
    if copy is False:
        raise BufferError(f"packed {name} becomes one element per byte, which needs a copy")
    return _numpy_types.unpack(codes, name, shape)
