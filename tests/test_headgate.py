"""The front door: what it offers, and that the examples of its manual run as they stand."""

from __future__ import annotations

import doctest
import sys

from structlog.testing import capture_logs

import headgate
from tests.support.live_broker import live_broker
from tests.support.threaded import in_thread


def test_the_examples_of_the_manual_run_against_a_broker() -> None:
    manual = headgate.__doc__ or ""
    assert manual.count("127.0.0.1:7400") >= 4
    # The broker of this process would log into what the examples print.
    with capture_logs(), in_thread(live_broker) as broker:
        text = manual.replace("127.0.0.1:7400", broker.thing.address)
        examples = doctest.DocTestParser().get_doctest(text, {}, "headgate", "headgate/__init__.py", 0)
        assert len(examples.examples) >= 8
        results = doctest.DocTestRunner().run(examples, out=sys.stdout.write)
    assert results.failed == 0


def test_everything_that_the_manual_names_is_here() -> None:
    for name in headgate.__all__:
        assert hasattr(headgate, name)
    for error in ("CannotConnect", "ConnectionLost", "LocalError", "ProtocolViolation", "Refused", "UnknownOutcome"):
        assert issubclass(getattr(headgate, error), headgate.HeadgateError)
