r"""LIKE: a pattern of text, `_` (any one character) and `%` (any run of characters), matched in linear time.

**Theory.** Cut the pattern at its `%`. The first piece must stand at the start of the text, the last at its end, and
each piece between is looked for to the right of the one before; taking its leftmost place is always right, because it
leaves the most room for the rest. There is no backtracking, so `%a%a%a%a%b` costs no more than five searches.

A piece without `_` is found by `str.find`, which is linear. A piece with `_` is found by the shift-and automaton: bit
i of `state` says "the last i+1 characters fit the first i+1 places", and one character moves all of them by one shift
and one mask. That is a machine word of work for each 30 places, whatever the text.

The escape character (a backslash unless ESCAPE says otherwise) makes `%`, `_` or itself stand for itself; before
anything else, or at the end, it is an error, as in Spark: `split_like` raises ValueError with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

__all__ = ["DEFAULT_ESCAPE", "compile_like", "literal_prefix", "split_like"]

DEFAULT_ESCAPE: Final = "\\"

# A place in a piece: the character that must stand there, or None for any.
Piece: TypeAlias = tuple[str | None, ...]


def split_like(pattern: str, escape: str | None = None) -> list[Piece]:
    """The pieces between the `%` of a pattern; ValueError says what is wrong with an escape."""
    escape = DEFAULT_ESCAPE if escape is None else escape
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise ValueError(f"the pattern ends with its escape character {escape}")
            if following not in ("%", "_", escape):
                raise ValueError(f"the escape character {escape} may stand before %, _ or {escape} only")
            pieces[-1].append(following)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return [tuple(piece) for piece in pieces]


def literal_prefix(pattern: str, escape: str | None = None) -> str:
    """The text with which every match begins."""
    prefix = ""
    for place in split_like(pattern, escape)[0]:
        if place is None:
            break
        prefix += place
    return prefix


def compile_like(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """A function that says whether a text matches; the common forms are built-in string methods."""
    pieces = split_like(pattern, escape)
    texts = [_text(piece) for piece in pieces]
    if None not in texts:
        literal = [text for text in texts if text is not None]
        if len(pieces) == 1:
            return literal[0].__eq__
        if not any(literal[1:-1]):
            if not literal[0] or not literal[-1]:
                return partial(_ends, literal[0], literal[-1])
        elif not literal[0] and not literal[-1] and len(pieces) == 3:
            return partial(_holds, literal[1])
    if len(pieces) == 1:
        return partial(_fits, pieces[0])
    middle = tuple(_finder(piece) for piece in pieces[1:-1] if piece)
    return partial(_match, pieces[0], middle, pieces[-1])


def _text(piece: Piece) -> str | None:
    """The piece as plain text, or None when it has a place for any character."""
    return None if None in piece else "".join(place for place in piece if place is not None)


def _ends(prefix: str, suffix: str, text: str) -> bool:
    return text.startswith(prefix) and text.endswith(suffix)


def _holds(part: str, text: str) -> bool:
    return part in text


def _fits(piece: Piece, text: str) -> bool:
    """Does the piece cover exactly this text?"""
    return len(piece) == len(text) and all(p is None or p == c for p, c in zip(piece, text, strict=True))


def _match(first: Piece, middle: tuple[Callable[[str, int, int], int], ...], last: Piece, text: str) -> bool:
    start, end = len(first), len(text) - len(last)
    if start > end or not _fits(first, text[:start]) or not _fits(last, text[end:]):
        return False
    for find in middle:
        start = find(text, start, end)
        if start < 0:
            return False
    return True


def _finder(piece: Piece) -> Callable[[str, int, int], int]:
    """A function (text, start, end) -> the end of the piece's leftmost place there, or -1."""
    text = _text(piece)
    if text is not None:
        return partial(_find_text, text)
    free = sum(1 << i for i, place in enumerate(piece) if place is None)
    masks: dict[str, int] = {}
    for i, place in enumerate(piece):
        if place is not None:
            masks[place] = masks.get(place, free) | 1 << i
    return partial(_find_places, masks, free, 1 << len(piece) - 1)


def _find_text(part: str, text: str, start: int, end: int) -> int:
    place = text.find(part, start, end)
    return place if place < 0 else place + len(part)


def _find_places(masks: dict[str, int], free: int, done: int, text: str, start: int, end: int) -> int:
    state = 0
    for i in range(start, end):
        state = (state << 1 | 1) & masks.get(text[i], free)
        if state & done:
            return i + 1
    return -1
