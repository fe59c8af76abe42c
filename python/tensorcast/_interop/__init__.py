# SPDX-License-Identifier: Apache-2.0
"""Tensors of other libraries, and what they load of ours. Private."""
