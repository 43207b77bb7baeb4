"""`python -m headgate.broker.simulator --seed 7`: see `command.py`."""

from __future__ import annotations

import sys

from .command import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
