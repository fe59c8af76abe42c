# SPDX-License-Identifier: Apache-2.0
"""What ``onnxruntime.transformers`` has, done by :func:`tensorcast.onnx.convert`."""

from . import float16

__all__ = ["float16"]
