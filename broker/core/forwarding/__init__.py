"""Forwards the rows of a batch to the brokers that answer for their keys, each key of a row exactly once.

A subscription rests at the owner of one key. So each row has one key for each dimension in use of its stream,
and has to be matched once for each of them, by the owner of that key. `Forwarding` splits a batch:

    matched here   the rows with keys that this broker answers for; a filter leaves out dimensions matched elsewhere
    FORWARD        sends each other broker its rows and the dimensions to match them in; that broker splits again
    backlog        keeps the rows that have a key for which no broker answers; later rows wait behind them

**Contract.** `publish` takes a batch of a publisher of this broker or raises, having done nothing. Each row and key of
a split goes to exactly one broker. So nothing is matched twice, even while two brokers disagree about who owns a key;
and nothing is matched where the subscriptions may be out of date. Events of one publisher stay in order, also while
keys change their owner. A row that no broker takes within a bound of time is lost: it is counted, and every subscriber
of its stream is told (`losses`, `Loss`); the count is never too low. In a cluster where each broker holds every key all
of this costs one comparison. At the timers `BACKLOG` and `GATHERING` the room tries again.

**On a cube** (`cube`) a row has not one key but a tree of them: from the vertex of its document down, from vertex to
vertex. `walk` takes the rows of a batch from where they are (`beginnings`: their own vertices) to where they leave this
broker; `everywhere` stands for edges where none are laid.

**Counted subscriptions** (`counted`) rest on several lists instead of at one owner. The accepting broker asks the
owners for the lists of a batch (`AskLists`; answered by `Lists`, made by `list_messages`) and counts on how many of
them each subscription is.

Order of reading: `forwarding`, `backlog` (batches and their order), `losses`, `cube`, `counted`, `messages`.
"""

from . import backlog
from .counted import GATHERING
from .cube import beginnings, everywhere, walk
from .forwarding import BACKLOG, Forwarding
from .messages import AskLists, Lists, Loss, list_messages

__all__ = [
    "AskLists",
    "BACKLOG",
    "Forwarding",
    "GATHERING",
    "Lists",
    "Loss",
    "backlog",
    "beginnings",
    "everywhere",
    "list_messages",
    "walk",
]
