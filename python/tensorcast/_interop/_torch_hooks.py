# SPDX-License-Identifier: Apache-2.0
"""Tells PyTorch, its compiler, its ONNX exporter and DTensor about ``tensorcast.cast``, as soon as they are loaded.

The compiler cannot look into a function written in C, and neither has a list of other packages' operators. Loading them
takes seconds, so ``import tensorcast`` only waits for them.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # importing them takes as long as the rest of the package
    Loader = MetaPathFinder = object

_REGISTERED_BY = {
    "torch": "tensorcast._interop._torch",  # what its tensors need, which the first cast would load else
    "torch._dynamo": "tensorcast._interop._torch_traced",
    "torch._inductor.lowering": "tensorcast._device._inductor",
    "torch.distributed.tensor": "tensorcast._interop._torch_sharding",
    "torch.onnx._internal.exporter._torchlib.ops": "tensorcast._interop._torch_onnx",
}


def register_with_torch() -> None:
    """Registers the cast with what is loaded now, and with the rest when it is loaded."""
    waiting = set()
    for module, ours in _REGISTERED_BY.items():
        if module in sys.modules:
            importlib.import_module(ours)
        else:
            waiting.add(module)
    if waiting:
        sys.meta_path.insert(0, _Finder(waiting))


class _Finder(MetaPathFinder):
    """Finds modules as others do, and registers the cast after they are loaded."""

    def __init__(self, waiting: set[str]) -> None:
        self._waiting = waiting

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._waiting:
            return None
        self._waiting.discard(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        module: types.ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        importlib.import_module(_REGISTERED_BY[module.__name__])
