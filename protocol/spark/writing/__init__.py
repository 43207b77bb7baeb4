"""FACE of writing."""

from . import attempts, rerun
from .attempts import Attempt, Run, publish_attempt
from .marks import Mark, job_name, mark_of
from .sending import Sent

__all__ = [
    "Attempt",
    "Mark",
    "Run",
    "Sent",
    "attempts",
    "job_name",
    "mark_of",
    "publish_attempt",
    "rerun",
]
