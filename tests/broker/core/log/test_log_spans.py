"""Spans: what goes on is one, what leaves something out is not, and halving finds what looking at all of them would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.log.reconcile import GatheredSpans, Span, Spans
from headgate.protocol.data import LogKind, LogName, Row

ANN = LogName("ann", 1, int(LogKind.EVENTS), "quotes")


def row(producer: str, number: int, count: int = 1, digest: bytes = b"", time: int = 5) -> Row:
    return Row(0, count, time, "o", 0, b"", "quotes", b"", {}, False, b"", producer, 1, number, digest)


def gathered(*rows: tuple[LogName, Row, bool]) -> list[tuple[str, int, int, int, bool]]:
    spans = GatheredSpans()
    for name, one, doubted in rows:
        spans.take(name, one, doubted)
    return [(one.producer, one.start, one.end, one.time, one.doubted) for one in spans.all]


def test_a_row_goes_on_the_last_span_of_its_producer_whoever_stands_between() -> None:
    rows = [row("p", 0, 2), row("q", 7), row("p", 2, 1, time=6), row("q", 8), row("p", 3)]
    assert gathered(*[(ANN, one, False) for one in rows]) == [("p", 0, 4, 5, False), ("q", 7, 9, 5, False)]


def test_its_digest_is_that_of_its_newest_row() -> None:
    spans = GatheredSpans()
    spans.take(ANN, row("p", 0, digest=b"a"), False)
    spans.take(ANN, row("p", 1, digest=b"b"), False)
    assert [(one.digest, one.broker) for one in spans.all] == [(b"b", "ann")]


def test_what_stands_between_may_be_elsewhere() -> None:
    assert gathered((ANN, row("p", 0), False), (ANN, row("p", 2), False)) == [
        ("p", 0, 1, 5, False),
        ("p", 2, 3, 5, False),
    ]


def test_rows_that_are_doubted_and_rows_of_other_logs_are_spans_of_their_own() -> None:
    rows = [(ANN, row("p", 0), False), (ANN, row("p", 1), True), (ANN, row("p", 2), True)]
    rows.append((ANN._replace(epoch=2), row("p", 3), False))
    assert [one[1:3] for one in gathered(*rows)] == [(0, 1), (1, 2), (2, 3), (3, 4)]


some_spans = st.lists(
    st.builds(
        lambda producer, start, length, broker: Span(producer, start, start + length, 5, False, broker),
        st.sampled_from("pq"),
        st.integers(0, 30),
        st.integers(1, 12),
        st.sampled_from(["ann", "bob"]),
    ),
    max_size=12,
)


@given(some_spans, st.sampled_from("pqr"), st.integers(0, 40), st.integers(1, 5))
def test_halving_finds_what_looking_at_all_of_them_would(
    spans: list[Span], producer: str, start: int, count: int
) -> None:
    def key(span: Span) -> tuple[str, int, int]:
        return span.broker, span.start, span.end

    found, of = Spans(spans), [span for span in spans if span.producer == producer]
    assert sorted(found.of(producer), key=key) == sorted(of, key=key)
    sharing = [span for span in of if span.start < start + count and start < span.end]
    assert sorted(found.sharing(producer, start, start + count), key=key) == sorted(sharing, key=key)
    assert bool(found) == bool(spans)
