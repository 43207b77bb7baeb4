"""Arrow columns -> records, without a Python object for a row.

A record is the msgpack array `[attributes, body]`. Its bytes are put together column by column: Arrow's own kernel
joins, for all rows in one call, constants (a name and a type mark), the big-endian bytes of numbers, and strings behind
the header of their length. NULL leaves out name and value, and the map's header counts what is there. The joined array
lies in memory exactly as a PUBLISH wants its records. Measured with seven attributes and a body, beside a dict and a
`packb` for each row: 0.35 microseconds against 1.0, and 3.7 for `make_batch`.

Integers are always written in 64 bits and doubles never shortened, so that numbers need no look at their size;
msgpack readers take any width. Only headers, which are maps, are opened row by row.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgpack

from headgate.protocol.client import check_names
from headgate.protocol.data import Scalar
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import ATTRIBUTES_MAX, RECORD_LENGTH_MAX

from ..errors import BadRow
from ..layout import HEADERS_PREFIX, Layout
from ..limits import SHORT_TEXT_BYTES

__all__ = ["Mixed", "encode_records"]

_EMPTY_BODY = b"\xc4\x00"


def encode_records(rows: Any, layout: Layout) -> tuple[Any, dict[str, Any]]:
    """The records of some rows as a binary array, and their attributes as arrays of bool, int64, double and string.

    Raises BadRow for a value that no event can hold.
    """
    maps = _Maps(rows, layout.maps) if layout.maps else None
    return _Records(rows, layout, maps).encode()


class Mixed:
    """Values of one attribute that are of several types, and so no Arrow array."""

    def __init__(self, values: list[Scalar]) -> None:
        self.values = values

    def slice(self, start: int, count: int) -> Mixed:
        """Some in a row."""
        return Mixed(self.values[start : start + count])


class _Maps:
    """The columns that are maps, opened: attributes of each row, encoded, and how many there are."""

    def __init__(self, rows: Any, names: Sequence[str]) -> None:
        pack = msgpack.Packer(autoreset=True).pack
        self.counts: list[int] = []
        self.parts: list[bytes] = []
        self.values: list[dict[str, Scalar]] = [{} for _ in range(rows.num_rows)]
        for name in names:
            prefix = HEADERS_PREFIX if name == "headers" else ""
            for known, members in zip(self.values, rows.column(name).to_pylist(), strict=True):
                for key, value in map(_pair, members or ()):
                    if (plain := _scalar(name, value)) is not None:
                        known[prefix + key] = plain
        for known in self.values:
            self.counts.append(len(known))
            self.parts.append(b"".join([pack(name) + pack(value) for name, value in known.items()]))

    def columns(self) -> dict[str, Any]:
        """The attributes in use; one that has values of several types is no Arrow array."""
        import pyarrow as pa

        names = dict.fromkeys(name for known in self.values for name in known)
        try:
            check_names(tuple(names)[:ATTRIBUTES_MAX])
        except LocalError as error:
            raise BadRow("headers", str(error)) from error
        found = {}
        for name in names:
            values = [known.get(name) for known in self.values]
            kinds = {type(value) for value in values} - {type(None)}
            found[name] = pa.array(values) if len(kinds) == 1 else Mixed(values)
        return found


def _pair(member: Any) -> tuple[str, Any]:
    """A member of a map, or of Kafka's list of headers."""
    return (member["key"], member["value"]) if isinstance(member, dict) else member


def _scalar(column: str, value: Any) -> Scalar:
    """A value of a map: a text, bytes that are text, or the one member that is set of a typed value."""
    if isinstance(value, dict):
        return next((member for member in value.values() if member is not None), None)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BadRow(
                column, "holds bytes that are no UTF-8; write base64() of them, or put them into 'value'"
            ) from None
    return value  # type: ignore[no-any-return]  # a text, or None


class _Records:
    """The records of some rows, and their attributes as Arrow arrays of bool, int64, double and string."""

    def __init__(self, rows: Any, layout: Layout, maps: _Maps | None) -> None:
        self._rows = rows
        self._layout = layout
        self._maps = maps
        self._parts: list[Any] = []
        self._constant = b""
        self._columns: dict[str, Any] = {}

    def encode(self) -> tuple[Any, dict[str, Any]]:
        """See the class."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for name, form in self._layout.attributes:
            self._columns[name] = _plain(name, self._rows.column(name), form)
        self._add_outer_header()
        self._add_map_header()
        for name, form in self._layout.attributes:
            self._add_attribute(name, form)
        if self._maps is not None:
            self._add(pa.array(self._maps.parts, pa.binary()))
            found = self._maps.columns()
            twice = next((name for name in found if name in self._columns), None)
            if twice is not None:
                raise BadRow("attributes", f"holds {twice!r}, and there is a column of that name: drop one of them")
            self._columns |= found
        self._add_body()
        self._add_content_type()
        self._flush()
        records = pc.binary_join_element_wise(
            *self._parts, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=""
        )
        if isinstance(records, pa.Scalar):  # nothing but constants: every row is the same
            records = pa.array([records.as_py()] * self._rows.num_rows, pa.binary())
        return records, self._columns

    def _add(self, part: Any) -> None:
        """The next piece of every record: constants are collected, arrays stand for themselves."""
        if isinstance(part, bytes):
            self._constant += part
        else:
            self._flush()
            self._parts.append(part)

    def _flush(self) -> None:
        import pyarrow as pa

        if self._constant:
            self._parts.append(pa.scalar(self._constant, pa.binary()))
            self._constant = b""

    def _add_map_header(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        sparse = [column for column in self._columns.values() if column.null_count]
        always = len(self._columns) - len(sparse)
        if not sparse and self._maps is None:
            self._add(_map_header(always))
            return
        counts = pa.array(self._maps.counts if self._maps else [0] * self._rows.num_rows, pa.int32())
        if pc.max(counts).as_py() + len(self._columns) > ATTRIBUTES_MAX:
            raise BadRow("headers", f"an event has at most {ATTRIBUTES_MAX} attributes, headers included")
        for column in sparse:
            counts = pc.add(counts, column.is_valid().cast(pa.int32()))
        self._add(_map_headers().take(pc.add(counts, pa.scalar(always, pa.int32()))))

    def _add_attribute(self, name: str, form: str) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._columns[name]
        start = msgpack.packb(name)
        if form == "string":
            value = [_text_headers(name, column, _text_header), column.cast(pa.binary())]
        elif form == "bool":
            value = [pa.array([b"\xc2", b"\xc3"], pa.binary()).take(column.cast(pa.int8()))]
        else:
            start += b"\xd3" if form == "int" else b"\xcb"
            value = [_big_endian(column)]
        if column.null_count:
            empty = pa.scalar(b"", pa.binary())
            self._add(pc.binary_join_element_wise(pa.scalar(start, pa.binary()), *value, empty))
            return
        self._add(start)
        for part in value:
            self._add(part)

    def _add_body(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._layout.value or self._layout.value == "void":
            self._add(_EMPTY_BODY)
            return
        body = self._rows.column(self._layout.body).cast(pa.binary())
        if body.null_count:
            body = pc.fill_null(body, b"")
        self._add(_text_headers(self._layout.body, body, _bin_header))
        self._add(body)

    def _add_outer_header(self) -> None:
        """The array of two, or of three where the body has a content type."""
        if self._typed_by:
            self._add(self._where_typed(b"\x93", b"\x92"))
        else:
            self._add(b"\x92")

    def _add_content_type(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._layout.content_type:
            text = self._layout.content_type.encode()
            self._add(self._where_typed(_text_header(len(text)) + text, b""))
        elif self._layout.types:
            types = self._rows.column(self._layout.types).cast(pa.string())
            parts = (_text_headers(self._layout.types, types, _text_header), types.cast(pa.binary()))
            self._add(pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary())))

    @property
    def _typed_by(self) -> str:
        """The column that has a value where the body has a content type."""
        return self._layout.body if self._layout.content_type else self._layout.types

    def _where_typed(self, here: bytes, elsewhere: bytes) -> Any:
        """One piece for the rows with a content type, another for those without."""
        import pyarrow as pa

        column = self._rows.column(self._typed_by)
        if not column.null_count:
            return here
        return pa.array([elsewhere, here], pa.binary()).take(column.is_valid().cast(pa.int8()))


def _plain(name: str, column: Any, form: str) -> Any:
    """A column as int64, double, bool or string."""
    import pyarrow as pa

    if form == "int":
        # Days first: a date has 32 bits.
        return column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    if form == "double":
        return column.cast(pa.float64())
    if form == "string":
        text = column.cast(pa.string())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid as error:
            raise BadRow(name, f"holds bytes that are no UTF-8 text; write base64() of it: {error}") from error
        return text
    return column


def _big_endian(column: Any) -> Any:
    """The values of an int64 or double column as 8 bytes each, most significant first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(column)
    words = array("q")
    words.frombytes(memoryview(column.buffers()[1]).cast("B")[8 * column.offset : 8 * (column.offset + count)])
    if sys.byteorder == "little":
        words.byteswap()
    fixed = pa.Array.from_buffers(pa.binary(8), count, [None, pa.py_buffer(words)]).cast(pa.binary())
    return pc.if_else(column.is_valid(), fixed, None) if column.null_count else fixed


def _text_headers(name: str, column: Any, header: Any) -> Any:
    """The msgpack header of each text or bytes of a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(column)
    longest = pc.max(lengths).as_py() or 0
    if longest > RECORD_LENGTH_MAX:
        raise BadRow(name, f"holds {longest} bytes in a row; an event has at most {RECORD_LENGTH_MAX}")
    if longest < SHORT_TEXT_BYTES:
        return _short_headers(header).take(lengths)
    known = lengths.dictionary_encode()
    heads = [header(length) for length in known.dictionary.to_pylist()]
    return pa.array(heads, pa.binary()).take(known.indices)


@cache
def _short_headers(header: Any) -> Any:
    import pyarrow as pa

    return pa.array([header(length) for length in range(SHORT_TEXT_BYTES)], pa.binary())


@cache
def _map_headers() -> Any:
    import pyarrow as pa

    return pa.array([_map_header(count) for count in range(ATTRIBUTES_MAX + 1)], pa.binary())


def _map_header(count: int) -> bytes:
    return bytes((0x80 | count,)) if count < 16 else b"\xde" + count.to_bytes(2, "big")


def _text_header(length: int) -> bytes:
    if length < 32:
        return bytes((0xA0 | length,))
    return _sized(length, b"\xd9", b"\xda", b"\xdb")


def _bin_header(length: int) -> bytes:
    return _sized(length, b"\xc4", b"\xc5", b"\xc6")


def _sized(length: int, one: bytes, two: bytes, four: bytes) -> bytes:
    if length < 1 << 8:
        return one + length.to_bytes(1, "big")
    if length < 1 << 16:
        return two + length.to_bytes(2, "big")
    return four + length.to_bytes(4, "big")
