"""FACE of clients."""

from . import clients, inquiries, pages, questions
from .audit import AuditLog
from .clients import Clients
from .inquiries import Inquiries
from .publishers import Publishers
from .questions import answer_of, ask

__all__ = [
    "AuditLog",
    "Clients",
    "Inquiries",
    "Publishers",
    "answer_of",
    "ask",
    "clients",
    "inquiries",
    "pages",
    "questions",
]
