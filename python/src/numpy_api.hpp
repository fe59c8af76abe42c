// SPDX-License-Identifier: Apache-2.0
// NumPy's C interface, imported once by module.cpp.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tensorcast_array_api
#ifndef TENSORCAST_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif

#include <Python.h>

#include <numpy/arrayobject.h>
