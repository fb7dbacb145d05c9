"""Shell commands as rules see them. Only one plain command with literal words is understood; whatever a shell would
expand, chain, redirect or hand on to another interpreter is not, and what is not understood no rule allows.
"""

from __future__ import annotations

import re

from quintet.domain.ports import ParsedCommand
from quintet.workspace.destructive import destructive_argv, destructive_text, destructive_words

LENGTH_LIMIT = 10_000

# Bare characters that mean themselves to every POSIX shell wherever they stand. Backslash is not among them on purpose.
_BARE = re.compile(r"[A-Za-z0-9_@%+:,./^=-]+")
_SINGLE = re.compile(r"'([^'\n\r\0]*)'")
_DOUBLE = re.compile(r'"([^"$`\\!\n\r\0]*)"')
_BLANK = re.compile(r"[ \t]+")
_VERSION = re.compile(r"[0-9][0-9.]*$")

_RUNNERS = """
sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox toybox env sudo doas su runuser pkexec chroot unshare nsenter
xargs parallel nohup nice ionice chrt taskset timeout setsid stdbuf script time watch entr flock strace ltrace gdb
ssh sshpass eval exec source . command builtin trap coproc awk gawk mawk nawk sed
"""
_BUILTINS = """
alias unalias bind caller cd compgen complete compopt declare typeset dirs disown enable exit export fc fg bg getopts
hash history jobs let local logout mapfile readarray popd pushd read readonly return set shift shopt suspend test times
type ulimit umask unset wait break continue
"""
_KEYWORDS = "if then elif else fi for while until do done case esac in select function"
_NOT_PLAIN = frozenset((_RUNNERS + _BUILTINS + _KEYWORDS).split())
# Options by which an otherwise plain program runs others or evaluates what it is given.
_RUNS_BY_OPTION = {
    **dict.fromkeys(("python", "pypy"), ("-c",)),
    **dict.fromkeys(("perl", "ruby", "lua"), ("-e", "-E")),
    **dict.fromkeys(("node", "nodejs", "bun", "deno"), ("-e", "-p", "--eval", "--print", "eval")),
    **dict.fromkeys(("pwsh", "powershell"), ("-c", "-e", "-Command", "-EncodedCommand")),
    "php": ("-r",),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fls", "-fprint0"),
    "printf": ("-v",),
    "git": ("-c", "--exec-path", "--config-env", "--upload-pack", "--receive-pack", "--ext-diff"),
}


class PlainCommandParser:
    """Plays domain.ports.CommandParser."""

    def parse(self, command: str) -> ParsedCommand:
        words = _words(command) if len(command) <= LENGTH_LIMIT else None
        if words is None or not _plain(words):
            return ParsedCommand(understood=False, destructive=destructive_text(command))
        argv = tuple(words)
        return ParsedCommand(
            understood=True, commands=(argv,), destructive=destructive_argv(argv) or destructive_words(command)
        )


def _words(command: str) -> list[str] | None:
    """The literal words, or None as soon as one character could mean more than itself."""
    words: list[str] = []
    place = 0
    text = command.strip(" \t")
    while place < len(text):
        blank = _BLANK.match(text, place)
        place = blank.end() if blank else place
        word = ""
        start = place
        while place < len(text) and text[place] not in " \t":
            found = _BARE.match(text, place) or _SINGLE.match(text, place) or _DOUBLE.match(text, place)
            if found is None:
                return None
            word += found[found.lastindex or 0]
            place = found.end()
        if place > start:
            words.append(word)
    return words or None


def _plain(words: list[str]) -> bool:
    first = words[0]
    name = first.rsplit("/", 1)[-1]
    bare = _VERSION.sub("", name)  # python3.11 is python
    if not name or "=" in first or first.startswith(("%", "-")) or name.lower() in _NOT_PLAIN:
        return False
    if any(ord(c) < 32 or ord(c) == 127 for word in words for c in word):
        return False
    runs = _RUNS_BY_OPTION.get(bare, ())
    return not any(_holds(word, option) for word in words[1:] for option in runs)


def _holds(word: str, option: str) -> bool:
    """Short options also count in a bundle (-Ic) and with their value glued on (-cpager=x)."""
    if len(option) == 2 and word.startswith("-") and not word.startswith("--"):
        return option[1] in word
    return word == option or word.startswith(option + "=")
