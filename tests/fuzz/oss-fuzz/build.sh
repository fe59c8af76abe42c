#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
exec "$SRC/tensorcast/.clusterfuzzlite/build.sh"
