# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps in the driver's encoding."""

import ctypes
from typing import Any

from gpuprof.backends.gpu.driver import call, driver
from gpuprof.copy_engine import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from gpuprof.kernels.tensor_map import TensorMap

#: What the driver calls the types; of narrow integers it does not tell the sign.
_TYPES = {
    **{"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64"},
    **{"i8": "UINT8", "u8": "UINT8", "i16": "UINT16", "u16": "UINT16"},
    **{"i32": "INT32", "u32": "UINT32", "i64": "INT64", "u64": "UINT64"},
}


def encode_tensor_map(tensor_map: TensorMap, address: int) -> Any:
    """A tensor map as a kernel argument.

    Returns:
        A ctypes array of 128 bytes, aligned as the driver demands.
    """
    api = driver()
    kinds, fills = api.CUtensorMapDataType, api.CUtensorMapFloatOOBfill
    swizzles = {
        0: api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        32: api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
        64: api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
        128: api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
    }
    encoded = call(
        f"making the tensor map {tensor_map.argument}",
        api.cuTensorMapEncodeTiled(
            getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[tensor_map.dtype]}"),
            len(tensor_map.extents),
            api.CUdeviceptr(address + tensor_map.start_bytes),
            [api.cuuint64_t(extent) for extent in tensor_map.extents],
            # One dimension has no stride, but the driver refuses a list without any.
            [api.cuuint64_t(stride) for stride in tensor_map.stride_bytes or (0,)],
            [api.cuuint32_t(extent) for extent in tensor_map.box],
            [api.cuuint32_t(step) for step in tensor_map.steps or (1,) * len(tensor_map.box)],
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzles[tensor_map.swizzle_bytes],
            api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            fills.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
            if tensor_map.fills_nan
            else fills.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ),
    )
    # ctypes aligns an array of bytes to one byte: take a larger one and start where the alignment fits.
    room = (ctypes.c_ubyte * (TENSOR_MAP_BYTES + TENSOR_MAP_ALIGNMENT))()
    offset = -ctypes.addressof(room) % TENSOR_MAP_ALIGNMENT
    argument = (ctypes.c_ubyte * TENSOR_MAP_BYTES).from_buffer(room, offset)
    ctypes.memmove(argument, encoded.getPtr(), TENSOR_MAP_BYTES)
    return argument
