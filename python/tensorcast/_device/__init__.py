# SPDX-License-Identifier: Apache-2.0
"""Casts by integer operations and lookups of PyTorch, which have the same bits on every device."""
