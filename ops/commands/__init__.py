"""The verbs of `headgate`, one file each. A verb has `add_arguments(parser)` and `run(arguments)`, its exit code.

Errors leave `run` as exceptions; `ops.cli` makes a line and an exit code of them.
"""

__all__ = []
