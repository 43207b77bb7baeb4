"""Paces: a user that publishes more than its roles allow is not read until it has paid, and nobody else is slowed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.clients import Bucket
from headgate.broker.core.effects import Mute
from headgate.broker.core.inputs import Admitted, Governed
from headgate.broker.core.limits import PACE_BURST_SECONDS
from headgate.broker.core.rights import Member, Policy, read_roles
from headgate.protocol.messages import Error, Hello, Mode, Puback, Welcome
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld

ROLES: dict[str, Any] = {
    "slow": {"publish": [{"pattern": "quotes"}], "events_per_second": 10},
    "thin": {"publish": [{"pattern": "quotes"}], "events_per_second": 1000, "bytes_per_second": 100},
    "free": {"publish": [{"pattern": "quotes"}], "subscribe": [{"pattern": "quotes"}]},
    "more": {"events_per_second": 20},
}


def policy(*roles: str, **changed: Any) -> Policy:
    users = {name: Member((name,), frozenset({"pw"})) for name in ROLES}
    users["both"] = Member(("slow", "more"), frozenset({"pw"}))
    users["none"] = Member(("slow", "free"), frozenset({"pw"}))
    return Policy(users, read_roles({"roles": {**ROLES, **changed}}))


class Slowed(NodeWorld):
    """A broker with these roles, and which links it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.muted: dict[int, bool] = {}
        self.feed(Governed(policy()))

    def feed(self, happened: Any) -> Any:
        effects = super().feed(happened)
        for effect in effects:
            if isinstance(effect, Mute):
                assert self.muted.get(effect.link, False) is not effect.on, "said once"
                self.muted[effect.link] = effect.on
        return effects

    def enter(self, user: str, **hello: Any) -> int:
        self.feed(Admitted(self._links + 1, user, "pw"))
        link, answers = self.dial(Hello(name=user, **hello))
        assert isinstance(answers[0], Welcome)
        return link

    def put(self, link: int, count: int, size: int = 1, mode: Mode = Mode.ACCEPTED) -> list[Any]:
        accepted = self.node.subscribers.by_link[link].accepted
        batch = quote_batch(["quotes"] * count, ["x" * size] * count)
        return self.say(link, make_publish(0 if mode == Mode.FIRE else accepted + 1, batch, mode))

    def is_read(self, link: int) -> bool:
        return not self.muted.get(link, False)


def test_who_is_too_fast_is_not_read_until_it_has_paid_and_loses_nothing() -> None:
    world = Slowed()
    slow, free, reader = world.enter("slow"), world.enter("free"), world.enter("free")
    world.say(reader, make_subscribe(1, "quotes"))
    assert isinstance(world.put(slow, 10)[-1], Puback) and world.is_read(slow)
    assert isinstance(world.put(slow, 5)[-1], Puback), "what has come is taken"
    assert not world.is_read(slow)
    world.put(free, 500)
    assert world.is_read(free)
    began = world.now
    world.wake_at(began + 0.49)
    assert not world.is_read(slow)
    world.wake_at(began + 0.51)
    assert world.is_read(slow)
    assert len(deliveries_of(world.take(reader))) == 515
    assert world.node.statistics(world.now).publishers_slowed == 1
    world.wake_at(world.now + 100)
    world.put(slow, 11)
    world.wake_at(world.now + 0.11)
    assert world.is_read(slow), "an hour of silence is worth one second"


@pytest.mark.parametrize("mode", [Mode.FIRE, Mode.ACCEPTED])
def test_bytes_count_as_well_and_in_every_mode(mode: Mode) -> None:
    world = Slowed()
    thin = world.enter("thin")
    world.put(thin, 1, 40, mode)
    assert world.is_read(thin)
    world.put(thin, 1, 400, mode)
    assert not world.is_read(thin)
    world.wake_at(world.now + 3)
    assert not world.is_read(thin)
    world.wake_at(world.now + 2)
    assert world.is_read(thin)


def test_of_several_roles_the_largest_limit_counts_and_none_is_the_largest() -> None:
    for user, reads in (("slow", False), ("both", True), ("none", True), ("free", True)):
        world = Slowed()
        link = world.enter(user)
        world.put(link, 19)
        assert world.is_read(link) is reads, user


def test_another_connection_is_no_way_around_it() -> None:
    world = Slowed()
    first, second = world.enter("slow"), world.enter("slow")
    world.put(first, 30)
    assert world.is_read(second)
    world.put(second, 10)
    assert not world.is_read(second)
    session = world.key(first)
    world.drop(first)
    again = world.enter("slow", session=session)
    assert not world.is_read(again)
    late = world.enter("slow")
    assert not world.is_read(late)
    world.wake_at(world.now + 2.9)
    assert not any(map(world.is_read, (second, again, late)))
    world.wake_at(world.now + 0.2)
    assert all(map(world.is_read, (second, again, late)))


def test_what_is_refused_or_sent_again_counts_too() -> None:
    world = Slowed()
    slow = world.enter("slow")
    batch = quote_batch(["secrets"] * 11, ["x"] * 11)
    assert isinstance(world.say(slow, make_publish(1, batch))[0], Error)
    assert not world.is_read(slow)
    again = Slowed()
    slow = again.enter("slow")
    again.put(slow, 6)
    again.say(slow, make_publish(1, quote_batch(["quotes"] * 6, ["x"] * 6)))
    assert not again.is_read(slow)


def test_new_limits_begin_anew() -> None:
    world = Slowed()
    slow = world.enter("slow")
    world.put(slow, 1000)
    assert not world.is_read(slow)
    world.feed(Governed(policy(slow={"publish": [{"pattern": "quotes"}], "events_per_second": 2000})))
    assert world.is_read(slow)
    world.put(slow, 1000)
    assert world.is_read(slow)
    world.feed(Governed(policy(slow={"publish": [{"pattern": "quotes"}]})))
    world.put(slow, 4000)
    assert world.is_read(slow)


def test_users_that_owe_nothing_are_forgotten() -> None:
    world = Slowed()
    world.node.paces._tidy_at = 3
    for user in ("slow", "thin", "both"):
        world.put(world.enter(user), 1)
    world.wake_at(world.now + 5)
    users = {f"u{number}": Member(("slow",), frozenset({"pw"})) for number in range(2)}
    slow = world.enter("slow")
    world.put(slow, 500)
    world.node.clients.access.policy = Policy(users, read_roles({"roles": ROLES}))
    world.put(world.enter("u0"), 1)
    assert list(world.node.paces._of) == ["slow", "u0"] and not world.is_read(slow)


class Twin:
    """A bucket that is filled and emptied as the words say, in exact numbers."""

    def __init__(self, rate: int) -> None:
        self.rate, self.most = rate, rate * Fraction(PACE_BURST_SECONDS)
        self.level, self.at = self.most, Fraction(0)

    def take(self, amount: int, now: Fraction) -> None:
        self.level = min(self.most, self.level + (now - self.at) * self.rate) - amount
        self.at = now

    def even(self, now: Fraction) -> bool:
        return self.level + (now - self.at) * self.rate >= 0


@pytest.mark.slow
@given(
    st.integers(1, 1_000_000),
    st.lists(st.tuples(st.integers(0, 64_000), st.integers(0, 100_000)), max_size=40),
)
def test_a_bucket_does_what_its_dumb_twin_does(rate: int, steps: list[tuple[int, int]]) -> None:
    bucket, twin, now = Bucket(), Twin(rate), Fraction(0)
    for wait, amount in steps:
        now += Fraction(wait, 1000)
        bucket.take(amount, rate, float(now))
        twin.take(amount, now)
        for later in (now, now + 1, now + Fraction(1, 7)):
            if abs(float(later) - bucket.even) > 1e-6:  # where they meet, a rounding decides
                assert (bucket.even <= later) == twin.even(later)


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 2), st.integers(1, 40)),
            st.tuples(st.just("wait"), st.just(0), st.integers(1, 30)),
            st.tuples(st.just("back"), st.integers(0, 2), st.just(0)),
        ),
        max_size=40,
    )
)
def test_over_any_time_a_user_publishes_no_more_than_its_rate_and_one_read_a_link(
    steps: list[tuple[str, int, int]],
) -> None:
    """A client sends whenever it is read; the dumb twin is the list of all that came."""
    world = Slowed()
    links = [world.enter("slow") for _ in range(3)]
    came: list[tuple[float, int]] = []
    for kind, place, number in steps:
        if kind == "put" and world.is_read(links[place]):
            came.append((world.now, number))
            world.put(links[place], number)
        elif kind == "wait":
            world.wake_at(world.now + number / 10)
        elif kind == "back":
            session = world.key(links[place])
            world.drop(links[place])
            links[place] = world.enter("slow", session=session)
        for start in range(len(came)):
            total = sum(count for _, count in came[start:])
            allowed = 10 * (came[-1][0] - came[start][0] + PACE_BURST_SECONDS)
            assert total <= allowed + 3 * 40 + 1e-6
    world.wake_at(world.now + 1 + sum(count for _, count in came) / 10)
    assert all(map(world.is_read, links)), "every debt is paid at last"
