"""Losses: events that got lost between brokers are told to every broker, also to one that cannot be reached just now.

A loss is said on every link that there is. A broker without one at that moment hears of it when there is one again, and
with it of what was said shortly before the last one broke, for that may not have come in. So a loss may be told twice,
and clients count too many; but every broker is told.

A broker that comes back in another life has no clients to tell, and one that was away for longer counts as dead.
"""

from __future__ import annotations

from collections import deque

from ..cluster import Cluster
from ..delivery import Subscribers
from ..effects import Effect, Note
from ..limits import ORPHAN_SECONDS
from ..links import LOSS_SECONDS_MAX, PeerInfo
from ..safeguards import Safeguard
from .messages import Loss

__all__ = ["Losses"]


class Losses:
    """Counts what got lost between brokers, and tells every broker."""

    def __init__(self, cluster: Cluster, effects: list[Effect], subscribers: Subscribers) -> None:
        self._cluster = cluster
        self._kept_max = cluster.config.limits.losses_kept
        self._effects = effects
        self._subscribers = subscribers
        self.events = 0
        cluster.take_controls({Loss: self._told_of})
        self._told: deque[tuple[float, str, int]] = deque()
        self._doubtful_since: dict[tuple[int, int], float] = {}  # broker and life without a link

    def lose(self, stream: str, count: int, now: float) -> None:
        """So many events of a stream were lost here."""
        self.events += count
        if Safeguard.LOSSES_TOLD not in self._cluster.safeguards:
            return
        self._effects.append(Note("events lost on the way", {"stream": stream, "count": count}, alarming=True))
        self._told.append((now, stream, count))
        while len(self._told) > self._kept_max or self._told[0][0] + ORPHAN_SECONDS < now:
            self._told.popleft()
        self._cluster.broadcast(Loss(stream, count), now)
        self._subscribers.lost_in_stream(stream, count)

    def _told_of(self, info: PeerInfo, loss: Loss, now: float) -> None:
        self._subscribers.lost_in_stream(loss.stream, loss.count)

    def link_down(self, info: PeerInfo, now: float) -> None:
        """What was said to it a moment ago may be lost."""
        self._doubtful_since[info.identifier, info.life] = now - LOSS_SECONDS_MAX
        for one in [one for one, since in self._doubtful_since.items() if since + ORPHAN_SECONDS < now]:
            del self._doubtful_since[one]

    def link_up(self, info: PeerInfo, now: float) -> None:
        """Say again what it may not have heard."""
        since = self._doubtful_since.pop((info.identifier, info.life), None)
        if since is not None:
            for at, stream, count in self._told:
                if at >= since:
                    self._cluster.tell(info, Loss(stream, count), now)

    def validate(self) -> None:
        """What is remembered has a bound, and no broker with a link is in doubt."""
        assert len(self._told) <= self._kept_max
        assert not any((info.identifier, info.life) in self._doubtful_since for info in self._cluster.linked())
