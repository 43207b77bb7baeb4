"""Does all that a client does apart from waiting: publishing, receiving, replaying and dialling, without I/O.

The asyncio and the blocking client hold these machines, and differ in how they wait.

**The conversation with a broker.** `Conversation` has everything that goes on over however many connections, as its
`ClientOptions` say, within its `ClientLimits`; what comes of each thing sent is an `Outcome`. `Dialling` gives one
`Attempt` after the other to reach a broker, with the patience of a `Retry`, and `LinkCore` makes them, now and
whenever the connection is lost; `reason_of` says why one failed,
`check_seconds` checks a time. `Telling` tells a `Log` and the application's hooks (`Hook`) what happens, and `remember`
ends a client in a forked child.

**What goes out.** `publishing` collects events into batches, `producing` numbers those of a producer. A `Vocabulary`
(in `vocabulary`) remembers topics and names that were checked (`check_names`); a `Body` becomes bytes by `body_bytes`,
a mode a number by `mode_number`, options by `subscribe_options`.

**What comes in.** `receiving` opens deliveries and gives credit: each subscription has an `Inbox` of `Event`s.

**The past.** A `Replay` (in `replay`) reads logs, goes over to what comes live, and reads again what it missed: it
tells its host each next `Step`, and `Looks` when to look again; `parse_start` reads where to begin and
`begins_in_the_past` says whether that takes a replay. `catalogue` puts together what each broker said of its logs
(`LogInfo`), and a `Survey` adds which brokers are missing (`brokers_away`) and how many disks have a log (`copies_of`).
`client_addresses` and `is_stored` read answers, `kind_number` and `kind_word` name kinds of logs, and `open_chunk`
opens rows as a `Chunk`.

**Waiting.** `ClientCore` is what a client shows of itself and asks its broker, `SubscriptionCore` what a subscription
shows; `Replaying` reads the past for one. What has to wait is `Work`, a generator that yields what it waits for
(`Wanted`: an outcome to be `Settled`, another client to `Dial` or `Close`, a `Pause`, a broker to `Connect`). A `Task`
moves it on, and the driver of each world the task: `aio/driver.py` awaits, `blocking/driver.py` reads the socket.
"""

from . import producing, publishing, receiving, replay, vocabulary
from .catalogue import (
    Chunk,
    LogInfo,
    Survey,
    brokers_away,
    catalogue,
    client_addresses,
    copies_of,
    is_stored,
    kind_number,
    kind_word,
    open_chunk,
)
from .conversation import ClientOptions, Conversation
from .core import ClientCore, SubscriptionCore
from .dialling import Attempt, Dialling, LinkCore, Retry, check_seconds, reason_of
from .forking import remember
from .limits import ClientLimits
from .outcome import Outcome
from .receiving import Event, Inbox
from .replay import Looks, Replay, Step, begins_in_the_past, parse_start
from .replaying import Replaying
from .task import Close, Connect, Dial, Pause, Settled, Task, Wanted, Work
from .telling import Hook, Log, Telling
from .vocabulary import Body, Vocabulary, body_bytes, check_names, mode_number, subscribe_options

__all__ = [
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
    "Event",
    "Hook",
    "Inbox",
    "LinkCore",
    "Log",
    "LogInfo",
    "Looks",
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
    "brokers_away",
    "catalogue",
    "check_names",
    "check_seconds",
    "client_addresses",
    "copies_of",
    "is_stored",
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
