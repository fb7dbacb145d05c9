"""The command line. Each command lives in its own file and is imported only when it is called."""

from __future__ import annotations

import sys

COMMANDS = {
    "run": 'one headless turn: quintet run "read README.md"',
    "threads": "list, show, search, export, import, fork, rename, steer, cancel, delete",
    "approvals": "what waits for an answer: list, allow, deny, answer, rules, revoke",
    "events": "what happens, as it happens: events --follow",
    "serve": "start the server",
    "gc": "prune what may go and say what it freed",
    "methods": "the methods of a protocol",
    "version": "version, home directory, log",
}


def main(argv: list[str] | None = None) -> int:
    """Find the command, import its file, run it. Every error ends as one line and an exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words == ["--version"]:
        from quintet import __version__

        print(f"quintet {__version__}")
        return 0
    name = _command(words)
    if name not in COMMANDS or (words and words[0] in ("-h", "--help")):
        return _help(name if words and words[0] not in ("-h", "--help") else None, words)
    from quintet.cli.invoke import invoke

    return invoke(name, words)


def _command(words: list[str]) -> str | None:
    """The first word that is neither a common flag nor its value."""
    after_home = False
    for word in words:
        if after_home:
            after_home = False
        elif word == "--home":
            after_home = True
        elif not word.startswith("-"):
            return word
    return None


def _help(unknown: str | None, words: list[str]) -> int:
    if unknown is not None or (words and words[0] not in ("-h", "--help")):
        import difflib

        near = difflib.get_close_matches(unknown or "", COMMANDS, n=1)
        hint = f"Did you mean `quintet {near[0]}`?" if near else "See `quintet --help`."
        print(f"quintet: there is no command {(unknown or words[0])!r}. {hint}", file=sys.stderr)
        return 2
    print("Quintet: one coding-agent server that every front end can use.\n")
    for name, summary in COMMANDS.items():
        print(f"  quintet {name:<10} {summary}")
    print("\nEverywhere: --home DIR, --json, --no-color. `quintet COMMAND --help` says more.")
    return 0
