# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments that the driver makes of an array: tensor maps, textures and surfaces.

A CUDA array, of which textures and surfaces are made, keeps texels in an order of its own and has no address.
It is filled from linear memory before a launch, and what surfaces wrote is brought back behind it.
"""

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from gpuprof.backends.gpu.context import settle_device
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.copy_engine import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.texture_units import Sampling, Texels

_FORMATS = {
    **{"f32": "FLOAT", "f16": "HALF"},
    **{f"u{bits}": f"UNSIGNED_INT{bits}" for bits in (8, 16, 32)},
    **{f"i{bits}": f"SIGNED_INT{bits}" for bits in (8, 16, 32)},
}
#: Extents up to which cards let two-dimensional textures be gathered from.
_MOST_GATHERED = 32768
#: What the driver calls the kinds of PTX types.
_KINDS = {"f": "FLOAT", "bf": "BFLOAT", "u": "UINT", "s": "INT"}


class CudaArray:
    """A CUDA array of texels; one that surfaces write to cannot be gathered from."""

    def __init__(self, texels: Texels, *, written: bool) -> None:
        api = driver()
        self.texels = texels
        self.written = written
        layout, (width, height, depth) = texels.layout, texels.extents
        wanted = api.CUDA_ARRAY3D_DESCRIPTOR()
        wanted.Width = width
        wanted.Height = height if layout.axes > 1 else 0
        wanted.Depth = depth if layout.axes > 2 or layout.layered or layout.cube else 0
        wanted.Format = _format(texels)
        wanted.NumChannels = texels.channels
        wanted.Flags = api.CUDA_ARRAY3D_SURFACE_LDST if written else 0
        wanted.Flags |= api.CUDA_ARRAY3D_LAYERED if layout.layered else 0
        wanted.Flags |= api.CUDA_ARRAY3D_CUBEMAP if layout.cube else 0
        if not written and texels.kind == "2d" and max(width, height) <= _MOST_GATHERED:
            wanted.Flags |= api.CUDA_ARRAY3D_TEXTURE_GATHER
        self.handle = call(
            f"allocating a CUDA array of {prod(texels.extents)} texels", api.cuArray3DCreate(wanted)
        )

    def fill(self, address: int) -> None:
        """Copy the texels that lie at an address, row by row without gaps."""
        self._copy(address, into=True)

    def drain(self, address: int) -> None:
        """Copy the texels to an address, row by row without gaps."""
        self._copy(address, into=False)

    def free(self) -> None:
        call("freeing a CUDA array", driver().cuArrayDestroy(self.handle))

    def _copy(self, address: int, *, into: bool) -> None:
        api = driver()
        kinds = api.CUmemorytype
        copy = api.CUDA_MEMCPY3D()
        copy.WidthInBytes = self.texels.row_bytes
        _, copy.Height, copy.Depth = self.texels.extents
        if into:
            copy.srcMemoryType, copy.dstMemoryType = kinds.CU_MEMORYTYPE_DEVICE, kinds.CU_MEMORYTYPE_ARRAY
            copy.srcDevice, copy.dstArray = api.CUdeviceptr(address), self.handle
            copy.srcPitch, copy.srcHeight = self.texels.row_bytes, self.texels.extents[1]
        else:
            copy.srcMemoryType, copy.dstMemoryType = kinds.CU_MEMORYTYPE_ARRAY, kinds.CU_MEMORYTYPE_DEVICE
            copy.srcArray, copy.dstDevice = self.handle, api.CUdeviceptr(address)
            copy.dstPitch, copy.dstHeight = self.texels.row_bytes, self.texels.extents[1]
        call("copying texels", api.cuMemcpy3D(copy))
        settle_device()


class DeviceTexture:
    """A texture that kernels name by a handle; without sampling a surface, of a CUDA array."""

    def __init__(self, texels: Texels, sampling: Sampling | None, source: CudaArray | int) -> None:
        api = driver()
        resource = _array(source) if isinstance(source, CudaArray) else _linear(texels, source)
        if sampling is None:
            made = call("making a surface", api.cuSurfObjectCreate(resource))
            self._destroy, self._object = api.cuSurfObjectDestroy, api.CUsurfObject
        else:
            how = _sampling(texels, sampling)
            made = call("making a texture", api.cuTexObjectCreate(resource, how, None))
            self._destroy, self._object = api.cuTexObjectDestroy, api.CUtexObject
        self.handle = int(made)

    def free(self) -> None:
        call("freeing a texture", self._destroy(self._object(self.handle)))


class CaseTextures:
    """The textures and surfaces of a case, and the CUDA arrays that stand for its arrays meanwhile."""

    def __init__(self, textures: Sequence[Texture], address: Callable[[str], int]) -> None:
        self._address = address
        self._arrays: dict[str, CudaArray] = {}
        self._objects: dict[str, DeviceTexture] = {}
        written = {one.array for one in textures if one.sampling is None}
        try:
            for one in textures:
                self._add(one, written=one.array in written)
        except BaseException:
            self.free()
            raise

    def handle(self, argument: str) -> int:
        return self._objects[argument].handle

    @property
    def arrays(self) -> frozenset[str]:
        """Names of the arrays that CUDA arrays stand for."""
        return frozenset(self._arrays)

    def fill(self) -> None:
        """Copy what the arrays hold to their CUDA arrays."""
        for name, array in self._arrays.items():
            array.fill(self._address(name))

    def drain(self) -> None:
        """Copy back what surfaces may have written."""
        for name, array in self._arrays.items():
            if array.written:
                array.drain(self._address(name))

    def free(self) -> None:
        while self._objects:
            self._objects.popitem()[1].free()
        while self._arrays:
            self._arrays.popitem()[1].free()

    def _add(self, one: Texture, *, written: bool) -> None:
        if not one.texels.linear and one.array not in self._arrays:
            self._arrays[one.array] = CudaArray(one.texels, written=written)
        source = self._address(one.array) if one.texels.linear else self._arrays[one.array]
        self._objects[one.argument] = DeviceTexture(one.texels, one.sampling, source)


def _format(texels: Texels) -> Any:
    return getattr(driver().CUarray_format, f"CU_AD_FORMAT_{_FORMATS[texels.dtype]}")


def _array(source: CudaArray) -> Any:
    api = driver()
    resource = api.CUDA_RESOURCE_DESC()
    resource.resType = api.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = source.handle
    return resource


def _linear(texels: Texels, address: int) -> Any:
    api = driver()
    resource = api.CUDA_RESOURCE_DESC()
    if texels.layout.axes > 1:
        resource.resType = api.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
        place = resource.res.pitch2D
        place.width, place.height, _ = texels.extents
        place.pitchInBytes = texels.row_bytes
    else:
        resource.resType = api.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        place = resource.res.linear
        place.sizeInBytes = texels.row_bytes
    place.devPtr, place.format, place.numChannels = api.CUdeviceptr(address), _format(texels), texels.channels
    return resource


def _sampling(texels: Texels, sampling: Sampling) -> Any:
    api = driver()
    wanted = api.CUDA_TEXTURE_DESC()
    wanted.addressMode = [
        getattr(api.CUaddress_mode, f"CU_TR_ADDRESS_MODE_{mode.upper()}") for mode in sampling.address
    ]
    wanted.filterMode = getattr(api.CUfilter_mode, f"CU_TR_FILTER_MODE_{sampling.filter.upper()}")
    wanted.borderColor = list(sampling.border)
    wanted.flags = api.CU_TRSF_NORMALIZED_COORDINATES if sampling.normalized else 0
    if not sampling.gives_floats(texels.dtype):
        wanted.flags |= api.CU_TRSF_READ_AS_INTEGER
    return wanted


def encode_tensor_map(tensor_map: TensorMap, address: int) -> Any:
    """A tensor map as a kernel argument.

    Returns:
        A ctypes array of 128 bytes, aligned as the driver demands.
    """
    api = driver()
    kinds, fills = api.CUtensorMapDataType, api.CUtensorMapFloatOOBfill
    swizzle, promotion = tensor_map.swizzle_bytes, tensor_map.l2_promotion_bytes
    swizzled = f"{swizzle}B" if swizzle else "NONE"
    promoted = f"L2_{promotion}B" if promotion else "NONE"
    mapped = ELEMENT_TYPES[tensor_map.dtype].mapped
    kind = mapped.rstrip("0123456789")
    element = f"{_KINDS[kind]}{mapped.removeprefix(kind)}"
    encoded = call(
        f"making the tensor map {tensor_map.argument}",
        api.cuTensorMapEncodeTiled(
            getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{element}"),
            len(tensor_map.extents),
            api.CUdeviceptr(address + tensor_map.start_bytes),
            [api.cuuint64_t(extent) for extent in tensor_map.extents],
            # One dimension has no stride, but the driver refuses a list without any.
            [api.cuuint64_t(stride) for stride in tensor_map.stride_bytes or (0,)],
            [api.cuuint32_t(extent) for extent in tensor_map.box],
            [api.cuuint32_t(step) for step in tensor_map.steps or (1,) * len(tensor_map.box)],
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(api.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzled}"),
            getattr(api.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promoted}"),
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
