"""FACE of client."""

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
from .dialling import Attempt, Dialling, Retry, check_seconds, reason_of
from .forking import remember
from .outcome import Outcome
from .overview import Overview
from .receiving import Event, Inbox
from .replay import Looks, Replay, Step, begins_in_the_past, parse_start
from .telling import Hook, Log, Telling
from .vocabulary import Body, Vocabulary, body_bytes, check_names, mode_number, subscribe_options

__all__ = [
    "Attempt",
    "Body",
    "Chunk",
    "ClientOptions",
    "Conversation",
    "Dialling",
    "Event",
    "Hook",
    "Inbox",
    "Log",
    "LogInfo",
    "Looks",
    "Outcome",
    "Overview",
    "Replay",
    "Retry",
    "Step",
    "Survey",
    "Telling",
    "Vocabulary",
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
