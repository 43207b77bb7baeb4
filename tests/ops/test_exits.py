"""Each error has the exit code that scripts rely on."""

from __future__ import annotations

import pytest

from headgate.ops.exits import UsageError, exit_code
from headgate.protocol.errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    HeadgateError,
    LocalError,
    ProtocolViolation,
    Refused,
    UnknownOutcome,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(ErrorCode.BAD_TOPIC, "no"), 1),
        (UnknownOutcome(3, "the connection broke"), 1),
        (ProtocolViolation("a wrong frame"), 1),
        (LocalError("a bad address"), 2),
        (UsageError("a bad flag"), 2),
        (CannotConnect("here", "nobody"), 3),
        (ConnectionLost("gone"), 3),
    ],
)
def test_errors_and_their_codes(error: HeadgateError | UsageError, code: int) -> None:
    assert exit_code(error) == code
