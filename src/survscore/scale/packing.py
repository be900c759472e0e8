"""Plain numbers as bytes: a form, a checksum, a header in JSON, arrays. Nothing that runs when it is read."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError

MOST_BYTES = 1 << 34  # of what is read, against files that claim more
TYPES = {"i": "<i8", "f": "<f8"}


def pack(form: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return numbers as bytes: equal ones as equal bytes."""
    kinds = [(name, TYPES[values.dtype.kind], list(values.shape)) for name, values in arrays.items()]
    text = json.dumps({**header, "arrays": kinds}, sort_keys=True, separators=(",", ":")).encode()
    packing = zlib.compressobj(1)
    packed = [
        packing.compress(np.ascontiguousarray(values, dtype=kind).data)
        for (_, kind, _), values in zip(kinds, arrays.values(), strict=True)
    ]
    body = b"".join((len(text).to_bytes(8, "little"), text, *packed, packing.flush()))
    return f"survscore {form} 1\n".encode() + hashlib.sha256(body).digest() + body


def unpack(form: str, stored: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take what `pack` returned; anything else is refused."""
    first = f"survscore {form} 1\n".encode()
    if not stored.startswith(first):
        raise InputError(f"not a {form} of survscore")
    checksum, body = stored[len(first) : len(first) + 32], stored[len(first) + 32 :]
    if hashlib.sha256(body).digest() != checksum:
        raise InputError(f"the {form} is damaged: its checksum does not fit")
    try:
        size = int.from_bytes(body[:8], "little")
        header = json.loads(body[8 : 8 + size])
        shapes = [(str(name), str(kind), tuple(map(int, shape))) for name, kind, shape in header.pop("arrays")]
        wanted = sum(8 * int(np.prod(shape, dtype=np.int64)) for _, _, shape in shapes)
        if not 0 <= wanted <= MOST_BYTES:
            raise ValueError(f"it claims {wanted} bytes")
        numbers = zlib.decompressobj().decompress(body[8 + size :], wanted) if wanted else b""
        if len(numbers) != wanted:
            raise ValueError(f"it has {len(numbers)} of {wanted} bytes")
        arrays, start = {}, 0
        for name, kind, shape in shapes:
            if kind not in TYPES.values():
                raise ValueError(f"it has numbers of type {kind}")
            count = int(np.prod(shape, dtype=np.int64))
            values = np.frombuffer(numbers, dtype=kind, count=count, offset=start).reshape(shape)
            arrays[name] = values.astype(values.dtype.newbyteorder("="))
            start += 8 * count
    except (KeyError, TypeError, ValueError, RecursionError, zlib.error) as error:
        raise InputError(f"not a {form} of survscore: {error}") from None
    return header, arrays
