"""Documents that nobody should publish, and publishers that lie about theirs, beside a witness on other streams.

A filter that says too much costs its subscribers' libraries a look; one that says all is refused with what to do; one
that says too little keeps its own event from those who want it; one that cannot be read counts as not there. Nobody
else notices.
"""

from __future__ import annotations

import asyncio

import pytest

from headgate.matching.structure import DEFAULT_SHAPE, filter_of, pack, parse_twig
from headgate.protocol.aio import connect
from headgate.protocol.data import encode_column, make_batch
from headgate.protocol.errors import ErrorCode, LocalError
from headgate.protocol.messages import Error, Mode, Puback, Publish, Suback
from tests.support.raw_client import RawClient
from tests.support.witness import besieged

pytestmark = pytest.mark.slow

XML = "application/xml"
BOOK = b"<bib><book/></bib>"
WHERE = "XPATH '/bib/book'"
LENGTH = DEFAULT_SHAPE.length
RIGHT = pack(parse_twig("/bib/book").filter(LENGTH, 1), LENGTH)
LESS = pack(filter_of(["r/bib", "n/bib", "n/book"], LENGTH, 1), LENGTH)

ONES = b"\xff" * (LENGTH // 8)

LIES = {
    "all ones": (ONES, False),
    "nothing": (None, True),
    "a byte": (b"\x01", True),
    "too long": (b"\x00" * (LENGTH // 8 + 1), True),
    "positions beyond the end": (b"\x00\x01\xff\xff", True),
    "positions that descend": (b"\x00\x02\x00\x01", True),
    "no bit": (b"\x00" * (LENGTH // 8), False),
    "no document": (b"", False),
    "an item is missing": (LESS, False),
}
"""The filter of a document that has the twig -> whether the subscriber gets the document."""

BAD = {
    "a bomb": b"<!DOCTYPE a [<!ENTITY b 'xx'><!ENTITY c '&b;&b;&b;'>]><bib><book>&c;</book></bib>",
    "a file of ours": b"<!DOCTYPE a [<!ENTITY b SYSTEM 'nowhere.txt'>]><bib><book>&b;</book></bib>",
    "broken": b"<bib><book></bib>",
    "an encoding that nobody knows": b"<?xml version='1.0' encoding='klingon'?><bib><book/></bib>",
    "bytes that are no text": b"<bib><book>\xff\xfe</book></bib>",
    "100,000 levels": b"<bib>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</bib>",
    "200,000 siblings": b"<bib>" + b"<a/>" * 200_000 + b"</bib>",
}


async def test_who_lies_about_a_document_harms_nobody_else() -> None:
    async with besieged() as broker:
        liar, reader = await RawClient.greeted(broker.address), await connect(broker.address)
        subscription = await reader.subscribe("library", where=WHERE)
        for number, (cell, _) in enumerate(LIES.values(), 1):
            batch = make_batch(["library"], {"number": [number]}, [BOOK], None, XML)
            batch.columns[DEFAULT_SHAPE.column] = encode_column([cell])
            await liar.say(Publish(number, Mode.ACCEPTED, batch))
            answers = [await liar.hear()]
            while not isinstance(answers[-1], Puback):  # INTEREST comes first
                answers.append(await liar.hear())
            refused = [answer.code for answer in answers if isinstance(answer, Error)]
            assert refused == ([ErrorCode.LIMIT] if cell == ONES else [])
        lie = make_batch(["library"], {"number": [0]}, [b"<other/>"], None, XML)
        lie.columns[DEFAULT_SHAPE.column] = encode_column([RIGHT])
        await liar.say(Publish(len(LIES) + 1, Mode.ACCEPTED, lie))
        await liar.hear()
        await reader.publish("library", {"number": 100}, document=BOOK)
        due = [number for number, (_, comes) in enumerate(LIES.values(), 1) if comes]
        got = [(await asyncio.wait_for(anext(subscription), 10)).attributes["number"] for _ in range(len(due) + 1)]
        assert got == [*due, 100]
        assert sum(subscription.false_positives.values()) == 1, "what is a document of its own, under another's filter"
        await liar.close()
        await reader.close()


async def test_a_bad_document_is_refused_by_the_library_and_harmless_as_a_body() -> None:
    async with besieged() as broker:
        writer, reader = await connect(broker.address), await connect(broker.address)
        subscription = await reader.subscribe("library", where=WHERE)
        for kind, body in BAD.items():
            is_one = "siblings" in kind or "levels" in kind
            if not is_one:
                with pytest.raises(LocalError):
                    await writer.publish("library", {"kind": kind}, document=body)
            await writer.publish("library", {"kind": kind}, body, content_type=XML)
        await writer.publish("library", {"kind": "good"}, document=BOOK)
        event = await asyncio.wait_for(anext(subscription), 30)
        assert event.attributes["kind"] == "good"
        await writer.close()
        await reader.close()


async def test_what_the_library_keeps_back_is_no_reference_of_a_delta_beside_it() -> None:
    """matching/SPEC.md, 8.1: at each event that it asks for, the subscriber has a value within the number."""
    apart, whole = "<bib><book><a/></book><book><b/></book></bib>", "<bib><book><a/><b/></book></bib>"
    async with besieged() as broker:
        writer, reader = await connect(broker.address), await connect(broker.address)
        where = "XPATH 'book[a][b]' AND x > 0 AND DELTA(price) > 5"
        subscription = await reader.subscribe("library", where=where)
        assert subscription.where == where
        for price, x in ((10, 1), (20, 1), (21, 1), (30, 0), (25, 1), (27, 1), (40, 1)):
            document = apart if price == 20 else whole
            await writer.publish("library/a", {"price": price, "x": x}, document=document)
        got = [(await asyncio.wait_for(anext(subscription), 10)).attributes["price"] for _ in range(4)]
        assert got == [10, 21, 27, 40], "at the broker 20 would have been the reference, and 21 not sent"
        with pytest.raises(LocalError, match="subscribe anew"):
            await subscription.amend(where="price > 1")
        await writer.close()
        await reader.close()


async def test_long_twigs_are_refused_or_taken_like_any_other() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        for number, (twig, is_taken) in enumerate(
            [
                ("/".join(["a"] * 2000), False),
                ("[".join(["a"] * 2000), False),
                ("a" * 4000, False),
                ("/".join(f"{place:->60}"[::-1].replace("-", "x") for place in ["n"] * 32), True),
                ("r" + "".join(f"[n{place}{'x' * 55}]" for place in range(63)), True),
            ],
            1,
        ):
            answer = await client.subscribe(number, "library", f"XPATH '{twig}'")
            assert isinstance(answer, Suback if is_taken else Error), (twig[:100], answer)
            assert is_taken or (isinstance(answer, Error) and answer.code == ErrorCode.BAD_CONDITION)
        await client.close()
