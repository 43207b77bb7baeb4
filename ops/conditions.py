"""Conditions as people give them: the words themselves, or `@FILE`, for a list may be longer than a command line."""

from __future__ import annotations

import sys
from pathlib import Path

from .exits import UsageError

__all__ = ["read_condition"]


def read_condition(text: str) -> str:
    """The condition that `--where` stands for; `@-` is standard input. Raises UsageError."""
    if not text.startswith("@"):
        return text
    if text == "@-":
        return sys.stdin.read()
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--where: cannot read {text[1:]}: {getattr(error, 'strerror', None) or error}") from error
