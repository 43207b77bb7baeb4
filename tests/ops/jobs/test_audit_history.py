"""Subscriptions as spans of time: beginnings, ends of every kind, deaths of brokers, gaps, what is no wish at all."""

from __future__ import annotations

from headgate.ops.jobs.audit_history import Bounds, Change, Disturbance, Gap, Span, origin_of, read_history, twigs_of

BOUNDS = Bounds(boundary=2, outside=30, session=12, crash=20, gap=40)
FOREVER = 2**62
ME = "00000000000000aa-1"


def begins(at: int, name: str = f"{ME}-7", condition: str = "price > 1", pattern: str = "quotes") -> Change:
    return Change(name, "subscribe", at, "ann", pattern, False, condition)


def ends(at: int, reason: str = "", name: str = f"{ME}-7") -> Change:
    return Change(name, "unsubscribe", at, "ann", "quotes", False, "price > 1", reason)


def spans(*changes: Change, evidence: dict[str, int] | None = None) -> list[Span]:
    (wanted,) = read_history(changes, evidence or {}, BOUNDS).wanted
    return wanted.spans


def test_a_subscription_belongs_to_a_life_of_a_broker() -> None:
    assert origin_of("00000000000000aa-1f-12") == "00000000000000aa-1f"


def test_what_never_ended_is_owed_for_ever() -> None:
    assert spans(begins(1000)) == [Span(970, 998, 1002, FOREVER, FOREVER, FOREVER)]


def test_who_unsubscribed_is_owed_all_until_then() -> None:
    assert spans(begins(1000), ends(2000)) == [Span(970, 998, 1002, 1998, 2002, 2030)]


def test_a_session_that_ended_had_lost_its_connection_before() -> None:
    assert spans(begins(1000), ends(2000, "session ended")) == [Span(970, 998, 1002, 1986, 2002, 2030)]


def test_a_span_shorter_than_its_edges_owes_nothing() -> None:
    (span,) = spans(begins(1000), ends(1001))
    assert span.sure_from == span.sure_to == 1002


def test_a_broker_that_died_owes_nothing_after_its_last_row() -> None:
    history = read_history([begins(1000), ends(2000, "broker restarted")], {ME: 1500}, BOUNDS)
    assert history.wanted[0].spans == [Span(970, 998, 1002, 1498, 2002, 2030)]
    assert history.disturbances == [Disturbance(ME, 1498, 1520)]


def test_a_subscription_is_a_row_as_well() -> None:
    history = read_history([begins(1000), ends(2000, "broker restarted")], {}, BOUNDS)
    assert history.wanted[0].spans == [Span(970, 998, 1002, 1002, 2002, 2030)]
    assert history.disturbances == [Disturbance(ME, 998, 1020)]


def test_a_broker_that_died_and_left_no_row_owes_nothing() -> None:
    history = read_history([ends(2000, "broker restarted")], {}, BOUNDS)
    (span,) = history.wanted[0].spans
    assert span.sure_to < 0 and history.disturbances == []


def test_a_broker_that_is_gone_owes_nothing_after_its_last_row() -> None:
    history = read_history([begins(1000)], {ME: 1500, "00000000000000bb-1": 9000}, BOUNDS, {"00000000000000aa"})
    assert history.wanted[0].spans == [Span(970, 998, 1002, 1498, FOREVER, FOREVER)]
    assert [one.origin for one in history.disturbances] == [ME]


def test_a_later_life_ends_the_one_before() -> None:
    history = read_history([begins(1000)], {ME: 1500, "00000000000000aa-2": 3000}, BOUNDS)
    assert history.wanted[0].spans == [Span(970, 998, 1002, 1498, FOREVER, FOREVER)]
    assert [one.origin for one in history.disturbances] == [ME]


def test_lives_are_counted_in_hexadecimal() -> None:
    lives = {"aa-9": 1500, "aa-a": 3000, "aa-10": 4000, "strange": 5000}
    assert [one.origin for one in read_history([], lives, BOUNDS).disturbances] == ["aa-9", "aa-a"]


def test_changes_are_taken_in_order_of_time_and_a_wish_may_be_renewed() -> None:
    assert spans(ends(2000), begins(1000), begins(3000), ends(4000)) == [
        Span(970, 998, 1002, 1998, 2002, 2030),
        Span(2970, 2998, 3002, 3998, 4002, 4030),
    ]


def test_a_second_beginning_changes_nothing() -> None:
    assert spans(begins(1000), begins(1500), ends(2000)) == [Span(970, 998, 1002, 1998, 2002, 2030)]


def test_an_end_without_a_beginning_was_in_force_since_ever() -> None:
    (span,) = spans(ends(2000))
    assert span.sure_from < 0 and span.sure_to == 1998


def test_the_wish_is_parsed() -> None:
    (wanted,) = read_history([begins(1000)], {}, BOUNDS).wanted
    assert str(wanted.pattern) == "quotes" and wanted.tree is not None and not wanted.partial and not wanted.trouble


def test_a_condition_that_is_none_of_ours_is_trouble_and_never_kept() -> None:
    (wanted,) = read_history([begins(1000, condition="rand() > 0.5")], {}, BOUNDS).wanted
    assert wanted.pattern is None and wanted.tree is None and "condition" in wanted.trouble


def test_a_pattern_that_is_none_of_ours_is_trouble() -> None:
    (wanted,) = read_history([begins(1000, pattern="quotes/#")], {}, BOUNDS).wanted
    assert "pattern" in wanted.trouble


def test_an_end_whose_beginning_is_gone_from_the_log_is_trouble() -> None:
    (wanted,) = read_history([Change(f"{ME}-7", "unsubscribe", 2000)], {}, BOUNDS).wanted
    assert "beginning" in wanted.trouble


def test_a_dynamic_filter_is_audited_in_part() -> None:
    (wanted,) = read_history([begins(1000, condition="price > 1 AND DELTA(price) > 0.5")], {}, BOUNDS).wanted
    assert wanted.partial
    (wanted,) = read_history([begins(1000, condition="XPATH '//b[a][a]' AND n > 1 AND XPATH '/a'")], {}, BOUNDS).wanted
    assert not wanted.partial and wanted.twigs == ("b/a", "/a")


def test_twigs_are_those_of_all_conditions_that_can_be_understood() -> None:
    conditions = ("XPATH '//b[a]' AND n > 1", "xpath '/a'", "XPATH '/*'", "s = 'XPATH'", "")
    assert twigs_of([begins(1000, condition=one) for one in conditions]) == {"b/a", "/a"}


def test_a_gap_speaks_of_what_was_published_before_it() -> None:
    gap = Change(f"{ME}-7", "gap", 5000, reason="12 lost: broker b2 is gone")
    unknown = Change(f"{ME}-7", "gap", 6000, reason="")
    (wanted,) = read_history([begins(1000), gap, unknown], {}, BOUNDS).wanted
    assert wanted.gaps == [Gap(4960, 5002, 12), Gap(5960, 6002, 0)]
    assert len(wanted.spans) == 1


def test_what_was_only_asked_for_may_come_and_nobody_misses_it() -> None:
    asked = Change(f"{ME}-7", "asked", 1000, "ann", "quotes")
    assert spans(asked) == [Span(970, FOREVER, FOREVER, 1000, 1000, FOREVER)]
    assert spans(asked, begins(1010)) == spans(begins(1010))


LASTING = "durable-7"


def test_a_durable_subscription_is_owed_what_matches_from_its_last_condition_on() -> None:
    changes = [begins(1000, LASTING), begins(1500, LASTING), begins(2000, LASTING, "price < 9")]
    (wanted,) = read_history(changes, {"durable": 1800}, BOUNDS, gone=["durable"]).wanted
    assert wanted.lasting and wanted.condition == "price < 9"
    assert wanted.spans == [Span(-FOREVER, 1998, 2002, FOREVER, FOREVER, FOREVER)]
    (former,) = wanted.former
    assert (former.condition, len(former.spans)) == ("price > 1", 1), "a takeover is no change"
    (span,) = former.spans
    assert (span.possible_from, span.possible_to) == (-FOREVER, FOREVER) and span.sure_from > span.sure_to


def test_a_durable_subscription_that_was_set_back_or_removed_is_owed_nothing_of_before() -> None:
    back = [begins(1000, LASTING), ends(2000, name=LASTING), begins(2000, LASTING)]
    (wanted,) = read_history(back, {}, BOUNDS).wanted
    assert wanted.spans[0].sure_from == 2002 and len(wanted.former) == 1
    (wanted,) = read_history([*back, ends(3000, name=LASTING)], {}, BOUNDS).wanted
    assert all(span.sure_from > span.sure_to for one in wanted.versions() for span in one.spans)
    lost = Change(LASTING, "gap", 2500, reason="3 lost: retention took them")
    (wanted,) = read_history([*back, lost], {}, BOUNDS).wanted
    assert wanted.gaps == [Gap(-FOREVER, 2502, 3)]
    (wanted,) = read_history([lost], {}, BOUNDS).wanted
    assert wanted.trouble


def test_what_a_durable_subscription_ever_wanted_has_to_be_understood() -> None:
    changes = [begins(1000, LASTING, "price >"), begins(2000, LASTING)]
    (wanted,) = read_history(changes, {}, BOUNDS).wanted
    assert wanted.trouble and wanted.pattern is not None
