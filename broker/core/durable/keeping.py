"""Keeping: states of durable subscriptions on disks, this broker's and those of others, and who coordinates them.

Each state is on k disks: its coordinator's, and those of the k - 1 brokers that come next on the ring behind its key
and can be reached. A write is confirmed when so many have it. There is one coordinator at a time because of a *fence*,
its generation. Who takes a subscription over

    collects    asks every broker that can be reached for the states in its arc, to know what there is
    fences      writes the next generation to all of them; enough have to keep it that no k disks are left without one
                of them (of N brokers N - k + 1: the rule of producers that are opened)
    joins       what they had until then, which loses nothing that was confirmed, and only then hands anything out

From then on its generation is the *base* of the states that it writes. Of two states the one of the larger base counts:
what the other one has beside it was written by a coordinator that was fenced off, and nobody was told that it is kept.

A broker that has kept a state refuses writes of older generations, and of another coordinator's same generation. So a
coordinator which does not know yet that it was replaced can confirm nothing, and hears it at its next write. For that
its writes go to those alone that kept its generation when it fenced, for nobody has fenced a newcomer. Where too few of
them can be reached it fences once more, with the same generation. (Paxos with k disks for a write, N - k + 1 for a
promise, and the base as the accepted ballot; states of one base are joined, so no value has to be chosen.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, TypeAlias

from headgate.protocol.errors import ProtocolViolation

from ..cluster import Cluster
from ..effects import Effect, Note
from ..keyspace import distance, hash_identifier, in_arc
from ..log import Log, Producers
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .limits import COLLECT_PAGE_BYTES, COLLECT_PAGE_STATES, COLLECT_SECONDS, VIEW_SECONDS, WRITE_SECONDS
from .messages import Collected, CollectStates, KeepState, StateFenced, StateKept
from .relay import Relay
from .state import DurableState, decode_state, encode_state, join

__all__ = ["COLLECTING", "KEEPING", "Keeping", "key_of"]

KEEPING = "durable-keeping"
"""Key of the timer: a write that too few brokers confirmed goes to another one."""

COLLECTING = "durable-collecting"
"""Key of the timer: neighbours have been the same for a while, or a broker has not answered."""


def key_of(name: str) -> int:
    """Where on the ring a durable subscription is coordinated."""
    return hash_identifier(f"durable/{name}")


class _Kept(NamedTuple):
    """What a disk here has of a subscription, or is asked to have."""

    generation: int
    data: bytes
    coordinator: int
    """Whose generation it is."""
    number: int = 0
    former: bytes = b""
    """What was there before the write of that number, which fenced it: who asks once more is told so once more."""


Written: TypeAlias = Callable[[bool, float], None]
"""Told that a state is on k disks; or, with False, that a newer coordinator is at work."""


@dataclass(slots=True, eq=False)
class _Fence:
    """Brokers that keep to a generation of this broker."""

    generation: int
    number: int
    """Of the write that fenced last: some answer it when it is done."""
    kept: dict[int, None]


@dataclass(slots=True, eq=False)
class _Write:
    """A state on its way to k disks."""

    number: int
    name: str
    generation: int
    data: bytes
    then: Written
    again_at: float
    asked: dict[int, None] = field(default_factory=dict)
    kept: dict[int, None] = field(default_factory=dict)
    here: bool = False
    fence: bool = False
    """Whether it takes over: then as many have to keep it as no k disks are without."""


class Keeping:
    """Keeps states on k disks, and collects those that this broker is the coordinator of."""

    def __init__(
        self,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        producers: Producers,
        relay: Relay,
        timers: Timers,
        work: dict[str, None],
    ) -> None:
        self._work = work
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._relay = relay
        self._timers = timers
        self._safeguards = cluster.safeguards
        self._kept: dict[str, _Kept] = {}
        self._writes: dict[str, _Write] = {}
        self._fences: dict[str, _Fence] = {}
        self._numbers = 0
        self._arc = (cluster.me, cluster.me)
        self._heard: dict[int, None] = {}
        self._asked: dict[int, int] = {}
        self._names: list[str] = []
        self._silent: dict[int, None] = {}
        self.keepers: dict[str, dict[int, None]] = {}
        """Name -> brokers that have its newest confirmed state beside this one."""
        self.states_written = 0
        self.is_ready = False
        self.found: dict[str, None] = {}
        """Names of which something new is known; the coordinator takes out those that it looked at."""
        relay.take(
            {
                KeepState: self._keep,
                StateKept: self._was_kept,
                StateFenced: self._was_fenced,
                CollectStates: self._collect,
                Collected: self._collected,
            }
        )

    def find(self, name: str) -> None:
        """Have the coordinator of this broker look at that name: something new is known of it."""
        self.found[name] = None
        self._work["found"] = None

    # --- what is here ------------------------------------------------------------------------------------------------

    def opened(self, durables: dict[str, bytes]) -> None:
        """What earlier lives kept."""
        for name, data in durables.items():
            try:
                state = decode_state(data)
            except ProtocolViolation as error:
                facts = {"name": name, "reason": error.text}
                self._effects.append(Note("durable subscription unreadable", facts, alarming=True))
                continue
            self._kept[name] = _Kept(state.generation, data, state.coordinator)
            self.find(name)

    def state_of(self, name: str) -> DurableState | None:
        """What is known here of that name."""
        kept = self._kept.get(name)
        return None if kept is None else decode_state(kept.data)

    def names(self) -> Iterable[str]:
        """Of which something is kept here."""
        return self._kept

    def generation_of(self, name: str) -> int:
        """The newest generation of a coordinator of it that is known here."""
        kept = self._kept.get(name)
        return 0 if kept is None else kept.generation

    def _remember(self, name: str, generation: int, data: bytes, coordinator: int) -> None:
        self._kept[name] = _Kept(generation, data, coordinator)

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, state: DurableState, then: Written, now: float, fence: bool = False) -> None:
        """Have it on k disks; there is one write of a name at a time.

        `fence`: this broker takes it over. When that is done, `state_of` has all that was confirmed before.
        """
        assert state.name not in self._writes
        self._numbers += 1
        state = replace(state, coordinator=self._cluster.me)
        write = _Write(self._numbers, state.name, state.generation, encode_state(state), then, now + WRITE_SECONDS)
        write.fence = self._has_to_fence(write, fence)
        self._writes[state.name] = write
        self._remember(state.name, state.generation, write.data, self._cluster.me)
        self._keep_here(write, now)
        self._ask_others(write, now)
        self._timers.by(KEEPING, write.again_at)

    def _has_to_fence(self, write: _Write, is_new: bool) -> bool:
        if Safeguard.DURABLE_FENCE not in self._safeguards:
            return False
        return is_new or sum(self._relay.is_here(one) for one in self._fenced(write)) < self._log.needed

    def _fenced(self, write: _Write) -> Iterable[int]:
        """Who keeps to the generation of that write."""
        fence = self._fences.get(write.name)
        return fence.kept if fence is not None and fence.generation == write.generation else ()

    def is_writing(self, name: str) -> bool:
        """Whether a write of it is under way."""
        return name in self._writes

    @property
    def under_way(self) -> int:
        """How many writes are."""
        return len(self._writes)

    def give_up(self, name: str) -> None:
        """This broker coordinates it no more: no write is waited for, and who writes again has to fence again."""
        self._writes.pop(name, None)
        self._fences.pop(name, None)
        self.keepers.pop(name, None)

    def _keep_here(self, write: _Write, now: float) -> None:
        if not self._log.available or Safeguard.CURSOR_ON_DISKS not in self._safeguards:
            write.here = True
            self._look(write, now)
            return

        def kept(reason: str, now: float) -> None:
            if not reason:
                write.here = True
                self._look(write, now)

        self._log.keep_durable(write.name, write.data, kept)

    def _ask_others(self, write: _Write, now: float, more: int = 0) -> None:
        """The brokers behind its key that can be reached: as many as are needed, and some more of no answer.

        Who did not answer a write, as a broker without a disk, comes last from then on.
        """
        key = key_of(write.name)
        ahead = [info.identifier for info in self._cluster.linked()]
        if not write.fence and Safeguard.DURABLE_FENCE in self._safeguards:
            fenced = self._fenced(write)
            ahead = [one for one in ahead if one in fenced]
        ahead.sort(key=lambda one: (one in self._silent, distance(key, one)))
        wanted = len(ahead) if write.fence else self._log.needed + more
        for identifier in ahead:
            if len(write.asked) >= wanted:
                break
            if identifier not in write.asked:
                write.asked[identifier] = None
                self._relay.tell(identifier, KeepState(write.name, write.generation, write.number, write.data))

    def _look(self, write: _Write, now: float) -> None:
        count = len(write.kept)
        enough = count >= self._log.needed and (not write.fence or self.is_enough(1 + count, now))
        if write.here and enough and self._writes.get(write.name) is write:
            del self._writes[write.name]
            self.keepers[write.name] = dict(write.kept)
            if write.fence:
                fenced = {**dict.fromkeys(self._fenced(write)), **write.kept}
                self._fences[write.name] = _Fence(write.generation, write.number, fenced)
            self.states_written += 1
            kept = self._kept[write.name]
            # Another coordinator may have been heard of in the meantime, by way of a third broker.
            write.then((kept.generation, kept.coordinator) == (write.generation, self._cluster.me), now)

    def is_enough(self, heard: int, now: float) -> bool:
        """Whether so many brokers, this one among them, leave no k disks without one of them."""
        return self._producers.is_enough(heard, heard, now) or self._cluster.serving.founder()

    def go_on(self, now: float) -> None:
        """A write took too long: it is tried again here, and at one more broker."""
        for write in list(self._writes.values()):
            if write.again_at > now:
                continue
            kept = self._kept[write.name]
            if (kept.generation, kept.coordinator) != (write.generation, self._cluster.me):
                # The disk here may have the newer one by now: it must not get this behind it.
                del self._writes[write.name]
                write.then(False, now)
                continue
            write.again_at = now + WRITE_SECONDS
            write.fence = self._has_to_fence(write, write.fence)
            if not write.here:
                self._keep_here(write, now)
            silent = [one for one in write.asked if one not in write.kept]
            for one in silent:
                del write.asked[one]
                self._silent[one] = None
            self._ask_others(write, now, more=len(silent))
            self._look(write, now)
        self._timers.at(KEEPING, min((write.again_at for write in self._writes.values()), default=NEVER))

    def _was_kept(self, teller: int, message: StateKept, now: float) -> None:
        write, fence = self._writes.get(message.name), self._fences.get(message.name)
        if fence is not None and fence.number == message.number:
            fence.kept[teller] = None
        if write is None or write.number != message.number:
            return
        if write.fence and message.state:
            before = decode_state(message.state)
            kept = self._kept[write.name]
            both = join(decode_state(kept.data), before)
            if both.generation == write.generation:
                self._remember(write.name, write.generation, encode_state(both), self._cluster.me)
        write.kept[teller] = None
        self._silent.pop(teller, None)
        self._look(write, now)

    def _was_fenced(self, teller: int, message: StateFenced, now: float) -> None:
        write = self._writes.get(message.name)
        if write is None or write.number != message.number:
            return
        if message.generation >= write.generation:
            del self._writes[message.name]
            write.then(False, now)

    def _keep(self, teller: int, message: KeepState, now: float) -> None:
        """A coordinator wants this on our disk."""
        before = self._kept.get(message.name)
        if before is not None and Safeguard.DURABLE_FENCE in self._safeguards:
            known, other = before.generation, before.coordinator not in (0, teller)
            if message.generation < known or (message.generation == known and other):
                self._relay.tell(teller, StateFenced(message.name, known, message.number))
                return
        if not self._log.available:
            return
        state = decode_state(message.state)  # what cannot be read ends the link
        if (state.name, state.generation, state.coordinator) != (message.name, message.generation, teller):
            raise ProtocolViolation("KeepState: the state is of another name, generation or coordinator")
        data, former = message.state, b""
        if before is not None and before.generation < message.generation:
            former = before.data
            data = encode_state(join(decode_state(former), state))
        elif before is not None and before.generation == message.generation and before.number == message.number:
            former, data = before.former, before.data
        self._kept[message.name] = _Kept(message.generation, data, teller, message.number, former)
        self.find(message.name)

        def kept(reason: str, now: float) -> None:
            if not reason:
                self._relay.tell(teller, StateKept(message.name, message.generation, message.number, former))

        if Safeguard.CURSOR_ON_DISKS in self._safeguards:
            self._log.keep_durable(message.name, data, kept)
        else:
            kept("", now)

    # --- who coordinates ---------------------------------------------------------------------------------------------

    def is_ours(self, name: str) -> bool:
        """Whether this broker is the one to coordinate it, as far as is known here."""
        return self._cluster.owner_of(key_of(name)) == self._cluster.me

    def moved(self, now: float) -> None:
        """Links or neighbours changed: look again when they have been the same for a while."""
        self.is_ready = False
        self._timers.at(COLLECTING, now + VIEW_SECONDS)

    def link_down(self, identifier: int) -> None:
        """That broker may be another one when there is a link again."""
        self._heard.pop(identifier, None)
        self._asked.pop(identifier, None)
        self._silent.pop(identifier, None)

    def anew(self, now: float) -> None:
        """A newer coordinator was at work in our arc: what brokers told before is not enough."""
        self._heard.clear()
        self.moved(now)

    def collect(self, now: float) -> None:
        """Ask for the states of our arc whoever has not told them."""
        start, me = self._before(), self._cluster.me
        if start != self._arc[0]:
            grown = not in_arc(self._arc[0], start, me) or self._arc[0] == me
            self._arc = start, me
            if grown or start == me:
                self._heard.clear()
        self._asked.clear()
        for info in self._cluster.linked():
            if info.identifier not in self._heard:
                self._ask(info.identifier, "")
        self._timers.at(COLLECTING, now + COLLECT_SECONDS)
        self._look_ready(now)

    def _before(self) -> int:
        """The nearest broker before us on the ring; we ourselves when there is no other."""
        me = self._cluster.me
        return min(self._cluster.table.known, key=lambda one: distance(one, me), default=me)

    def _ask(self, identifier: int, after: str) -> None:
        self._numbers += 1
        self._asked[identifier] = self._numbers
        self._relay.tell(identifier, CollectStates(self._numbers, *self._arc, after))

    def _look_ready(self, now: float) -> None:
        linked = [info.identifier for info in self._cluster.linked()]
        heard = 1 + sum(one in self._heard for one in linked)
        self.is_ready = heard > len(linked) and self.is_enough(heard, now) and self._log.available
        if self.is_ready:
            self._work["found"] = None
            self._timers.at(COLLECTING, NEVER)

    def _collect(self, teller: int, message: CollectStates, now: float) -> None:
        """Another broker takes over what is in its arc."""
        states: list[bytes] = []
        size, more = 0, False
        if len(self._names) != len(self._kept):  # names only come
            self._names = sorted(self._kept)
        for name in islice(self._names, bisect_right(self._names, message.after), None):
            if not in_arc(message.start, key_of(name), message.end) and message.start != message.end:
                continue
            data = self._kept[name].data
            if len(states) == COLLECT_PAGE_STATES or (states and size + len(data) > COLLECT_PAGE_BYTES):
                more = True
                break
            states.append(data)
            size += len(data)
        self._relay.tell(teller, Collected(message.number, tuple(states), more))

    def _collected(self, teller: int, message: Collected, now: float) -> None:
        if self._asked.get(teller) != message.number:
            return
        name = ""
        for data in message.states:
            state = decode_state(data)
            name = state.name
            kept = self._kept.get(name)
            if kept is None:
                self._remember(name, state.generation, data, state.coordinator)
            elif kept.data != data:
                both = join(decode_state(kept.data), state)
                again = kept if both.generation == kept.generation else _Kept(0, b"", 0)
                self._kept[name] = again._replace(
                    generation=both.generation, data=encode_state(both), coordinator=both.coordinator
                )
            self.find(name)
        if message.more and name:
            self._ask(teller, name)
            self._timers.at(COLLECTING, now + COLLECT_SECONDS)
            return
        del self._asked[teller]
        self._heard[teller] = None
        self._look_ready(now)

    def validate(self) -> None:
        """Writes are known here, and the oldest has a timer."""
        for name, write in self._writes.items():
            assert write.name == name and name in self._kept
        assert not self._writes or self._timers.when(KEEPING) <= min(one.again_at for one in self._writes.values())
