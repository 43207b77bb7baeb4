"""Opens many records at once: their bytes become one column for each attribute and one of bodies.

A record is the msgpack array `[attributes, body]` (protocol/data). Decoding one costs a microsecond, most of it
for objects that Arrow then takes apart again. Here all records of a chunk are decoded side by side: every record has a
cursor, and a step reads *the same thing* in all of them with a few numpy operations:

    array header | map header | (name, value) ... (name, value) | body | content type
                                ^ one step reads a name and its value in all records whose next name this is

Publishers write the attributes of a stream in one order, so there are about as many steps as names, and a record that
lacks one waits for the step of its next name. Values stay numbers (64-bit words) or places of texts in the bytes.

What does not fit the form (a nested value, an integer beyond 64 bits, text that is no UTF-8, too many different names)
is decoded by `decode_record`, record by record, which also says what no record is. `open_one_by_one` does that for all
of them: it is the plain meaning that `open_records` must agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import decode_record
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, ATTRIBUTES_MAX

from ..limits import OPENING_STEPS_MAX, OPENING_VALUES_MAX

__all__ = ["ABSENT", "BOOL", "FLOAT", "INT", "TEXT", "Opened", "TooWide", "Values", "open_one_by_one", "open_records"]

ABSENT, INT, FLOAT, TEXT, BOOL = range(5)
"""What an event has of an attribute: nothing (or nil), or a value of one of four types."""

_STEM = 8  # bytes behind the last record, so that a word may be read at any place


class TooWide(Exception):
    """So many different names in so many records that their columns would not fit: open fewer at a time."""


class _Misfit(Exception):
    """These records are decoded one by one."""


class Values:
    """One attribute of every event: its type, and the value as a word, or as a place in the text buffer."""

    def __init__(self, count: int) -> None:
        import numpy as np

        self.kinds = np.zeros(count, np.uint8)
        self.words = np.zeros(count, np.int64)
        self.lengths: Any = None
        self.text = b""
        self._texts: Any = None

    def of_kind(self, kind: int) -> Any:
        """Which events have a value of this type."""
        return self.kinds == kind

    def doubles(self) -> Any:
        """The words as doubles; only those of kind FLOAT mean anything."""
        import numpy as np

        return self.words.view(np.float64)

    def texts(self) -> Any:
        """The texts as a string array, NULL where there is none."""
        import pyarrow as pa

        if self._texts is None:
            self._texts = _pieces(self.text, self.words, self.lengths, self.of_kind(TEXT), pa.string())
        return self._texts

    def put(self, at: Any, kind: int, words: Any) -> None:
        """Values of one type for the events `at`."""
        self.kinds[at] = kind
        self.words[at] = words

    def put_texts(self, at: Any, places: Any, lengths: Any) -> None:
        """Texts for the events `at`, by their places in the buffer."""
        import numpy as np

        if self.lengths is None:
            self.lengths = np.zeros(len(self.kinds), np.int64)
        self.put(at, TEXT, places)
        self.lengths[at] = lengths


@dataclass(slots=True)
class Opened:
    """The events of some records, in columns; a record that is none has no attributes and a NULL body."""

    count: int
    attributes: dict[str, Values] = field(default_factory=dict)
    values_max: int = OPENING_VALUES_MAX
    bodies: Callable[[], Any] = lambda: None
    """Makes the array of bodies, for whoever wants it."""
    types: Callable[[], Any] = lambda: None
    """Makes the array of their content types, NULL where there is none."""

    def values(self, name: str) -> Values:
        """The column of an attribute, which is made when it is first met. Raises TooWide."""
        values = self.attributes.get(name)
        if values is None:
            if len(self.attributes) * self.count >= self.values_max and self.count > 1:
                raise TooWide
            values = self.attributes[name] = Values(self.count)
        return values


def open_one_by_one(records: Sequence[bytes], values_max: int = OPENING_VALUES_MAX) -> Opened:
    """The same, slowly: `decode_record` says what each record means."""
    import numpy as np
    import pyarrow as pa

    opened = Opened(len(records), values_max=values_max)
    bodies: list[bytes | None] = []
    types: list[str | None] = []
    texts: dict[str, list[bytes]] = {}
    ends: dict[str, int] = {}
    for at, record in enumerate(records):
        try:
            attributes, body, content_type = decode_record(record)
        except ProtocolViolation:
            bodies.append(None)
            types.append(None)
            continue
        bodies.append(body)
        types.append(content_type or None)
        for name, value in attributes.items():
            values = opened.values(name)
            if type(value) is str:
                data = value.encode("utf-8", "surrogatepass")
                place = ends.get(name, 0)
                values.put_texts(at, place, len(data))
                texts.setdefault(name, []).append(data)
                ends[name] = place + len(data)
            elif type(value) is float:
                values.put(at, FLOAT, np.float64(value).view(np.int64))
            elif value is not None:
                values.put(at, BOOL if type(value) is bool else INT, int(value))
    for name, parts in texts.items():
        opened.attributes[name].text = b"".join(parts)
    opened.bodies = lambda: pa.array(bodies, pa.binary())
    opened.types = lambda: pa.array(types, pa.string())
    return opened


def open_records(
    data: bytes, starts: Any, ends: Any, wanted: frozenset[str] | None = None, values_max: int = OPENING_VALUES_MAX
) -> Opened:
    """The records at `starts` up to `ends` (ascending) of `data`; None wants all attributes. Raises TooWide."""
    import numpy as np

    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    try:
        return _Opening(data, starts, ends, wanted, values_max).open()
    except _Misfit:
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        opened = open_one_by_one([data[start:end] for start, end in places], values_max)
        if wanted is not None:
            opened.attributes = {name: values for name, values in opened.attributes.items() if name in wanted}
        return opened


class _Opening:
    """The cursors of all records, and what they have passed."""

    def __init__(self, data: bytes, starts: Any, ends: Any, wanted: frozenset[str] | None, values_max: int) -> None:
        import numpy as np

        self._data = data + bytes(_STEM + 4 + ATTRIBUTE_NAME_LENGTH_MAX)
        self._bytes = np.frombuffer(self._data, np.uint8)
        places = len(self._data) - _STEM + 1
        self._words = np.ndarray((places,), ">u8", buffer=self._data, strides=(1,))
        self._ends = ends
        self._at = starts.copy()
        self._wanted = wanted
        self.opened = Opened(len(starts), values_max=values_max)

    def open(self) -> Opened:
        import numpy as np

        outer = self._bytes[self._at]
        self._refuse(((outer != 0x92) & (outer != 0x93)) | (self._at >= self._ends))
        self._at += 1
        left = self._map_sizes()
        active = np.flatnonzero(left > 0)
        steps = 0
        while len(active):
            steps += 1
            if steps > OPENING_STEPS_MAX:
                raise _Misfit
            name, at = self._next_name(active)
            self._read_values(name, at)
            left[at] -= 1
            active = active[left[active] > 0]
        self._read_bodies(outer == 0x93)
        self._check()
        return self.opened

    def _refuse(self, odd: Any) -> None:
        """Some are no record of the common form. One by one is how to tell what they are."""
        if odd.any():
            raise _Misfit

    def _word(self, at: Any) -> Any:
        """Eight bytes at these places, as big-endian unsigned integers."""
        import numpy as np

        return self._words[at].astype(np.uint64)

    def _map_sizes(self) -> Any:
        """How many attributes each record has."""
        import numpy as np

        head = self._bytes[self._at]
        left = (head & 0x0F).astype(np.int64)
        wide = head == 0xDE
        self._refuse(((head & 0xF0) != 0x80) & ~wide)
        self._at += 1
        if wide.any():
            at = self._at[wide]
            left[wide] = (self._bytes[at].astype(np.int64) << 8) | self._bytes[at + 1]
            self._at[wide] += 2
        self._refuse(left > ATTRIBUTES_MAX)
        return left

    def _next_name(self, active: Any) -> tuple[str, Any]:
        """The name that comes next in the first of these records, and all records where it does; past it they go."""
        import numpy as np

        first = int(self._at[active[0]])
        start, end = _text_at(self._data, first)
        key = self._data[first:end]
        try:
            name = self._data[start:end].decode()
        except UnicodeDecodeError:
            raise _Misfit from None
        same = np.ones(len(active), bool)
        for place in range(0, len(key), _STEM):
            piece = key[place : place + _STEM]
            word = self._word(self._at[active] + place) >> (64 - 8 * len(piece))
            same &= word == int.from_bytes(piece, "big")
        at = active if same.all() else active[same]
        self._at[at] += len(key)
        self._refuse(self._at[at] >= self._ends[at])
        return name, at

    def _read_values(self, name: str, at: Any) -> None:
        """The value behind the name in the records `at`."""
        values = None
        if self._wanted is None or name in self._wanted:
            values = self.opened.values(name)
            values.text = self._data
        places = self._at[at]
        marks = self._bytes[places]
        common = marks[0]
        if (marks == common).all():
            self._at[at] = places + self._read_kind(int(common), values, at, places, marks)
        else:
            for mark, some in _by_form(marks):
                self._at[at[some]] = places[some] + self._read_kind(mark, values, at[some], places[some], marks[some])
        self._refuse(self._at[at] > self._ends[at])

    def _read_kind(self, mark: int, values: Values | None, at: Any, places: Any, marks: Any) -> Any:
        """Values that begin with this byte, or with one of its form; how long each is."""
        import numpy as np

        if mark == 0xCB or mark == 0xCA:
            word = self._word(places + 1)
            if values is not None:
                if mark == 0xCA:
                    word = (word >> 32).astype(np.uint32).view(np.float32).astype(np.float64).view(np.int64)
                values.put(at, FLOAT, word.view(np.int64))
            return 9 if mark == 0xCB else 5
        if mark <= 0x7F or mark >= 0xE0:
            if values is not None:
                values.put(at, INT, marks.view(np.int8).astype(np.int64))
            return 1
        if 0xCC <= mark <= 0xD3:
            size = 1 << (mark & 3)
            word = self._word(places + 1)
            if mark == 0xCF:
                self._refuse(word >= 2**63)
            if values is not None:
                shift = 64 - 8 * size
                values.put(at, INT, word >> shift if mark < 0xD0 else word.view(np.int64) >> shift)
            return 1 + size
        if 0xA0 <= mark <= 0xBF or 0xD9 <= mark <= 0xDB:
            header, lengths = self._text_lengths(mark, places, marks)
            if values is not None:
                values.put_texts(at, places + header, lengths)
            else:
                # Nobody asks for it, and yet a record with a text that is none is no record.
                self._check_texts(places + header, lengths)
            return header + lengths
        if mark in (0xC2, 0xC3):
            if values is not None:
                values.put(at, BOOL, mark & 1)
            return 1
        if mark == 0xC0:
            if values is not None:
                values.put(at, ABSENT, 0)
            return 1
        raise _Misfit

    def _text_lengths(self, mark: int, places: Any, marks: Any) -> tuple[int, Any]:
        """The length of the header, and of each text."""
        import numpy as np

        if mark <= 0xBF:
            return 1, (marks & 0x1F).astype(np.int64)
        size = 1 << (mark - 0xD9)
        return 1 + size, (self._word(places + 1) >> (64 - 8 * size)).astype(np.int64)

    def _read_bodies(self, typed: Any) -> None:
        """The body of each record, and its content type if it has one; the record ends there."""
        import numpy as np
        import pyarrow as pa

        self._refuse(self._at >= self._ends)
        marks = self._bytes[self._at]
        lengths = np.zeros(len(marks), np.int64)
        headers = np.zeros(len(marks), np.int64)
        for mark, some in _by_form(marks):
            if not 0xC4 <= mark <= 0xC6:
                raise _Misfit
            size = 1 << (mark - 0xC4)
            headers[some] = 1 + size
            lengths[some] = self._word(self._at[some] + 1) >> (64 - 8 * size)
        places = self._at + headers
        self._at = places + lengths
        self._refuse(self._at > self._ends)
        type_places, type_lengths = np.zeros(len(marks), np.int64), np.zeros(len(marks), np.int64)
        if typed.any():
            at = np.flatnonzero(typed)
            self._refuse(self._at[at] >= self._ends[at])
            for mark, some in _by_form(self._bytes[self._at[at]]):
                if not (0xA0 <= mark <= 0xBF or 0xD9 <= mark <= 0xDB):
                    raise _Misfit
                chosen = at[some]
                here = self._at[chosen]
                header, sizes = self._text_lengths(mark, here, self._bytes[here])
                self._refuse(here + header + sizes > self._ends[chosen])
                self._check_texts(here + header, sizes)
                type_places[chosen], type_lengths[chosen] = here + header, sizes
                self._at[chosen] = here + header + sizes
        self._refuse(self._at != self._ends)
        there = np.ones(len(marks), bool)
        self.opened.bodies = lambda: _pieces(self._data, places, lengths, there, pa.binary())
        has_type = type_lengths > 0
        self.opened.types = lambda: _pieces(self._data, type_places, type_lengths, has_type, pa.string())

    def _check(self) -> None:
        """Texts are UTF-8."""
        for values in self.opened.attributes.values():
            if values.lengths is not None:
                _check_utf8(values.texts())

    def _check_texts(self, places: Any, lengths: Any) -> None:
        import numpy as np
        import pyarrow as pa

        if (places + lengths).max() <= len(self._data):
            _check_utf8(_pieces(self._data, places, lengths, np.ones(len(places), bool), pa.string()))


def _check_utf8(texts: Any) -> None:
    import pyarrow as pa

    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise _Misfit from None


def _text_at(data: bytes, place: int) -> tuple[int, int]:
    """Where the text begins and ends whose header is at `place`. Raises _Misfit when there is none."""
    mark = data[place]
    if 0xA0 <= mark <= 0xBF:
        return place + 1, place + 1 + (mark & 0x1F)
    if mark in (0xD9, 0xDA):
        size = mark - 0xD8
        length = int.from_bytes(data[place + 1 : place + 1 + size], "big")
        if length <= ATTRIBUTE_NAME_LENGTH_MAX:
            return place + 1 + size, place + 1 + size + length
    raise _Misfit


def _by_form(marks: Any) -> list[tuple[int, Any]]:
    """(a first byte, where values of its form are): small integers are one form, short texts another."""
    import numpy as np

    forms = marks.copy()
    forms[(marks <= 0x7F) | (marks >= 0xE0)] = 0
    forms[(marks >= 0xA0) & (marks <= 0xBF)] = 0xA0
    return [(int(form), np.flatnonzero(forms == form)) for form in np.unique(forms)]


def _pieces(data: bytes, places: Any, lengths: Any, there: Any, kind: Any) -> Any:
    """Pieces of the data as an Arrow array, NULL where there is none; places ascend.

    The data are read as alternating pieces, what lies between and what is wanted, without a copy; every second one is
    taken by Arrow.
    """
    import numpy as np
    import pyarrow as pa

    if lengths is None:
        return pa.nulls(len(there), kind)
    at = np.flatnonzero(there)
    offsets = np.zeros(2 * len(at) + 1, np.int32)
    offsets[1::2] = places[at]
    offsets[2::2] = places[at] + lengths[at]
    whole = pa.Array.from_buffers(kind, 2 * len(at), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    if len(at) == len(there):
        return whole.take(pa.array(np.arange(1, 2 * len(at), 2)))
    chosen = np.zeros(len(there), np.int64)
    chosen[at] = np.arange(1, 2 * len(at), 2)
    return whole.take(pa.array(chosen, mask=~there))
