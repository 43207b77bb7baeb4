"""`headgate demo`: three brokers, a feed of quotes, subscribers with different conditions, a kill, and the proof.

    limits    how many, how fast, how long
    feed      quotes by random walk from a seed: the same seed, the same quotes
    audience  the subscribers, and what each has received
    secure    `--secure`: certificates, two users, and a role with a condition
    host      the brokers, processes of their own with data folders that go when they end
    orders    a durable subscriber, a process of its own that is killed together with its broker
    accident  the broker that is killed half way, and what may be missing because somebody was told so
    proof     what each should have received, by evaluating its condition on every quote
    epilogue  some more quotes into a stream that is logged, and Spark's audit of them, where Spark can run
    view      the live table, or lines; and the verdict
    scene     the whole play: start, publish, kill, wait, prove, stop

Everything goes through the shipped client and real brokers over sockets. The proof shares nothing with the broker's
index: it makes the quotes again from the seed and asks `matching.evaluate`, the plain meaning of a condition.

For `headgate demo`: `play` plays a `Plot` from `QuoteFeed`; `BROKERS_DEFAULT`, `BROKERS_MAX`, `SECONDS_DEFAULT` and
`RATE_DEFAULT` are what its options begin with.
"""

from .feed import QuoteFeed
from .limits import BROKERS_DEFAULT, BROKERS_MAX, RATE_DEFAULT, SECONDS_DEFAULT
from .scene import Plot, play

__all__ = [
    "BROKERS_DEFAULT",
    "BROKERS_MAX",
    "Plot",
    "QuoteFeed",
    "RATE_DEFAULT",
    "SECONDS_DEFAULT",
    "play",
]
