# SPDX-License-Identifier: Apache-2.0
"""Files, folders and stores of tensors. Private."""
