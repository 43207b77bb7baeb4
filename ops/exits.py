"""Exit codes: what a script learns from a verb that ended, and which error means which."""

from __future__ import annotations

from headgate.protocol.errors import CannotConnect, ConnectionLost, HeadgateError, LocalError, Unauthorised

__all__ = ["DONE", "INTERRUPTED", "REFUSED", "SKIPPED", "UNREACHABLE", "USAGE", "UsageError", "exit_code"]

DONE = 0
REFUSED = 1
USAGE = 2
UNREACHABLE = 3
SKIPPED = 4
"""Done, but for lines that were left out because they were bad and `--skip-bad` said so."""
INTERRUPTED = 130
"""Ctrl-C, as shells count it: 128 and the number of the signal."""


class UsageError(Exception):
    """The command was written wrongly, or a file that it names cannot be read; the text says what to write."""


def exit_code(error: HeadgateError | UsageError) -> int:
    """The exit code for an error. An unknown outcome is no success, so it counts as refused."""
    if isinstance(error, Unauthorised):
        return REFUSED
    if isinstance(error, CannotConnect | ConnectionLost):
        return UNREACHABLE
    if isinstance(error, UsageError | LocalError):
        return USAGE
    return REFUSED
