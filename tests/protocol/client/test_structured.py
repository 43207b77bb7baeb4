"""Documents at the client, without I/O: columns of filters when they are asked for, and checks of what comes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching import Index, parse_condition, parse_pattern
from headgate.matching.structure import DEFAULT_SHAPE, parse_twig
from headgate.ops.bench.papers.bloom_sample import real_documents
from headgate.protocol.client import OTHERS, ClientOptions, Conversation, Event, Inbox, Outcome, document_body
from headgate.protocol.client.findings import Findings
from headgate.protocol.client.publishing import Publications
from headgate.protocol.client.receiving import Deliveries
from headgate.protocol.data import Batch, Columns, decode_column, make_batch
from headgate.protocol.errors import ErrorCode, LocalError
from headgate.protocol.messages import (
    AckVerb,
    Answer,
    Ask,
    Deliver,
    Error,
    Handed,
    Interest,
    Scope,
    Suback,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.structure import Finding, read_document
from headgate.protocol.structure import xml_documents as reading
from tests.matching.structure.samples import twig_texts, xml_documents
from tests.protocol.client.test_durable import attached

XML = "application/xml"
STRUCTURE, VALUES = DEFAULT_SHAPE.column, DEFAULT_SHAPE.values_column
BOOK = b"<book><author><last>x</last></author><title/></book>"


def published(interest: list[str] | None, *documents: tuple[Any, bytes, str]) -> Batch:
    """The batch of events, each with a document or a body and its content type."""
    publications = Publications(Outcome, 500)
    publications.set_interest("a", interest)
    for document, body, content_type in documents:
        opened = None
        if document is not None:
            body, content_type, opened = document_body(document, body, content_type)
        publications.add("a", {"x": 1}, body, content_type, 1, opened)
    publications.seal_all()
    (message,) = publications.release()
    message.batch.check()
    return message.batch


def check_of(twig: str) -> list[object]:
    made = parse_twig(twig)
    return [made.xpath(), sorted(made.items() | made.values())]


def inbox_of(deliveries: Deliveries, *twigs: str) -> Inbox:
    made = deliveries.inboxes[1] = Inbox(deliveries, Subscribe(1, 1, "a"), Outcome())
    made.check_with([check_of(twig) for twig in twigs])
    return made


def delivered(*bodies: bytes) -> Deliver:
    batch = make_batch(["a"], {}, bodies, None, XML)
    return Deliver([[1], len(bodies)], batch.portion(range(len(bodies)), "o", 1, 0))


# --- Publishing ------------------------------------------------------------------------------------------------------


def test_filters_are_columns_when_interest_asks_for_them_and_only_then() -> None:
    events = ((BOOK, b"", ""), ({"book": {"title": "x"}}, b"", ""), (None, BOOK, XML), (None, b"text", ""))
    assert list(published(None, *events).columns) == ["x"]
    assert list(published(["x"], *events).columns) == ["x"]
    batch = published(["x", STRUCTURE], *events)
    assert list(batch.columns) == ["x", STRUCTURE] and batch.complete
    filters: list[Any] = list(decode_column(batch.columns[STRUCTURE], 4))
    assert filters[0] == filters[2] and len(filters[0]) == 2 * len(parse_twig("/book[author/last][title]").items())
    assert filters[3] == b""
    assert list(published([VALUES], *events).columns) == [VALUES]


def test_a_document_is_refused_when_it_is_none_and_a_body_is_not() -> None:
    with pytest.raises(LocalError, match="no XML"):
        published([STRUCTURE], (b"<a>", b"", ""))
    with pytest.raises(LocalError, match="one body"):
        published([STRUCTURE], (b"<a/>", b"x", ""))
    assert published([STRUCTURE], (None, b"<a>", XML)).column(STRUCTURE) == [None]


def test_a_document_whose_filter_says_nothing_is_refused_and_one_that_is_half_full_goes_to_all() -> None:
    half, full = ("<a>" + "".join(f"<n{row}/>" for row in range(count)) + "</a>" for count in (600, 1500))
    publications = Publications(Outcome, 500)
    publications.add("a", None, full.encode(), XML, 1, read_document(full.encode(), XML))  # nobody asked
    publications.seal_all()
    publications.set_interest("a", [STRUCTURE, VALUES])
    assert published([STRUCTURE], (half, b"", "")).column(STRUCTURE) == [None]
    for text in (full, {"a": {f"n{row}": 1 for row in range(1500)}}):
        with pytest.raises(LocalError, match=r"of its 1024 bits set.*raise structure.l .*4096"):
            published([STRUCTURE], (text, b"", ""))
    body, content_type, document = document_body(full, b"", "")
    with pytest.raises(LocalError):
        publications.add("a", None, body, content_type, 1, document)
    publications.add("a", None, full.encode(), XML, 1)  # as a body of that type
    publications.seal_all()
    assert [message.batch.count for message in publications.release()] == [1, 1], (
        "what is refused leaves nothing behind"
    )
    published([VALUES], (full, b"", ""))
    published(["#structure/8192/1"], (full, b"", ""))


@pytest.mark.slow
def test_no_real_document_is_refused_for_its_filter() -> None:
    sets = real_documents()
    if len(sets) < 5:
        pytest.skip("no documents stand beside the repository")
    for texts in sets.values():
        for text in texts:
            try:
                document = read_document(text, XML)
            except LocalError:
                continue
            document.check_filters([STRUCTURE, "#structure/128/1"])


def test_what_was_taken_before_anybody_asked_is_unknown() -> None:
    publications = Publications(Outcome, 500)
    publications.add("a", None, BOOK, XML, 1)
    publications.set_interest("a", [STRUCTURE])
    publications.add("a", None, BOOK, XML, 1)
    publications.seal_all()
    (message,) = publications.release()
    values = message.batch.column(STRUCTURE)
    assert values is not None and values[0] is None and values[1]


def test_columns_of_bodies_have_filters_too() -> None:
    publications = Publications(Outcome, 500)
    publications.set_interest("a", ["x", STRUCTURE])
    list(publications.add_columns("a", {"x": [1, 2]}, [BOOK, b"<a/>"], XML, 1))
    (message,) = publications.release()
    assert list(message.batch.columns) == ["x", STRUCTURE]
    assert [len(one) for one in decode_column(message.batch.columns[STRUCTURE], 2)] == [16, 4]  # type: ignore[arg-type]


def test_no_attribute_has_the_name_of_a_filter() -> None:
    with pytest.raises(LocalError, match="the name of a filter"):
        Publications(Outcome, 500).add("a", {STRUCTURE: "x"}, b"", "", 1)


@given(st.lists(xml_documents(), min_size=1, max_size=4), st.lists(twig_texts(), min_size=1, max_size=4), st.booleans())
def test_what_a_subscriber_is_due_passes_the_index(documents: list[str], twigs: list[str], is_asked: bool) -> None:
    """From the publisher's document over the broker's index to the subscriber's check, nothing is missed."""
    index = Index()
    for number, twig in enumerate(twigs):
        quoted = twig.replace("'", "''")
        index.add(number, parse_pattern("a"), parse_condition(f"XPATH '{quoted}'"))
    interest = list(index.attributes()) if is_asked else []
    batch = published(interest, *((text.encode(), b"", "") for text in documents))
    found = {
        (one, row) for ids, rows in index.match(["a"], len(documents), Columns(batch)) for one in ids for row in rows
    }
    for number, twig in enumerate(twigs):
        deliveries = Deliveries(100)
        inbox = inbox_of(deliveries, twig)
        deliveries.deliver(delivered(*(text.encode() for text in documents)))
        due = {(number, event.sequence - 1) for event in inbox.take()}
        assert due <= found
        assert len(due) + sum(inbox.findings.by_why.values()) == len(documents)
    assert is_asked or len(found) == len(twigs) * len(documents)


# --- Receiving -------------------------------------------------------------------------------------------------------


def test_what_has_no_such_document_is_counted_and_handed_to_nobody() -> None:
    deliveries = Deliveries(10)
    inbox = inbox_of(deliveries, "book[title]", "author/last")
    in_two = b"<a><book><title/></book><author><b/></author><c><last/></c></a>"
    apart = b"<a><book><x/></book><book><title/></book><author/><author><last/></author></a>"
    torn = b"<r><a><book/></a><book><title><author/></title></book><author><last/></author></r>"
    deliveries.deliver(delivered(BOOK, in_two, apart, torn, b"<book>", b""))
    assert [event.body for event in inbox.take()] == [BOOK, apart, torn]
    assert inbox.findings.by_why == {"hash": 1, "no document": 2}
    assert inbox.findings.by_topic == {"a": {"hash": 1, "no document": 2}}
    assert deliveries.credit().allowed == 10 + 6


def test_all_names_in_other_places_are_a_false_positive_of_the_structure() -> None:
    deliveries = Deliveries(10)
    inbox = inbox_of(deliveries, "a[b][c]")
    deliveries.deliver(delivered(b"<r><a><b/></a><a><c/></a></r>", b"<a><b/><c/></a>"))
    assert len(inbox.take()) == 1
    assert inbox.findings.by_why == {"structure": 1}


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["hash", "structure"])), max_size=60))
def test_findings_by_topic_leave_nothing_out_and_have_a_bound(found: list[tuple[str, str]]) -> None:
    findings = Findings(3)
    for topic, why in found:
        findings.count(topic, Finding(why))
    exact = Counter(topic for topic, _ in found)
    shown = {topic: sum(counts.values()) for topic, counts in findings.by_topic.items()}
    assert findings.by_why == Counter(why for _, why in found)
    assert sum(shown.values()) == len(found) and len(shown) <= 3 + 1
    named = [count for topic, count in shown.items() if topic != OTHERS]
    assert named == sorted(named, reverse=True) and list(shown)[len(named) :] in ([], [OTHERS])
    assert all(count <= exact[topic] for topic, count in shown.items() if topic != OTHERS)
    if len(exact) <= 3:
        assert shown == exact


def test_a_topic_of_which_much_comes_is_not_driven_out_by_many_others() -> None:
    findings = Findings(3)
    for number in range(50):
        findings.count("much", Finding.HASH)
        findings.count(f"one/{number}", Finding.STRUCTURE)
    assert next(iter(findings.by_topic.items())) == ("much", {"hash": 50})
    assert findings.by_topic[OTHERS] == {"structure": 48}
    findings.by_topic["much"].clear()
    assert findings.by_topic["much"], "what is shown is a copy"


def test_the_broker_says_what_is_checked() -> None:
    conversation = Conversation(ClientOptions(name="n"), Outcome)
    conversation.handle(Welcome(2, "b", b"k", False, 0, 100, 15.0))
    inbox = conversation.inbox("a", "XPATH 'book'", {})
    conversation.subscribe(inbox)
    (message,) = conversation.outgoing()
    assert isinstance(message, Subscribe)
    conversation.handle(Suback(message.request, message.subscription, [check_of("book")]))
    conversation.handle(delivered(BOOK, b"<a/>"))
    assert inbox.confirmed and [event.body for event in inbox.take()] == [BOOK]


def test_whoever_cannot_check_does_not_subscribe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_parser", lambda: (_ for _ in ()).throw(ImportError("lxml")))
    conversation = Conversation(ClientOptions(name="n"), Outcome)
    conversation.handle(Welcome(2, "b", b"k", False, 0, 100, 15.0))
    inbox = conversation.inbox("a", "XPATH 'book'", {})
    outcome = conversation.subscribe(inbox)
    (message,) = conversation.outgoing()
    assert isinstance(message, Subscribe)
    conversation.handle(Suback(message.request, message.subscription, [check_of("book")]))
    assert outcome.settled and isinstance(outcome.error, LocalError) and "headgate[xml]" in str(outcome.error)
    assert inbox.ended and inbox.failure is outcome.error
    conversation.unsubscribe(inbox)
    assert [type(one) for one in conversation.outgoing()] == [Unsubscribe]


def test_the_interest_of_a_stream_changes() -> None:
    conversation = Conversation(ClientOptions(name="n"), Outcome)
    conversation.handle(Interest("a", ["x", STRUCTURE]))
    assert conversation.publications.filter_names == {"a": (STRUCTURE,)}
    conversation.handle(Interest("a", ["x"]))
    assert conversation.publications.filter_names == {}


def test_a_durable_subscription_acknowledges_what_it_hands_to_nobody() -> None:
    world = attached()
    world.inbox.check_with([check_of("book")])
    world.say(Handed(1, 1, b"", delivered(BOOK, b"<a/>", BOOK).portion))
    events: list[Event] = world.inbox.take()
    assert [event.delivery for event in events] == [1, 3]
    (ack,) = world.inbox.acks(iter(range(1, 9)).__next__)
    assert (ack.verb, ack.spans) == (AckVerb.SKIP, [2, 2])


def test_what_came_before_a_durable_subscription_was_changed_is_asked_what_it_asked_then() -> None:
    world = attached()
    world.inbox.check_with([check_of("book")])
    world.say(Handed(1, 1, b"", delivered(BOOK, b"<a/>").portion), Suback(0, 1, [check_of("a")]))
    world.say(Handed(1, 3, b"", delivered(BOOK, b"<a/>").portion), Suback(0, 1))
    world.say(Handed(1, 5, b"", delivered(BOOK, b"<a/>").portion))
    assert [event.delivery for _ in range(3) for event in world.inbox.take()] == [1, 4, 5, 6]


@pytest.mark.parametrize("after", [[check_of("a")], []])
def test_what_came_before_an_amendment_is_asked_what_was_asked_then(after: list[Any]) -> None:
    conversation = Conversation(ClientOptions(name="n"), Outcome)
    conversation.handle(Welcome(2, "b", b"k", False, 0, 100, 15.0))
    inbox = conversation.inbox("a", "XPATH 'book'", {})
    conversation.subscribe(inbox)
    (message,) = conversation.outgoing()
    assert isinstance(message, Subscribe)
    conversation.handle(delivered(b"<a/>", BOOK))  # some may be delivered before SUBACK
    conversation.handle(Suback(message.request, message.subscription, [check_of("book")]))
    outcome = conversation.amend(inbox, "a", "XPATH 'a'" if after else "")
    (question,) = conversation.outgoing()
    assert isinstance(question, Ask)
    conversation.handle(delivered(b"<a/>", BOOK))
    conversation.handle(Answer(question.request, {"puts": 1} | ({"checks": after} if after else {})))
    conversation.handle(delivered(b"<a/>", BOOK))
    assert outcome.settled
    assert [event.body for _ in range(3) for event in inbox.take()] == [BOOK, BOOK, b"<a/>"] + [BOOK] * (not after)


def test_what_is_checked_is_known_in_a_session_that_goes_on_though_its_answer_was_lost() -> None:
    """What came before the connection was lost is asked what was asked then."""
    conversation = Conversation(ClientOptions(name="n"), Outcome)
    conversation.handle(Welcome(2, "b", b"k", False, 0, 100, 15.0))
    inbox = conversation.inbox("a", "XPATH 'book'", {})
    conversation.subscribe(inbox)
    (message,) = conversation.outgoing()
    assert isinstance(message, Subscribe)
    conversation.interrupted("the connection was lost")
    conversation.handle(Welcome(2, "b", b"k", True, 0, 100, 15.0))
    conversation.handle(Suback(0, 1, [check_of("book")]))
    assert not inbox.confirmed
    conversation.handle(delivered(b"<a/>", BOOK))
    conversation.handle(Error(ErrorCode.DUPLICATE, Scope.REQUEST, message.request, "exists"))
    assert inbox.confirmed
    conversation.handle(Suback(0, 1, [check_of("a")]))
    conversation.handle(delivered(b"<a/>", BOOK))
    assert [event.body for _ in range(2) for event in inbox.take()] == [BOOK, b"<a/>"]


def test_random_batches_keep_rows_and_filters_together() -> None:
    rng = Random(7)
    bodies = [rng.choice((BOOK, b"<a/>", b"", b"{}")) for _ in range(50)]
    batch = published([STRUCTURE], *((None, body, XML) for body in bodies))
    part = batch.select([3, 7, 11], [STRUCTURE])
    whole = batch.column(STRUCTURE)
    assert whole is not None
    assert part.column(STRUCTURE) == [whole[3], whole[7], whole[11]]
