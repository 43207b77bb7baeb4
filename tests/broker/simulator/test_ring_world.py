"""The ring world: letters arrive, late, in order, or not at all; brokers crash, pause and come back."""

from __future__ import annotations

from headgate.broker.core.membership import ChordConfig, Letter, Member, Post, State
from headgate.broker.core.membership.messages import Greet, Look
from headgate.broker.simulator.engine import RingHost, RingNetworkOptions, RingWorld
from tests.support.chord_parts import at

CONFIG = ChordConfig(list_length=2)


def new_world(seed: int = 1, **network: float) -> RingWorld:
    world = RingWorld(seed, CONFIG, RingNetworkOptions(**network))  # type: ignore[arg-type]
    world.open_ring(4)
    return world


def heard(world: RingWorld, host: RingHost) -> list[int]:
    """The numbers of the looks that this host gets, from now on."""
    numbers: list[int] = []
    world.watch = lambda one, happened, effects: (
        numbers.append(happened.letter.body.number)  # type: ignore[union-attr]
        if one is host and isinstance(getattr(getattr(happened, "letter", None), "body", None), Look)
        else None
    )
    return numbers


def send(world: RingWorld, numbers: range) -> tuple[RingHost, RingHost]:
    first, second = world.brokers["broker-0"], world.brokers["broker-1"]
    for number in numbers:
        world.post(first, Post("broker-1", Letter(at(1), None, Look(number))))
    return first, second


def test_a_world_begins_ideal_and_stays_so_in_peace() -> None:
    world = new_world()
    before = world.snapshot().members
    world.run_for(20.0)
    assert world.snapshot().members == before
    assert world.steps_done > 40 and world.letters > 100


def test_letters_keep_their_order_unless_told_otherwise() -> None:
    for reorder in (False, True):
        world = new_world(reorder=reorder, latency_seconds_min=0.0)
        numbers = heard(world, world.brokers["broker-1"])
        send(world, range(1000, 1050))
        world.run_for(0.2)
        ours = [number for number in numbers if number >= 1000]
        assert sorted(ours) == list(range(1000, 1050))
        assert (ours == sorted(ours)) is not reorder


def test_what_is_cut_or_lost_or_for_nobody_does_not_arrive() -> None:
    world = new_world()
    numbers = heard(world, world.brokers["broker-1"])
    world.cut["broker-0", "broker-1"] = None
    send(world, range(5))
    world.run_for(0.2)
    assert [number for number in numbers if number < 5] == [] and world.lost_letters == 5
    world.cut.clear()
    send(world, range(5))
    world.cut["broker-0", "broker-1"] = None
    world.run_for(0.2)
    assert world.lost_letters >= 10
    lossy = new_world(loss_probability=1.0)
    send(lossy, range(5))
    lossy.post(lossy.brokers["broker-0"], Post("nowhere", Letter(at(1), None, Greet(()))))
    assert lossy.lost_letters == lossy.letters == 6


def test_a_crash_forgets_everything_but_the_incarnation() -> None:
    world = new_world()
    host = world.brokers["broker-2"]
    host.crash()
    world.run_for(10.0)
    assert len(world.snapshot().members) == 3 and len(world.living()) == 3
    host.start()
    assert host.machine is not None and host.machine.me.incarnation == 2
    world.run_for(10.0)
    assert len(world.snapshot().members) == 4


def test_a_pause_keeps_letters_for_later_and_does_no_work() -> None:
    world = new_world()
    host = world.brokers["broker-1"]
    numbers = heard(world, host)
    host.pause()
    send(world, range(1000, 1003))
    world.run_for(0.3)
    assert numbers == []
    host.resume()
    assert numbers == [1000, 1001, 1002]
    host.resume()
    assert numbers == [1000, 1001, 1002]


def test_an_answer_under_way_is_part_of_the_snapshot_until_it_arrives() -> None:
    world = new_world(latency_seconds_min=0.01)
    seen: list[tuple[Member, ...]] = []
    while not seen:
        world.step()
        seen = list(world.snapshot().answers)
    assert len(seen[0]) == 3 and seen[0][0] in world.snapshot().members
    (host,) = [one for one in world.living() if one.machine is not None and one.machine.me == seen[0][0]]
    host.crash()
    assert all(answer[0] != seen[0][0] for answer in world.snapshot().answers)


def test_an_answer_to_nobody_is_not() -> None:
    world = new_world()
    before = list(world.snapshot().answers)
    stray = Letter(at(1), None, State(10_000, at(1), (at(2), at(3))))
    world.post(world.brokers["broker-0"], Post("broker-1", stray))
    assert list(world.snapshot().answers) == before


def test_one_seed_tells_one_story() -> None:
    stories = []
    for seed in (5, 5, 6):
        world = new_world(seed)
        world.run_for(5.0)
        stories.append((world.letters, world.steps, round(world.now, 6), world.random.random()))
    assert stories[0] == stories[1] != stories[2]
