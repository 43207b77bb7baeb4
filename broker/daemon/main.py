"""The daemon from start to stop: settings -> logs -> records -> Node -> driver -> servers; signals; drain."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.inputs import Certified, Drain, Governed, Loaded, Reachable
from headgate.protocol.aio import Tasks
from headgate.protocol.security import TlsError

from .access import (
    ACCESS_LOOK_SECONDS,
    AccessError,
    Door,
    Gatekeeper,
    Issuer,
    Reading,
    Unfetched,
    WebTokenRules,
    fetch,
)
from .copied_folder import begin_epoch, least_epoch, note_births
from .data_lock import DataInUse, DataLock
from .descriptors import connections_possible
from .driver import Driver
from .health import Health
from .limits import (
    CERTIFICATES_LOOK_SECONDS,
    DEFAULT_LIMITS,
    GC_THRESHOLDS,
    HANDSHAKE_REASONS_MAX,
    HANDSHAKE_TOLD_SECONDS,
    LOG_CLOSE_SECONDS,
    READY_LOOK_SECONDS,
    START_PATIENCE_SECONDS,
    THREAD_SWITCH_SECONDS,
    WALL_CLOCK_SECONDS,
    DaemonLimits,
)
from .log import LogLimits, LogUnusable, LogWriter, SqliteLogStore
from .logs import configure_logs
from .memory import keep_freed_memory
from .metrics import BrokerCollector, render, render_detailed
from .notify import notify, watchdog_seconds
from .peers import PeerServer
from .records import Records, RecordsError
from .security import Certificates
from .server import Server
from .settings import RELOADABLE, Settings, SettingsError, split_address

__all__ = ["DISK_UNUSABLE", "FAILED", "AddressError", "Daemon", "run"]

FAILED = 1
"""Exit code of a start that may do better the next time: an address or the folder is in use. Python's own, too."""

DISK_UNUSABLE = 5
"""Exit code of a broker whose data folder or disk is not as it should be: to start it again mends nothing."""


class AddressError(Exception):
    """An address cannot be listened on; the text says which setting gives another."""

    def __init__(self, setting: str, address: str, reason: str) -> None:
        super().__init__(f"cannot listen on {address}: {reason}; choose another address with --{setting}")
        self.setting = setting
        self.address = address
        self.reason = reason


class Daemon:
    """One broker in this process; `start`, and `stop` when it is over."""

    def __init__(self, settings: Settings, limits: DaemonLimits = DEFAULT_LIMITS) -> None:
        self._settings = settings
        self._log = structlog.get_logger()
        connections_max = _possible(settings.connections_max)
        certificates = _certificates(settings)
        keeper = _gatekeeper(settings)
        self._lock = DataLock(settings.data)
        try:
            self._records = Records(settings.data, limits)
            with self._records.reserve.given_up():
                incarnation = self._begin_life(settings)
        except (RecordsError, LogUnusable):
            self._lock.release()
            raise
        config = NodeConfig(
            name=settings.broker_name,
            incarnation=incarnation,
            outbox_bytes=settings.outbox_bytes,
            outbox_bytes_total=settings.outbox_bytes_total,
            grace_seconds=settings.grace_seconds,
            slow_consumer=settings.slow_consumer,
            replicas=settings.replicas,
            log_copies=settings.log_copies,
            cluster=settings.cluster,
            seeds=settings.join,
            limits=limits.node,
        )
        # Not the loop's clock: uvloop's ticks in milliseconds, and what we measure is shorter.
        clock = time.monotonic
        self.node = Node(config, random.SystemRandom(), clock())
        self.driver = Driver(self.node, self._records, clock)
        self.server = Server(self.driver, connections_max, limits)
        self.peers = PeerServer(self.driver, limits=limits)
        self._collector = BrokerCollector(self.driver, self.server, limits)
        self.certificates = certificates
        self._collector.certificates = certificates
        self._handshakes_told: dict[tuple[str, str], float] = {}
        for port, one in certificates.items():
            one.when_failed = partial(self._handshake_failed, port)
        self._settled = False
        self._ready_look: asyncio.TimerHandle | None = None
        self.health = Health(
            lambda: render(self._collector), lambda names: render_detailed(self._collector, names), self._obstacle
        )
        self.server.security, self.health.security = certificates.get("clients"), certificates.get("admin")
        self.health.asks_certificates = settings.tls_client_certs == "required"
        self.door = None if keeper is None else Door(keeper)
        self._reading: asyncio.Future[Reading] | None = None
        self._tasks = Tasks()
        self.server.door = self.health.door = self._collector.door = self.door
        self.peers.security = certificates.get("peers")
        self._timers: list[asyncio.TimerHandle] = []
        self._writer: LogWriter | None = None
        self._hurried = False
        self.halted = False
        """The disk under the log has failed, and this broker must not go on."""
        self.when_halted: Callable[[], object] = lambda: None

    def _begin_life(self, settings: Settings) -> int:
        """Which life this is, and what earlier ones left. Raises RecordsError or LogUnusable."""
        # A broker whose folder was lost must not live a life again: the others hold what it said in that one.
        incarnation = self._records.next_life(first=int(time.time()))
        self._store = SqliteLogStore(settings.data, settings.broker_name)
        least, self._copied = least_epoch(self._records, settings.data, int(time.time()))
        opened = self._store.open()
        if self._copied:
            least = begin_epoch(self._records, least, opened.epoch)
        self._opened = replace(opened, epoch=max(opened.epoch, least))
        note_births(self._records, settings.data)
        return incarnation

    def _obstacle(self) -> str:
        """Why not to send clients here: until this broker has its place in the cluster, and when it drains.

        Not while the cluster is being repaired: all brokers are then, and clients have nowhere better to go.
        """
        now = self.driver.clock()
        self._settled = self._settled or self.node.cluster.settled(now)
        if self.node.clients.draining:
            return "draining"
        if self._settled:
            return ""
        refused = self.node.cluster.shut_out(now)
        return f"refused by the cluster, and asking again: {refused}" if refused else "starting"

    def _tell_when_ready(self) -> None:
        """The service manager hears READY once, when clients may come, and until then that this broker is alive."""
        obstacle = self._obstacle()
        if not obstacle:
            notify("READY=1\nSTATUS=ready")
            self._log.info("ready", broker=self.node.config.name, cluster=self.node.config.cluster)
        elif obstacle != "draining":
            notify(f"EXTEND_TIMEOUT_USEC={int(START_PATIENCE_SECONDS * 1e6)}\nSTATUS={obstacle}")
            self._ready_look = asyncio.get_running_loop().call_later(READY_LOOK_SECONDS, self._tell_when_ready)

    async def start(self) -> None:
        """Listen. Raises AddressError when an address cannot be had, and leaves nothing behind then."""
        self._begin_log()
        self.driver.feed(Loaded(self._records.values))
        if self.door is not None:
            self._govern(self.door)
        self.driver.tell_wall_clock()
        self._tell_certificates()
        self.driver.look_at_records()
        try:
            await _listen(self.health.listen, "admin", self._settings.admin)
            await _listen(self.server.listen, "listen", self._settings.listen)
            await self._listen_for_peers()
        except AddressError:
            await self._end()
            raise
        self._every(WALL_CLOCK_SECONDS, self.driver.tell_wall_clock)
        self._every(WALL_CLOCK_SECONDS, self.driver.look_at_records)
        if self.door is not None:
            self.look_at_access()
            self._every(ACCESS_LOOK_SECONDS, self.look_at_access)
        if self.certificates:
            self._every(CERTIFICATES_LOOK_SECONDS, self.look_at_certificates)
        if (seconds := watchdog_seconds()) is not None:
            self._every(seconds, lambda: notify("WATCHDOG=1"))
        self._log.info(
            "listening",
            broker=self.node.config.name,
            cluster=self.node.config.cluster,
            clients=self.server.address,
            peers=self.peers.address,
            admin=self.health.address,
        )
        self._tell_when_ready()

    def _begin_log(self) -> None:
        """The log is there before anything else happens; the Node says what was found damaged."""
        loop, driver = asyncio.get_running_loop(), self.driver

        def post(call: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is gone: nobody waits for an answer any more
                loop.call_soon_threadsafe(call)

        self._writer = LogWriter(self._store, driver.feed, post, LogLimits(commit_bytes=self._store.commit_bytes()))
        driver.ask_store, driver.halt = self._writer.ask, self._halt
        driver.feed(self._opened)
        if self._copied and self._opened.logs:
            text = f"{' and '.join(self._copied)} in {self._settings.data} were copied there, as from a backup: "
            text += "what was written since is missing, and the log goes on in a new epoch"
            self._log.warning("data folder is a copy", reason=text, epoch=self._opened.epoch)

    def _halt(self, reason: str) -> None:
        if not self.halted:
            self.halted = True
            advice = "look at the disk before this broker is started again; what was acknowledged is in the log"
            self._log.error("the log cannot be written any more: stopping", reason=reason, advice=advice)
            self.when_halted()

    async def stop(self) -> None:
        """Stop accepting, let clients take what is theirs, close; a broker that has halted just closes."""
        notify("STOPPING=1")
        if not self.halted:
            await self._drain()
        await self._end()
        self._log.info("stopped")

    async def _drain(self) -> None:
        self._log.info("draining", connections=self.server.connections)
        self.server.stop_accepting()
        self.peers.stop_accepting()
        self.server.give_time_to_close(self._settings.drain_seconds)
        self.driver.feed(Drain())
        self.server.dismiss_strangers()
        deadline = time.monotonic() + self._settings.drain_seconds
        while (self.server.connections or self.peers.connections) and time.monotonic() < deadline and not self._hurried:
            await asyncio.sleep(0.01)

    def reload(self, reread: Callable[[], Settings] | None) -> None:
        """Read the settings again: what can change while the broker runs does, the rest is named."""
        try:
            settings = self._settings if reread is None else reread()
        except SettingsError as error:
            self._log.warning("settings not read again", reason=str(error), advice="the broker goes on as it was")
            return
        self.look_at_certificates()
        if self.door is not None and self.door.keeper.issuer is not None:
            self.door.keeper.issuer.ask()
        self.look_at_access()
        before, after = self._settings.model_dump(), settings.model_dump()
        changed = [name for name in after if after[name] != before[name]]
        self._settings = self._settings.model_copy(update={name: after[name] for name in RELOADABLE})
        configure_logs(self._settings.log_level, self._settings.log_format)
        waiting = [name for name in changed if name not in RELOADABLE]
        log = self._log.warning if waiting else self._log.info
        log(
            "settings read again",
            changed=", ".join(name for name in changed if name in RELOADABLE) or "nothing",
            needs_a_restart=", ".join(waiting) or "nothing",
        )

    def look_at_certificates(self) -> None:
        """Use certificates whose files are new; what cannot be used is told, and the former ones go on."""
        for port, certificates in self.certificates.items():
            if certificates.changed():
                try:
                    certificates.load()
                except TlsError as error:
                    self._log.warning("certificate not read again", port=port, reason=str(error))
                else:
                    self._log.info("certificate read again", port=port, file=str(certificates.cert))
                    self._tell_certificates()

    def _handshake_failed(self, port: str, reason: str) -> None:
        """Say why, now and then: strangers may come by the thousand, and there are few reasons."""
        now, told = self.driver.clock(), self._handshakes_told
        if now - told.get((port, reason), float("-inf")) >= HANDSHAKE_TOLD_SECONDS:
            if len(told) >= HANDSHAKE_REASONS_MAX:
                told.clear()
            told[port, reason] = now
            self._log.warning("TLS handshake failed", port=port, reason=reason)

    def _tell_certificates(self) -> None:
        ends = {port: one.expires for port, one in self.certificates.items() if port != "admin"}
        if ends:
            self.driver.feed(Certified(ends))

    def look_at_access(self) -> None:
        """Use users and roles whose files are new; what cannot be used is told, and the former ones go on."""
        if self.door is None:
            return
        keeper = self.door.keeper
        if keeper.issuer is not None:
            self._look_at_issuer(self.door, keeper.issuer)
        if self._reading is not None:
            return
        if keeper.expire(time.time()):
            self._govern(self.door)
        if keeper.is_stale():
            # In a thread: a large file would keep the loop from its heartbeats.
            self._reading = asyncio.get_running_loop().run_in_executor(None, keeper.read)
            self._reading.add_done_callback(partial(self._have_read, self.door))

    def _have_read(self, door: Door, reading: asyncio.Future[Reading]) -> None:
        self._reading = None
        if reading.cancelled():
            return
        try:
            door.keeper.use(reading.result(), time.time())
        except AccessError as error:
            self._log.warning("users and roles not read again", reason=str(error), advice="the former ones hold")
        else:
            self._govern(door)

    def _look_at_issuer(self, door: Door, issuer: Issuer) -> None:
        """Have the keys of web tokens fetched when they are due, and forget those that are too old."""
        now = self.driver.clock()
        if issuer.is_over(now):
            text = f"they were last fetched {issuer.age(now):.0f} seconds ago: who came in by a web token has to go"
            self._log.error("keys of web tokens are too old", address=issuer.address, reason=text)
            door.keeper.use_keys(None, time.time())
            self._govern(door)
        if issuer.is_due(now):
            issuer.begin(now)
            self._tasks.start(self._fetch_keys(door, issuer), "keys of web tokens")

    async def _fetch_keys(self, door: Door, issuer: Issuer) -> None:
        try:
            data = await fetch(issuer.address, issuer.limits)
            # In a thread, as files are read: a large set of keys would keep the loop from its heartbeats.
            found = await asyncio.to_thread(door.keeper.keys_of, data)
        except (Unfetched, AccessError) as error:
            if issuer.fail(error.kind if isinstance(error, Unfetched) else "garbage"):
                has_keys = bool(door.keeper.policy.issuers)
                advice = "those it gave last hold for a while" if has_keys else "web tokens are refused meanwhile"
                facts = {"address": issuer.address, "reason": str(error), "advice": advice}
                self._log.warning("keys of web tokens not fetched", **facts)
            return
        finally:
            issuer.fetching = False
        was_failing = issuer.failing
        issuer.succeed(self.driver.clock())
        if door.keeper.use_keys(found, time.time()) or was_failing:
            self._log.info("keys of web tokens fetched", address=issuer.address, keys=len(found.credentials))
            self._govern(door)

    def _govern(self, door: Door) -> None:
        policy = door.keeper.policy
        self.driver.feed(Governed(policy))
        self._log.info("users and roles", users=len(policy.users), roles=len(policy.roles), version=policy.version)
        if door.keeper.unknown_roles:
            names = ", ".join(door.keeper.unknown_roles)
            self._log.warning("users have roles that do not exist", roles=names, advice="they allow nothing")

    def hurry(self) -> None:
        """Wait for nobody any more."""
        self._hurried = True

    async def _end(self) -> None:
        self.server.stop_accepting()
        self.server.abort_all()
        await self.peers.close()
        await self.health.close()
        for timer in (*self._timers, self._ready_look):
            if timer is not None:
                timer.cancel()
        await self._tasks.stop()
        if self.door is not None:
            self.door.close()
        closed = self._writer is None or await asyncio.to_thread(self._writer.close, LOG_CLOSE_SECONDS)
        if not closed and not self.halted:
            self._log.warning("log left as it is", reason="the disk is too slow: the next start reads it to its end")
        self.driver.stop()
        self._lock.release()

    async def _listen_for_peers(self) -> None:
        """Other brokers are let in, and looked for. Who asked for none of that may do without."""
        settings = self._settings
        try:
            await _listen(self.peers.listen, "peer-listen", settings.peer_listen)
        except AddressError as error:
            if settings.needs_peers:
                raise
            text = "this broker stays alone: say --peer-listen to have it reached by others"
            self._log.warning("no peer listener", address=error.address, reason=error.reason, advice=text)
            return
        address = settings.peer_address(self.peers.address)
        self.driver.feed(Reachable(address, settings.client_address(self.server.address)))

    def _every(self, seconds: float, action: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        place = len(self._timers)

        def again() -> None:
            self._timers[place] = loop.call_later(seconds, again)
            action()

        self._timers.append(loop.call_later(seconds, again))


def run(settings: Settings, reread: Callable[[], Settings] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Why a start failed is the last line of the log, on stderr.

    SIGHUP reads the settings again with `reread`; it never ends the broker, not even before that is set up.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    configure_logs(settings.log_level, settings.log_format)
    log = structlog.get_logger()
    with asyncio.Runner(loop_factory=_loop_factory(settings.loop)) as runner:
        try:
            return runner.run(_serve(settings, reread))
        except (AddressError, DataInUse, TlsError, AccessError) as error:
            log.error("cannot start", reason=str(error))
            return FAILED
        except (RecordsError, LogUnusable) as error:
            log.error("cannot start", reason=str(error))
            return DISK_UNUSABLE


async def _serve(
    settings: Settings, reread: Callable[[], Settings] | None = None, limits: DaemonLimits = DEFAULT_LIMITS
) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_fault)
    keep_freed_memory()
    daemon = Daemon(settings, limits)
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            daemon.hurry()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, daemon.reload, reread)
    daemon.when_halted = stopping.set
    await daemon.start()
    # What exists now stays: keeping it out of every later collection was measured to save 3 to 8 % of the time.
    gc.collect()
    gc.freeze()
    # What the hot path makes dies by reference count; scanning it every 700 objects was measured to cost about 5 %.
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    await stopping.wait()
    await daemon.stop()
    return DISK_UNUSABLE if daemon.halted else 0


def _certificates(settings: Settings) -> dict[str, Certificates]:
    """Of the ports that speak TLS. Raises TlsError."""
    found = {}
    if settings.tls_cert and settings.tls_key:
        pair = settings.tls_cert, settings.tls_key
        found["clients"] = Certificates(*pair, settings.tls_ca, settings.tls_client_certs, settings.tls_version)
        # A probe of health has no certificate; who wants more than health is asked there.
        asked = "none" if settings.tls_client_certs == "none" else "optional"
        found["admin"] = Certificates(*pair, settings.tls_ca, asked, settings.tls_version)
    if settings.peer_tls_cert and settings.peer_tls_key:
        pair = settings.peer_tls_cert, settings.peer_tls_key
        found["peers"] = Certificates(*pair, settings.peer_tls_ca, "required", settings.tls_version, dials=True)
    return found


def _gatekeeper(settings: Settings) -> Gatekeeper | None:
    """Of a broker that asks who somebody is. Raises AccessError."""
    if settings.users is None or settings.roles is None:
        return None
    rules = None
    if settings.jwt_keys is not None:
        rules = WebTokenRules(
            settings.jwt_keys,
            settings.jwt_issuer,
            settings.jwt_audience,
            settings.jwt_algorithms,
            settings.jwt_roles_claim,
        )
    return Gatekeeper(settings.users, settings.roles, time.time(), rules)


async def _listen(listen: Callable[[str, int], Awaitable[None]], setting: str, address: str) -> None:
    try:
        await listen(*split_address(address))
    except UnicodeError as error:  # from the resolver, for an empty label or one of more than 63 characters
        raise AddressError(setting, address, "this is no host name") from error
    except OSError as error:
        raise AddressError(setting, address, error.strerror or str(error)) from error


def _possible(connections_max: int) -> int:
    possible = connections_possible(connections_max)
    if possible < connections_max:
        reason = "the system gives this process too few file descriptors: raise its limit (LimitNOFILE, ulimit -n)"
        structlog.get_logger().warning("fewer connections", connections_max=possible, reason=reason)
    return possible


def _log_fault(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a callback or the loop itself failed on; asyncio tells of a full table of descriptors here as well."""
    structlog.get_logger().error(
        "fault in the event loop", reason=str(context.get("message", "")), exc_info=context.get("exception")
    )


def _loop_factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if loop == "asyncio" or (loop == "auto" and importlib.util.find_spec("uvloop") is None):
        return None
    import uvloop

    return uvloop.new_event_loop
