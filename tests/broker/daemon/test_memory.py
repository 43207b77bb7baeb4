"""What the C library is told about freed memory, and that one which cannot be told does no harm."""

from __future__ import annotations

import platform

import pytest

from headgate.broker.daemon.limits import FREED_BYTES_KEPT, MAPPED_BYTES_MIN
from headgate.broker.daemon.memory import keep_freed_memory


class Library:
    """A C library that remembers what it was told, and refuses one setting."""

    def __init__(self, refuses: int = 0) -> None:
        self.told: dict[int, int] = {}
        self._refuses = refuses

    def mallopt(self, name: int, value: int) -> int:
        self.told[name] = value
        return int(name != self._refuses)


def test_both_settings_are_told() -> None:
    library = Library()
    assert keep_freed_memory(library)
    assert library.told == {-3: MAPPED_BYTES_MIN, -1: FREED_BYTES_KEPT}


@pytest.mark.parametrize("refuses", [-1, -3])
def test_a_refusal_is_no_success(refuses: int) -> None:
    assert not keep_freed_memory(Library(refuses))


def test_a_library_without_the_call_is_left_alone() -> None:
    assert not keep_freed_memory(object())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_glibc_takes_the_real_values() -> None:
    assert keep_freed_memory()
