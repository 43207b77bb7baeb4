"""What a coroutine test leaves behind fails it: tasks, errors nobody took, callbacks that raised."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.watched import watched

ROOT = Path(__file__).resolve().parent.parent


async def good() -> None:
    await asyncio.sleep(0)


async def leaves_a_task() -> None:
    asyncio.ensure_future(asyncio.Event().wait())  # noqa: RUF006
    await asyncio.sleep(0)


async def loses_an_error() -> None:
    asyncio.get_running_loop().create_future().set_exception(ZeroDivisionError("lost"))


async def raises_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(lambda: 1 // 0)
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("test", "word"),
    [(leaves_a_task, "left running"), (loses_an_error, "lost"), (raises_in_a_callback, "ZeroDivisionError")],
)
def test_what_is_left_behind_fails_the_test(test: object, word: str) -> None:
    asyncio.run(watched(good)())
    with pytest.raises(AssertionError, match=word):
        asyncio.run(watched(test)())  # type: ignore[arg-type]


def test_every_coroutine_test_is_watched(tmp_path: Path) -> None:
    """A file of tests beside this one: pytest runs its coroutines, and fails those that leave something behind."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_itemcollected  # noqa: F401\n")
    (tmp_path / "test_it.py").write_text(
        "import asyncio\nfrom hypothesis import given, strategies\n"
        "async def test_good(): await asyncio.sleep(0)\n"
        "async def test_bad(): asyncio.get_running_loop().call_soon(lambda: 1 // 0)\n"
        "@given(strategies.integers())\n"
        "async def test_bad_property(number): asyncio.get_running_loop().call_soon(lambda: 1 // 0)\n"
    )
    options = ("-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), *options, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 failed, 1 passed" in found.stdout, found.stdout + found.stderr
