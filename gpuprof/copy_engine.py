# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What CUDA says of the copy engine and its tensor maps: facts that headers, backends and the executor share.

They stand by themselves so that reading a kernel's header does not load the executor.
"""

#: Bytes of a tensor map as an argument, and their alignment.
TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64
#: Bytes after which a swizzle pattern repeats its rows; 0 stands for no swizzle.
SWIZZLES = (0, 32, 64, 128)
#: Most dimensions of an array.
MOST_DIMENSIONS = 5
#: Most elements of a box along one axis.
MOST_BOX_ELEMENTS = 256
#: Of so many elements along a dimension it can still take one.
MOST_STEP = 8
#: Bytes that the engine moves at once: addresses, rows and strides are multiples of them.
GRANULE_BYTES = 16
