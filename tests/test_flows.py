"""The tracer of flows counts what it says, and no flow passes more files or goes back up more often than its budget.

`make flows` prints today's numbers, `make flows ARGS="--back SUBSCRIBE"` who calls back whom.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.tracer import FLOWS, Flow, Step, Tracer, idle_shares, main, table


class Budget(NamedTuple):
    """At most so many of each; what makes one smaller lowers its number here in the same commit."""

    files: int
    back: int
    messages: int = 0
    links: float = 0.0


BUDGETS = {
    "PUBLISH": Budget(16, 0),
    "SUBSCRIBE": Budget(40, 0),
    "SUBSCRIBE-again": Budget(35, 0),
    "SUBSCRIBE-cluster": Budget(40, 12, messages=6, links=4),  # those of matching's range blocks alone
    "COPIED": Budget(19, 0),  # with the delivery of what is safe by it
    "CREDIT": Budget(4, 0),
    "stored-PUBLISH": Budget(25, 0, messages=2, links=3),
    "replay": Budget(7, 0, links=0.5),
    "durable-PUBLISH": Budget(44, 4, messages=6, links=7.5),
    "durable-ACK": Budget(25, 3, messages=4, links=4.5),
    "first-use-3": Budget(44, 0, messages=10, links=4),
    "first-use-5": Budget(44, 0, messages=14, links=4),
    "first-use-9": Budget(44, 0, messages=22, links=4),
}
POLLS_PERCENT = 3.0
BELOW_ASKING_PERCENT = 4.5

SLOW = {"first-use-9"}


@cache
def flow(name: str) -> Flow:
    return FLOWS[name]()


# --- The flows keep their budgets -------------------------------------------------------------------------------------


def test_every_flow_has_a_budget() -> None:
    assert set(BUDGETS) == set(FLOWS)


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in BUDGETS])
def test_a_flow_keeps_its_budget(name: str) -> None:
    numbers, budget = flow(name).numbers, BUDGETS[name]
    found = Budget(int(numbers["files"]), int(numbers["calls back"]), int(numbers["messages"]), numbers["link times"])
    assert all(one <= most for one, most in zip(found, budget, strict=True)), (
        f"{name} takes {found} where {budget} was enough: `make flows ARGS='--files {name}'` and `--back {name}` say "
        "what it passes"
    )


def test_an_idle_cluster_polls_no_more_than_it_did() -> None:
    shares = idle_shares(5.0)
    assert 0 < shares["polls %"] <= POLLS_PERCENT
    assert shares["polls %"] < shares["below polling %"] < 100
    assert shares["below asking %"] <= BELOW_ASKING_PERCENT


# --- The tracer counts what it says -----------------------------------------------------------------------------------


def test_publish_passes_the_node_first_and_the_index_and_no_other_broker() -> None:
    files = flow("PUBLISH").files
    assert files[0] == "broker/core/node.py"
    assert any(file.startswith("matching/index") for file in files)
    assert not flow("PUBLISH").said


def test_a_flow_is_told_in_order_and_each_count_holds_the_smaller_one() -> None:
    for name in ("PUBLISH", "SUBSCRIBE", "stored-PUBLISH", "replay"):
        numbers = flow(name).numbers
        assert len(set(flow(name).files)) == len(flow(name).files) == numbers["files"]
        assert numbers["files"] <= numbers["functions"] <= numbers["calls"] <= numbers["any calls"]
        assert numbers["files"] <= numbers["any files"]


def test_the_first_subscription_takes_more_than_the_next_and_more_brokers_more_than_one() -> None:
    first, again, three = (flow(name).numbers for name in ("SUBSCRIBE", "SUBSCRIBE-again", "first-use-3"))
    assert again["calls"] < first["calls"] < three["calls"]
    assert again["messages"] == first["messages"] == 0 < three["messages"]


def test_a_stored_publish_ends_with_what_the_follower_says() -> None:
    whole, last = flow("stored-PUBLISH"), flow("COPIED")
    assert [step.calls for step in last.steps] == [whole.steps[-1].calls]
    assert set(last.files) <= set(whole.files)
    assert sum(whole.kinds.values()) == len(whole.said) >= 2, "at least there and back"


def test_the_same_flow_counts_the_same_every_time() -> None:
    again = FLOWS["SUBSCRIBE"]()
    assert (again.numbers, again.files, again.back) == (
        flow("SUBSCRIBE").numbers,
        flow("SUBSCRIBE").files,
        flow("SUBSCRIBE").back,
    )


# --- Planted files ----------------------------------------------------------------------------------------------------

ABOVE = """
from . import helper, lower

class Above:
    def handle(self, happened):
        happened(self)
        return ["an effect"]

    def plain(self):
        return lower.work(helper.add(1, 1))

    def slot(self):
        return lower.call(self.told)

    def closure(self):
        return lower.call(lambda: 1)

    def far(self):
        return lower.pass_on(self.told)

    def draw(self):
        return lower.total(number for number in range(3))

    def fail(self):
        try:
            lower.call(self.broken)
        except KeyError:
            lower.work(1)

    def told(self):
        return 1

    def broken(self):
        raise KeyError("on purpose")
"""
LOWER = """
from . import helper, lowest

def work(number):
    return helper.add(number, 1)

def call(slot):
    return slot()

def pass_on(slot):
    return lowest.call(slot)

def total(numbers):
    found = 0
    for number in numbers:
        found += number
    return found
"""
HELPER = """
def add(one, other):
    return one + other
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Step]:
    """Traces one method of a small product of four files."""
    package = f"planted_{tmp_path.name}"
    folder = tmp_path / package
    folder.mkdir()
    sources = {"__init__": "", "above": ABOVE, "lower": LOWER, "lowest": "def call(slot): return slot()\n"}
    for name, text in (sources | {"helper": HELPER}).items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    above: Any = import_module(f"{package}.above")

    def trace(method: str) -> Step:
        call = getattr(above.Above, method)
        tracer = Tracer(above.Above.handle, product=(folder.as_posix(),))
        with tracer.active():
            above.Above().handle(call)
        (step,) = tracer.steps
        assert step.happened is call
        assert [str(effect) for effect in step.effects] == ["an effect"]
        return step

    return trace


def files_of(step: Step) -> list[str]:
    return list(dict.fromkeys(Path(function.file).stem for function in step.calls))


def back_of(step: Step) -> list[tuple[str, str]]:
    return [(caller.name, called.name) for caller, called in step.back.elements()]


def test_calling_down_and_calling_a_helper_are_not_calls_back(planted: Callable[[str], Step]) -> None:
    step = planted("plain")
    assert files_of(step) == ["above", "helper", "lower"]
    assert step.calls.total() == 5
    assert back_of(step) == []


def test_a_planted_call_back_is_counted(planted: Callable[[str], Step]) -> None:
    assert back_of(planted("slot")) == [("call", "Above.told")]
    assert back_of(planted("closure")) == [("call", "Above.closure.<locals>.<lambda>")]


def test_a_planted_file_is_counted_and_a_call_back_through_it_as_well(planted: Callable[[str], Step]) -> None:
    assert files_of(planted("slot")) == ["above", "lower"]
    step = planted("far")
    assert files_of(step) == ["above", "lower", "lowest"]
    assert back_of(step) == [("call", "Above.told")]


def test_a_generator_that_is_drawn_from_is_no_call_back(planted: Callable[[str], Step]) -> None:
    assert back_of(planted("draw")) == []


def test_an_error_on_its_way_leaves_the_stack_right(planted: Callable[[str], Step]) -> None:
    step = planted("fail")
    assert back_of(step) == [("call", "Above.broken")]
    assert files_of(step) == ["above", "lower", "helper"]


def test_the_profile_of_before_is_back_afterwards() -> None:
    before = sys.getprofile()
    with Tracer().active():
        assert sys.getprofile() is not before
    assert sys.getprofile() is before


# --- The command ------------------------------------------------------------------------------------------------------


def test_the_table_has_a_line_for_each_flow() -> None:
    heads, publish, stored = table({"PUBLISH": flow("PUBLISH"), "stored": flow("stored-PUBLISH")}).splitlines()
    assert heads.split()[:3] == ["flow", "inputs", "files"]
    assert publish.split()[:3] == ["PUBLISH", "1", str(len(flow("PUBLISH").files))]
    assert stored.startswith("stored ")


def test_files_and_calls_back_of_one_flow(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--files", "PUBLISH"])
    assert capsys.readouterr().out.splitlines() == flow("PUBLISH").files
    main(["--back", "SUBSCRIBE"])
    assert sum(int(line.split()[0]) for line in capsys.readouterr().out.splitlines()) == flow("SUBSCRIBE").back.total()


@pytest.mark.slow
def test_everything_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json"])
    told = json.loads(capsys.readouterr().out)
    assert set(told["flows"]) == set(FLOWS)
    assert told["flows"]["PUBLISH"]["passes"] == flow("PUBLISH").files
    assert told["idle"]["calls"] > 0
