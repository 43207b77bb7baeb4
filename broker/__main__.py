"""`python -m headgate.broker` starts the daemon from the environment alone; `headgate serve` has the flags."""

from __future__ import annotations

import sys

try:
    from headgate.broker.daemon import SettingsError, load_settings, run
except ModuleNotFoundError as error:
    print(f"headgate: the package {error.name} is not installed: pip install 'headgate[broker]'", file=sys.stderr)
    sys.exit(2)


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
