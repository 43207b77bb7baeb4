"""Access: who speaks on which link, and what it may ask for. Without a policy nobody is named, and all may do all.

The host finds out who somebody is, before it hands in HELLO (input Admitted); what that user may do is decided here,
from the policy that was handed in last (Governed). The answer is looked up anew for each message: `session.rights` is
exchanged when the policy is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.matching import check_topic, evaluate, parse_condition, parse_pattern
from headgate.protocol.data import LEVEL_COLUMNS, LogKind
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import TOPIC_LEVELS_MAX

from ..delivery import ClientSession
from ..inputs import Admitted
from ..rights import Policy, Rights

__all__ = ["Access", "check_dead_letter", "shown"]

_OF_ADMINS = frozenset(
    (
        *("status", "ring", "streams", "subs", "slowest", "cubes"),
        *("schema.put", "schema.rm", "schema.list", "schema.get"),
        *("logs", "survey", "log.at", "producers", "producers.forget", "producer.ids"),
        *("durables", "durable", "durable_rm", "dead"),
    )
)
_OF_AUDITORS = frozenset(
    (
        *("ring", "streams", "schema.list", "schema.get", "logs", "survey", "log.at", "producers", "producer.ids"),
        *("durables", "durable", "dead"),
    )
)
_OF_READERS = frozenset(("logs", "survey", "log.at"))
_OF_PUBLISHERS = frozenset(("producer.open", "producer.ids", "producers"))
_OF_OWNERS = frozenset(("durable", "durable_set", "durable_seek", "durable_rm", "dead", "dead_replay"))
_EVENTS = LogKind.EVENTS.name.lower()

USER = "user"
"""The argument of a question about durable subscriptions that says for whom it is; clients cannot give it."""


class Access:
    """Lets clients in that the host has admitted, and says no to questions that are not theirs."""

    def __init__(self) -> None:
        self.policy: Policy | None = None
        self._admitted: dict[int, Admitted] = {}  # by link, until its HELLO
        self.refused = 0

    def admit(self, happened: Admitted, now: float) -> None:
        """The host knows who speaks on a link."""
        self._admitted[happened.link] = happened

    def gone(self, link: int) -> None:
        """The link is down."""
        self._admitted.pop(link, None)

    def enter(self, link: int) -> tuple[Admitted, Rights | None] | None:
        """Who says HELLO, and its rights. None: it is not let in."""
        guest = self._admitted.pop(link, Admitted(link, "", ""))
        if self.policy is None:
            return Admitted(link, "", ""), None
        if not self.policy.holds(guest.user, guest.credential):
            return None
        return guest, self.policy.rights_of(guest.user, guest.roles)

    def check(self, session: ClientSession, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What it asks, as it may ask it. Raises Refused."""
        rights = session.rights
        if rights is None:
            return arguments
        if USER in arguments:
            raise Refused(ErrorCode.BAD_REQUEST, f"{verb}: `{USER}` is who you are, and not to be given")
        if (rights.admin and verb in _OF_ADMINS) or (rights.audit and verb in _OF_AUDITORS):
            return arguments
        if verb in ("amend", "explain", "brokers"):
            return arguments
        stream = arguments.get("stream")
        if verb == "schema.get" and type(stream) is str and rights.knows(stream):
            return arguments
        if verb in _OF_READERS and type(stream) is str and rights.reads(stream):
            if arguments.get("kind", _EVENTS) == _EVENTS:
                return {**arguments, "kind": _EVENTS}
            raise self._refusal(session, verb, "an auditor (audit = true)")
        if verb in _OF_READERS and type(stream) is str:
            raise Refused(ErrorCode.FORBIDDEN, f"your rights do not let you read {stream!r}")
        if verb in _OF_PUBLISHERS and rights.publishes:
            return arguments
        if verb == "durables":
            return {**arguments, USER: session.user}
        if verb in _OF_OWNERS and type(arguments.get("name")) is str:
            rights.check_durable(arguments["name"])
            check_dead_letter(rights, arguments)
            return {**arguments, USER: session.user}
        raise self._refusal(session, verb, "an operator (admin = true)" if verb in _OF_ADMINS else "somebody else")

    def _refusal(self, session: ClientSession, verb: str, whom: str) -> Refused:
        self.refused += 1
        return Refused(ErrorCode.FORBIDDEN, f"{session.user} may not ask {verb}: that is for {whom}")


def check_dead_letter(rights: Rights, options: Mapping[str, Any]) -> None:
    """Raises Refused where dead letters would go to a topic that its user may not publish to."""
    topic = options.get("dead_letter", "")
    if type(topic) is str and topic and not rights.publishes_to(topic):
        raise Refused(
            ErrorCode.FORBIDDEN, f"your rights do not let you publish to {topic!r}, where dead letters would go"
        )


def shown(rights: Rights | None, answer: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to `explain` for whom it is: an event that its rights withhold is not explained. Raises Refused."""
    if rights is None:
        return answer
    if not rights.audit:
        answer.pop("delta", None)  # what others were sent
    if rights.admin:
        return answer
    pattern = parse_pattern(answer["pattern"], exact=answer["exact"])
    condition = parse_condition(answer["condition"]) if answer["condition"] else None
    narrowed = rights.narrow(pattern, condition)
    answer["narrowed"] = narrowed.pattern != pattern or narrowed.condition != condition
    event = arguments.get("event")
    if "delivered" not in answer or not answer["delivered"] or type(event) is not dict:
        return answer
    topic = event.get("topic", str(narrowed.pattern))
    values = {**event.get("attrs", {}), **{f"{LEVEL_COLUMNS}{place}": None for place in range(TOPIC_LEVELS_MAX)}}
    levels = topic.split("/") if "*" in topic else check_topic(topic)
    values |= {f"{LEVEL_COLUMNS}{place}": level for place, level in enumerate(levels)}
    allowed = narrowed.condition is None or evaluate(narrowed.condition, values) is True
    if not allowed or not narrowed.pattern.matches(topic):
        return answer | {
            "delivered": False,
            "verdict": "withheld",
            "predicates": [],
            "withheld": "withheld by your rights",
        }
    return answer
