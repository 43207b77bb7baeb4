"""Serves clients: sessions and subscriptions, publishes and their acknowledgements, questions, and the audit.

    Clients      what a client says, one method a message: HELLO, SUBSCRIBE, CREDIT, ASK, ...
    Publishers   PUBLISH: checks a batch, numbers its events, appends to the log; one PUBACK answers all batches of
                 one turn, up to `answered_by`
    Paces        slows who publishes more than its roles allow (a `Bucket` of tokens each, the timer PACES)
    Inquiries    questions that one broker asks another for a client (`Inquire`), to see the whole cluster
    Surveys      which logs of a stream there are in the whole cluster, for a client that wants to read them
    AuditLog     writes down, for audited streams, what each session subscribed to and was sent, and when

`ask` answers a verb of ASK for one of our clients, whichever broker has the answer; `answer_of` answers for this broker
alone. `questions` has the verbs, each a function from arguments to plain maps and lists; `pages` cuts an answer to what
fits a frame.

**Contract.** A request that is refused leaves everything as it was. A batch that is refused counts as answered: ERROR
names it, and a later cumulative PUBACK covers it. A client that breaks the protocol loses its connection, never its
session. SUBACK goes out when the broker where the subscription rests has confirmed it; events published after SUBACK
are seen. An answer that needs another broker or the disk is a `Deferred`. Every `Deferred` ends: with the answer, with
a refusal, with the client's connection, or when its time is over (the timer `INQUIRIES`). At the timer `AUDIT_LINES`
the audit writes the lines that it gathered; at `AUDIT_ACKS` it asks clients what they have taken.

`Access` says who speaks on which link and what it may ask for, by the `rights` of its user; `shown` is what of an
explanation is for it. When the policy changes (`Clients.govern`) what is no longer allowed ends, and other brokers are
told its version (`Named`). At TOKENS it is looked whether a web token, which says itself when it ends, has ended.

A client amends a subscription by ASK `amend` (`amending`; at AMENDING former versions are withdrawn).

Order of reading: `clients`, `publishers`, `filters`, `paces`, `questions`, `inquiries`, `explain` (two verbs:
what the ring looks like, and why a subscription gets an event), `survey`, `schema_changes`, `pages`, `audit`,
`amending`, `access`, `messages`.
"""

from . import clients, inquiries, pages, questions
from .access import Access, shown
from .amending import AMENDING
from .audit import AUDIT_ACKS, AUDIT_LINES, AuditLog
from .clients import TOKENS, Clients
from .inquiries import INQUIRIES, Inquiries
from .messages import Inquire, Named
from .paces import PACES, Bucket, Paces
from .publishers import Publishers, answered_by
from .questions import answer_of, ask
from .survey import Surveys

__all__ = [
    "AMENDING",
    "AUDIT_ACKS",
    "AUDIT_LINES",
    "Access",
    "AuditLog",
    "Bucket",
    "Clients",
    "INQUIRIES",
    "Inquire",
    "Inquiries",
    "Named",
    "PACES",
    "Paces",
    "Publishers",
    "Surveys",
    "TOKENS",
    "answer_of",
    "answered_by",
    "ask",
    "clients",
    "inquiries",
    "pages",
    "questions",
    "shown",
]
