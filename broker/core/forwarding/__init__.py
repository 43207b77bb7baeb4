"""Forwards the rows of a batch to the brokers that answer for their keys, each key of a row exactly once.

A subscription rests at the owner of one key. So each row has one key for each dimension in use of its stream,
and has to be matched once for each of them, by the owner of that key. `Forwarding` splits a batch:

    matched here   the rows whose keys this broker answers for, filtered so that others' dimensions are left out
    FORWARD        to each other broker its rows, with the dimensions that it is asked for; it splits again
    backlog        while no broker answers for a key of it; what came later waits behind it

**Contract.** `publish` takes a batch of an own publisher or raises, having done nothing. Each row and key of a split
goes to exactly one broker. So nothing is matched twice, even while two brokers disagree about who owns a key; and
nothing is matched where the answer may be out of date. Events of one publisher stay in order, also while keys change
their owner. A row that goes nowhere within a bound of time is lost, counted, and told to every subscriber of its stream
(`losses`, `Loss`), at least as many as were lost. In a cluster where each broker holds every key all of this costs one
comparison. `BACKLOG` and `GATHERING` are the timers by which it looks again.

**Counted subscriptions** (`counted`) rest on several lists instead of at one owner. The accepting broker asks for the
lists of a batch (`AskLists`; answered by `Lists`, made by `list_messages`) and counts on how many each one is.

Order of reading: `forwarding`, `backlog` (batches and their order), `losses`, `counted`, `messages`.
"""

from . import backlog
from .counted import GATHERING
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
    "list_messages",
]
