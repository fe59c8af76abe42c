# SPDX-License-Identifier: Apache-2.0
"""Arrays, tensors and mappings of them: conversion, blocks, promotion, reports. Private."""
