"""The executable `quintet-kward`: stands where a client expects `kward`. Knows `rpc` and `--version`."""

from __future__ import annotations

import sys

USAGE = "quintet-kward: only rpc and --version are known. Clients start it with rpc."


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words == ["--version"]:
        from quintet import __version__

        print(f"quintet-kward {__version__}")
        return 0
    if words[:1] == ["rpc"]:
        from quintet.cli import main as quintet

        return quintet(["kward", *words[1:]])
    from quintet.cli.last_resort import tell

    tell(USAGE)
    return 2
