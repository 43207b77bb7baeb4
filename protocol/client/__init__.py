"""The client without I/O: what the asyncio and the blocking client do alike, as machines and as work for tasks.

A client keeps one connection to a broker. It says HELLO, sends batches and subscriptions, and keeps each until the
broker has answered it; when the connection is lost it dials again and goes on where both sides agree that they were.

A world (`aio`, `blocking`) has sockets, timers and locks, and three things that rest on this room: a client on
`ClientCore`, a link on `LinkCore`, and a driver of tasks.

**The session with a broker.** `Conversation` holds all that goes on, over however many connections, as `ClientOptions`
say and within `ClientLimits`. It is told what came and says what may be sent: see its head for the five steps of a
host.

**Waiting.** What was sent has an `Outcome`. What has to wait is `Work`, a generator that yields what it waits for
(`Wanted`): an outcome to be `Settled`, another client to `Dial` or to `Close`, a `Pause`, a broker to `Connect`. A
`Task` moves work on, and a driver the task: `aio/driver.py` awaits what is wanted, `blocking/driver.py` moves sockets
on until it is there or the caller's time is over, and then leaves the task for the next call:

    client.asking("status", {}) --Settled(outcome)--> driver: until it is settled --give--> the answer

`ClientCore` asks questions, subscribes and unsubscribes as such work, and shows what a client shows of itself;
`SubscriptionCore` is the same for a subscription, and `Amended` what became of its places. `remember` ends a client in
a forked child.

**Connecting.** `Dialling` gives one `Attempt` after the other, with the patience of a `Retry` (back-off with jitter,
within a budget), and `LinkCore` makes them, at first and whenever the connection is lost. `reason_of` says why one
failed, `check_seconds` checks a time, `Telling` tells a `Log` and the application's hooks (`Hook`) what happens.

**What goes out.** `publishing` collects events into batches and keeps each until it is answered, within a window;
`producing` numbers those of a producer, so that they can be sent again. A `Vocabulary` (in `vocabulary`) remembers
topics and names that were checked (`check_names`); a `Body` becomes bytes by `body_bytes`, a document by
`document_body`, a mode a number by `mode_number`, options by `subscribe_options`.

**What comes in.** `receiving` opens deliveries and gives credit: each subscription has an `Inbox` of `Event`s. What
XPATH keeps back is counted (`findings.py`) by why and by topic, the topics beyond a bound as `OTHERS`. A
durable subscription (in `durable`) has a `DurableInbox` of `HandedEvent`s, collects what is said of them, and comes
back by itself; `durable_options` checks what it is asked for with.

**The past.** A `Replay` (in `replay`) says which `Step` comes next so that each event is seen once: survey the logs,
read them, subscribe, read again what was missed; `Replaying` makes the steps for one inbox, and `PollSchedule` says
when to look again. `parse_start` reads where to begin, `begins_in_the_past` says whether that takes a replay. Logs are
read from the brokers that have them (`logs.py`). One broker says what there is: a `Survey` has each log (`LogInfo`),
which brokers are missing, how many disks have a log, and whether the stream is stored. `catalogue` puts together what
each broker said of its logs, `kind_number` and `kind_word` name kinds of logs, `open_chunk` opens rows as a `Chunk`.
"""

from . import durable, producing, publishing, receiving, replay, vocabulary
from .conversation import ClientOptions, Conversation
from .core import Amended, ClientCore, SubscriptionCore
from .dialling import Attempt, Dialling, LinkCore, Retry, check_seconds, reason_of
from .durable import DurableInbox, HandedEvent, durable_options
from .findings import OTHERS
from .forking import remember
from .limits import ClientLimits
from .logs import (
    Chunk,
    LogInfo,
    Survey,
    catalogue,
    kind_number,
    kind_word,
    open_chunk,
)
from .receiving import Event, Inbox
from .replay import PollSchedule, Replay, Replaying, Step, begins_in_the_past, parse_start
from .task import Close, Connect, Dial, Outcome, Pause, Settled, Task, Wanted, Work
from .telling import Hook, Log, Telling
from .vocabulary import Body, Vocabulary, body_bytes, check_names, document_body, mode_number, subscribe_options

__all__ = [
    "OTHERS",
    "Amended",
    "Attempt",
    "Body",
    "Chunk",
    "ClientCore",
    "ClientLimits",
    "ClientOptions",
    "Close",
    "Connect",
    "Conversation",
    "Dial",
    "Dialling",
    "DurableInbox",
    "Event",
    "HandedEvent",
    "Hook",
    "Inbox",
    "LinkCore",
    "Log",
    "LogInfo",
    "PollSchedule",
    "Outcome",
    "Pause",
    "Replay",
    "Replaying",
    "Retry",
    "Settled",
    "Step",
    "SubscriptionCore",
    "Survey",
    "Task",
    "Telling",
    "Vocabulary",
    "Wanted",
    "Work",
    "begins_in_the_past",
    "body_bytes",
    "document_body",
    "catalogue",
    "check_names",
    "check_seconds",
    "durable",
    "durable_options",
    "kind_number",
    "kind_word",
    "mode_number",
    "open_chunk",
    "parse_start",
    "producing",
    "publishing",
    "reason_of",
    "receiving",
    "remember",
    "replay",
    "subscribe_options",
    "vocabulary",
]
