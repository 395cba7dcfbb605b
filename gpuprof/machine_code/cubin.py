# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read sections of a cubin, which is an ELF file of 64 bits."""

import struct

_HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def sections(cubin: bytes) -> dict[str, bytes]:
    """Return the content of each section by its name.

    Raises:
        ValueError: It is no such file, or cut off.
    """
    try:
        magic, bits, _, *fields = _HEADER.unpack_from(cubin)
        start, size, count, names = fields[5], fields[10], fields[11], fields[12]
        if magic != b"\x7fELF" or bits != 2 or size != _SECTION.size:
            raise ValueError("it is no ELF file of 64 bits")
        headers = [_SECTION.unpack_from(cubin, start + i * size) for i in range(count)]
    except struct.error as error:
        raise ValueError("it is cut off") from error
    content = [cubin[header[4] : header[4] + header[5]] for header in headers]
    texts = content[names] if names < count else b""
    named = (texts[header[0] :].partition(b"\0")[0].decode(errors="replace") for header in headers)
    return dict(zip(named, content, strict=True))
