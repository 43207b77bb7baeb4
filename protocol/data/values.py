"""Plain values as msgpack and back: null, booleans, integers, floats, strings, bytes, lists and maps of them by name.

For what a broker keeps of its own and shows to other brokers. Who reads them says how long the parts may be.
"""

from __future__ import annotations

from typing import Any

import msgpack

from ..errors import LocalError, ProtocolViolation

__all__ = ["pack_value", "unpack_value"]

_pack = msgpack.Packer(autoreset=True).pack


def pack_value(value: Any) -> bytes:
    """The value as bytes. Raises LocalError when it is not plain."""
    try:
        data: bytes = _pack(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalError(f"not a plain value: {error}") from error
    return data


def unpack_value(data: bytes, *, bytes_max: int, items_max: int) -> Any:
    """The value in these bytes, of which there are so many at most, as in each list or map.

    Raises ProtocolViolation, and nothing else, when they are none.
    """
    if len(data) > bytes_max:
        raise ProtocolViolation(f"a value of {len(data)} bytes is over the limit of {bytes_max}")
    try:
        return msgpack.unpackb(
            data,
            object_pairs_hook=_named,
            ext_hook=_no_extension,
            max_str_len=bytes_max,
            max_bin_len=bytes_max,
            max_array_len=items_max,
            max_map_len=items_max,
            max_ext_len=0,
        )
    except ProtocolViolation:
        raise
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"not a plain value: {type(error).__name__}: {error}"[:300]) from error


def _named(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) != len(pairs) or not all(type(name) is str for name in named):
        raise ProtocolViolation("a map has names, each once")
    return named


def _no_extension(code: int, _: bytes) -> Any:
    raise ProtocolViolation(f"extension type {code} has no meaning here")
