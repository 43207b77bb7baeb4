"""Serves clients: sessions and subscriptions, publishes and their acknowledgements, questions, and the audit.

    Clients      what a client says, one method a message: HELLO, SUBSCRIBE, CREDIT, ASK, ...
    Publishers   PUBLISH: checks, numbers, the log, and one PUBACK for all that one read brought, up to `answered_by`
    Inquiries    questions that one broker asks another for a client (`Inquire`), to see the whole cluster
    AuditLog     which session was sent what and when, and what each subscribed to, for streams that are audited

`ask` answers a verb of ASK for one of our clients, wherever the answer is; `answer_of` answers for this broker alone.
`questions` has the verbs, each a function from arguments to plain maps and lists; `pages` cuts an answer to what fits
a frame.

**Contract.** A request that is refused leaves everything as it was. A batch that is refused counts as answered: ERROR
names it, then the cumulative PUBACK passes it. A client that breaks the protocol loses its connection, never its
session. SUBACK goes out when the subscription is confirmed where it rests; events published after it are seen.
An answer that waits for another broker or for the disk is a `Deferred`, and ends in any case: with the answer, a
refusal, the link, or a bound of time (the timer `INQUIRIES`). The timers `AUDIT_LINES` and `AUDIT_ACKS` write what the
audit gathered, and ask clients what they have taken.

Order of reading: `clients`, `publishers`, `questions`, `inquiries`, `explain` (two verbs:
what the ring looks like, and why a subscription gets an event), `schema_changes`, `pages`, `audit`, `messages`.
"""

from . import clients, inquiries, pages, questions
from .audit import AUDIT_ACKS, AUDIT_LINES, AuditLog
from .clients import Clients
from .inquiries import INQUIRIES, Inquiries
from .messages import Inquire
from .publishers import Publishers, answered_by
from .questions import answer_of, ask

__all__ = [
    "AUDIT_ACKS",
    "AUDIT_LINES",
    "AuditLog",
    "Clients",
    "INQUIRIES",
    "Inquire",
    "Inquiries",
    "Publishers",
    "answer_of",
    "answered_by",
    "ask",
    "clients",
    "inquiries",
    "pages",
    "questions",
]
