"""`python -m headgate.broker` starts the daemon from the environment alone; `headgate serve` has the flags."""

from __future__ import annotations

import sys

from headgate.broker.daemon import run
from headgate.broker.daemon.settings import SettingsError, load_settings


def main() -> int:
    """Settings from HEADGATE_… and the file HEADGATE_CONFIG, then serve."""
    try:
        settings = load_settings({})
    except SettingsError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return 2
    return run(settings, lambda: load_settings({}))


if __name__ == "__main__":
    sys.exit(main())
