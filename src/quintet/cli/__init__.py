"""The command line. Each command lives in its own file and is imported only when it is called."""

from __future__ import annotations


def main() -> int:
    return 0
