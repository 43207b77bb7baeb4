"""The view: lines where there is no terminal, a table that is the last, a verdict for each."""

from __future__ import annotations

import io
import json

from ops.demo.audience import WISHES, Listener
from ops.demo.proof import Verdict, judge
from ops.demo.view import Picture, View, summary

LISTENERS = [Listener(wish) for wish in WISHES]


def shown(seconds: list[float]) -> list[str]:
    file = io.StringIO()
    with View(False, file) as view:
        for moment in seconds:
            view.show(Picture(int(1000 * moment), moment, LISTENERS))
    return file.getvalue().splitlines()


def test_a_line_every_four_seconds() -> None:
    lines = shown([0.5, 3.9, 4.0, 4.1, 7.9, 8.06])
    assert [line.split("  delivered")[0].strip() for line in lines] == [
        "4.0 s  published 4,000",
        "8.1 s  published 8,060",
    ]


def test_the_last_picture_is_a_table() -> None:
    file = io.StringIO()
    with View(True, file) as view:
        view.show_last(Picture(2000, 2.0, LISTENERS))
        view.say("done")
    text = file.getvalue()
    assert "published 2,000 in 2.0 s (1,000 a second)" in text
    assert "quotes WHERE price * volume > 1200000" in text
    assert text.endswith("done\n")


def verdicts(wanted: bytes) -> list[Verdict]:
    return [judge(listener, wanted) for listener in LISTENERS]


def test_the_verdict_of_all() -> None:
    file = io.StringIO()
    with View(True, file) as view:
        view.verdict(verdicts(b""))
        view.verdict(verdicts(b"\1"))
    text = file.getvalue()
    assert "every subscriber got exactly what it asked for" in text
    assert "1 missing (quotes 0)" in text
    assert text.endswith("NOT EXACT: see the lines above\n")


def test_the_summary_is_json_and_knows_the_verdict() -> None:
    picture = Picture(10, 1.0, LISTENERS)
    good = json.loads(json.dumps(summary(picture, verdicts(b""))))
    assert (good["exact"], good["published"], len(good["subscribers"])) == (True, 10, 6)
    bad = summary(picture, verdicts(b"\1"))
    assert (bad["exact"], bad["subscribers"][0]["missing"]) == (False, 1)


def test_nothing_published_has_no_rate() -> None:
    assert Picture(0, 0.0, LISTENERS).rate == 0.0
