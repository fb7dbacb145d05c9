"""The command line. Each command lives in its own file and is imported only when it is called."""

from __future__ import annotations

import sys

COMMANDS = {
    "demo": "see it work in half a minute: an edit, an approval, a test, undo; no key needed",
    "run": 'one headless turn: quintet run "read README.md"',
    "chat": "a conversation at this terminal: answers as they come, approvals in place",
    "threads": "list, show, search, diff, revert, export, import, fork, rename, steer, cancel, delete",
    "undo": "bring back the files the last turn changed, and undo that too: undo --redo",
    "agents": "who can work in a thread: built in, yours, the project's",
    "approvals": "what waits for an answer: list, allow, deny, answer, rules, revoke",
    "events": "what happens, as it happens: events --follow",
    "models": "what would work now, with context and price; local servers: models --local",
    "auth": "keys of providers: set (tried with a real call), list, remove",
    "memory": "what is remembered beyond a thread: list, add, forget, why, approve; off until enabled",
    "stats": "turns, tokens, cost, cache hits and tools, per day and model",
    "policy": "what would be said to a call, and why: policy explain shell 'git push'",
    "audit": "who asked, decided, ran and deleted: list, and verify that no row was changed",
    "serve": "start the server",
    "attach": "watch a running server from here, answer what waits, talk to a thread",
    "url": "where the server is, ready to paste; --rotate gives it another token",
    "wire": "speak Kimi Wire on stdin and stdout, for clients that start it",
    "kward": "speak Kward RPC on stdin and stdout, for clients that start it",
    "connect": "what to set in a client, and whether it would be answered: connect kimi",
    "doctor": "what works here, what does not, and the command that mends it",
    "gc": "prune what may go and say what it freed",
    "backup": "the whole home but its keys as one file, made while others work",
    "repair": "salvage a damaged journal, keeping the old files",
    "methods": "the methods of a protocol",
    "completion": "what a shell needs to complete quintet's words: bash, zsh, fish",
    "version": "version, home directory, log",
}
# How the help arranges them; what is in no group stands under the last.
GROUPS = {
    "Begin": ("demo", "doctor", "auth", "models"),
    "Work": ("run", "chat", "threads", "undo", "agents", "memory"),
    "Decide and look": ("approvals", "policy", "events", "stats", "audit"),
    "Serve": ("serve", "attach", "url", "connect", "wire", "kward", "methods"),
    "Keep": ("backup", "gc", "repair", "version", "completion"),
}
# What people type who know other programs, or the action and not its command.
MEANT = {
    "restore": "backup --help",
    "import": "threads import",
    "export": "threads export",
    "search": "threads search",
    "fork": "threads fork",
    "diff": "threads diff",
    "resume": "chat --continue",
    "allow": "approvals allow",
    "deny": "approvals deny",
    "login": "auth set",
    "key": "auth set",
    "ask": "run",
    "exec": "run",
    "tour": "demo",
    "continue": "run --continue",
    "list": "threads list",
    "sessions": "threads list",
    "history": "threads list",
    "show": "threads show",
    "cancel": "threads cancel",
    "steer": "threads steer",
    "compact": "threads compact",
    "revert": "undo",
    "redo": "undo --redo",
    "rules": "approvals rules",
    "cost": "stats",
    "usage": "stats",
    "log": "events",
    "check": "doctor",
    "status": "doctor",
    "start": "serve",
    "config": "version",
    "token": "url --help",
}
GC_THRESHOLD = 50_000


def main(argv: list[str] | None = None) -> int:
    """Find the command, import its file, run it. Every error ends as one line and an exit code."""
    import atexit
    import gc

    from quintet.cli import last_resort

    # What is made while modules are imported is never garbage; with the usual threshold it is looked through again and
    # again before the first reply.
    gc.set_threshold(GC_THRESHOLD)
    atexit.register(gc.freeze)  # nor is there anything to look for at the end: all of it goes with the process
    words = sys.argv[1:] if argv is None else argv
    last_resort.mend_streams()
    try:
        return last_resort.settle(_run(words))
    except SystemExit as ended:  # argparse has said what there is to say
        sys.exit(last_resort.settle(ended.code if isinstance(ended.code, int) else 1))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return last_resort.unwritable(error)
    except Exception as error:
        return last_resort.unexpected(error, _home(words))


def _run(words: list[str]) -> int:
    if words in (["--version"], ["-V"]):
        from quintet import __version__

        print(f"quintet {__version__}")
        return 0
    name = _command(words)
    if name == "help":  # the word as well as the flag
        words = [*words[words.index("help") + 1 :], "--help"]
        name = _command(words)
    if name is None and not {"-h", "--help"} & set(words):
        from quintet.cli.invoke import invoke

        return invoke("overview", ["overview", *words])
    if name not in COMMANDS or (words and words[0] in ("-h", "--help")):
        return _help(name if words and words[0] not in ("-h", "--help") else None, words)
    from quintet.cli.invoke import invoke

    return invoke(name, words)


def _home(words: list[str]) -> str | None:
    """What --home says, as far as that can be told without the parser, which may be what failed."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--home" or word.startswith("--home="):
            return following if word == "--home" else word.removeprefix("--home=")
    return None


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
    from quintet.cli import last_resort

    if unknown is not None or (words and words[0] not in ("-h", "--help")):
        import difflib

        meant = MEANT.get(unknown or "")
        near = [meant] if meant else difflib.get_close_matches(unknown or "", [*COMMANDS, "--help", "help"], n=1)
        hint = f"Did you mean `quintet {near[0]}`?" if near else "See `quintet --help`."
        last_resort.tell(f"quintet: there is no command {(unknown or words[0])!r}. {hint}")
        return 2
    from quintet.cli.terminal import OutputFailed, Screen

    screen = Screen()
    try:
        screen.row("Quintet: one coding-agent server that every front end can use.")
        for title, names in _grouped().items():
            screen.line(f"\n{title}")
            for name in names:
                screen.row(f"  quintet {name:<10} ", COMMANDS[name])
        screen.line()
        screen.row("Everywhere: --home DIR, --json, --no-color. `quintet COMMAND --help` says more.")
    except OutputFailed as failed:
        return last_resort.unwritable(failed.error)
    return 0


def _grouped() -> dict[str, list[str]]:
    found = {title: [name for name in names if name in COMMANDS] for title, names in GROUPS.items()}
    known = {name for names in found.values() for name in names}
    found["Keep"] += [name for name in COMMANDS if name not in known]
    return found
