"""Wrappers: programs that run the program they are given. Says what runs behind one, as words or as shell text.

Pure. What is found is examined even where the wrapper itself is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from quintet.domain.ports import UNKNOWN_WORD
from quintet.workspace.shell_parsing.variables import harmless_for_command

Words = Sequence[str]
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_VERSION = re.compile(r"[0-9][0-9.]*$")


class Behind(msgspec.Struct, frozen=True):
    """What a wrapper runs. `clear` is False where its own words leave open what it does with it."""

    argvs: tuple[tuple[str, ...], ...] = ()
    texts: tuple[str, ...] = ()
    clear: bool = True


class _Options(msgspec.Struct, frozen=True):
    """How to get past a wrapper's options to the program."""

    alone: str = ""  # letters of options without a value
    valued: str = ""  # letters of options with one
    long: tuple[str, ...] = ()  # harmless long options, with `=` values
    skip: int = 0  # words of its own between the options and the program
    assigns: bool = False  # NAME=VALUE before the program


def program_name(word: str) -> str:
    """/usr/bin/Python3.11 is python."""
    name = word.rsplit("/", 1)[-1].lower()
    return _VERSION.sub("", name) or name


def behind(argv: Words) -> Behind | None:
    """None when the program is no wrapper."""
    name = argv[0].rsplit("/", 1)[-1].lower()
    if name in _SHELLS:
        return _shell(argv[1:])
    if name in _OTHER_SHELLS:
        return msgspec.structs.replace(_shell(argv[1:]), clear=False)  # its language is another
    if name in _RUNNERS and len(argv) > 1 and argv[1] in _RUNNERS[name]:
        return _prefix(argv[2:], _Options())
    if name in _SPECIAL:
        return _SPECIAL[name](argv[1:])
    if name in _PREFIXES:
        return _prefix(argv[1:], _PREFIXES[name])
    if name in _DARK:
        return Behind(_guesses(argv[1:]), clear=False)
    return None


def _prefix(words: Words, options: _Options) -> Behind:
    rest, clear = list(words), True
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            clear = clear and word.partition("=")[0] in options.long
        elif word[1] in options.valued:
            if len(word) == 2:
                clear = clear and bool(rest)
                rest[:1] = []
        else:
            clear = clear and all(c in options.alone or c.isdigit() for c in word[1:])
    rest = rest[options.skip :]
    clear = clear and UNKNOWN_WORD not in words[: len(words) - len(rest)]  # it could be any number of words
    while options.assigns and rest and (assigned := _ASSIGNED.match(rest[0])):
        clear = clear and harmless_for_command(assigned[1])
        rest.pop(0)
    if rest and rest[0] == UNKNOWN_WORD:
        clear = False
    if not clear:
        return Behind(_guesses(words), clear=False)
    return Behind((tuple(rest),) if rest else ())


def _guesses(words: Words) -> tuple[tuple[str, ...], ...]:
    """Every word could begin the program: good enough for finding what a rule forbids."""
    return tuple(tuple(words[n:]) for n, word in enumerate(words[:12]) if word and not word.startswith("-"))


def _shell(words: Words) -> Behind:
    """sh -c TEXT, sh FILE; with neither it reads its code from elsewhere."""
    rest, code = list(words), False
    while rest and rest[0].startswith(("-", "+")) and len(rest[0]) > 1:
        option = rest.pop(0)
        if option in ("--norc", "--noprofile", "--posix", "--login"):
            continue
        if option == "--":
            break
        letters = option[1:]
        if letters.endswith("o") and rest and rest[0] in ("pipefail", "errexit", "nounset", "xtrace"):
            letters = letters[:-1]
            rest.pop(0)
        if option.startswith(("--", "+")) or any(c not in "celuxfv" for c in letters):
            return Behind(_guesses(words), tuple(w for w in rest if w != UNKNOWN_WORD)[:1], clear=False)
        code = code or "c" in letters
    if not rest or rest[0] in (UNKNOWN_WORD, "-"):
        return Behind(clear=False)
    # A text sees the words behind it as $0, $1 …; those are unknown words to it already.
    return Behind(texts=(rest[0],)) if code else Behind()


def _evaluated(words: Words) -> Behind:
    if UNKNOWN_WORD in words:
        return Behind(_guesses(words), clear=False)
    return Behind(texts=(" ".join(words),) if words else ())


def _xargs(words: Words) -> Behind:
    found = _prefix(words, _Options("0rtxo", "ILnPdsaE", ("--null", "--no-run-if-empty", "--max-args", "--max-procs")))
    marks = [words[n + 1] if w == "-I" else w[2:] for n, w in enumerate(words[:-1]) if w.startswith("-I")]
    argvs = [tuple(UNKNOWN_WORD if any(m in w for m in marks) else w for w in argv) for argv in found.argvs]
    clear = found.clear and all(argv[0] != UNKNOWN_WORD for argv in argvs)
    # Its input adds words, which may also be options.
    return Behind(tuple((*argv, UNKNOWN_WORD) for argv in argvs), clear=clear)


def _find(words: Words) -> Behind:
    argvs, clear, at = [], True, 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((n for n in range(at, len(words)) if words[n] in (";", "+")), len(words))
            argvs.append(tuple(UNKNOWN_WORD if "{}" in w else w for w in words[at:end]))
            clear = clear and end < len(words) and bool(argvs[-1]) and argvs[-1][0] != UNKNOWN_WORD
            at = end + 1
        elif word.startswith(("-fprint", "-fls", "-files0-from")) or word == UNKNOWN_WORD:
            clear = False
    return Behind(tuple(a for a in argvs if a), clear=clear)


def _env(words: Words) -> Behind:
    if any(w.startswith(("-S", "--split", "-C", "--chdir")) for w in words):
        return Behind(_guesses(words), tuple(w for w in words if w != UNKNOWN_WORD), clear=False)
    return _prefix(words, _Options("i0v", "u", ("--ignore-environment", "--null"), assigns=True))


def _command(words: Words) -> Behind:
    if words and words[0] in ("-v", "-V"):
        return Behind()
    return _prefix(words, _Options("p"))


def _exec(words: Words) -> Behind:
    return _prefix(words, _Options("cl", "a")) if words else Behind(clear=False)


def _flock(words: Words) -> Behind:
    if "-c" in words or "--command" in words:
        return Behind(texts=tuple(w for w in words[-1:] if w != UNKNOWN_WORD), clear=False)
    return _prefix(words, _Options("sxnoFu", "wE", ("--nonblock", "--shared", "--exclusive"), skip=1))


def _watch(words: Words) -> Behind:
    found = _prefix(words, _Options("bcdegtpx", "n"))
    texts = tuple(" ".join(argv) for argv in found.argvs if UNKNOWN_WORD not in argv)
    return Behind(() if texts else found.argvs, texts, clear=found.clear and bool(texts))


def _by_text(words: Words) -> Behind:
    """su -c TEXT and the like: another user or terminal, so somebody looks; but the text is examined."""
    return Behind(_guesses(words), tuple(w for w in words if w != UNKNOWN_WORD), clear=False)


def _ip(words: Words) -> Behind | None:
    """ip netns exec and ip vrf exec, also abbreviated."""
    within = any(len(w) > 1 and ("netns".startswith(w) or "vrf".startswith(w)) for w in words)
    return _by_text(words) if within or UNKNOWN_WORD in words else None


_SHELLS_TEXT = "sh bash dash ash rbash"
_SHELLS = frozenset(_SHELLS_TEXT.split())
_OTHER_SHELLS_TEXT = "zsh ksh mksh fish csh tcsh elvish nu"
_OTHER_SHELLS = frozenset(_OTHER_SHELLS_TEXT.split())
# Build tools that run any program by a subcommand.
_RUNNERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "rye", "hatch", "conda", "mamba"), ("run",)),
    **dict.fromkeys(("bundle", "mise", "direnv"), ("exec",)),
    **dict.fromkeys(("pnpm", "yarn", "npm", "bun"), ("exec", "dlx", "x")),
    "pipx": ("run",),
}
_SUDO = _Options("AbEHinPSsk", "ugpCTrtUDh", assigns=True)
_PREFIXES = {
    "sudo": msgspec.structs.replace(_SUDO, alone="AbHnPSk"),  # -s, -i and -E change more than the user
    "doas": _Options("n", "u"),
    "nice": _Options("", "n", ("--adjustment",)),
    "ionice": _Options("t", "cn", ("--class", "--classdata")),
    "chrt": _Options("abfiorv", "TPD", skip=1),
    "taskset": _Options("a", "", skip=1),
    "nohup": _Options(),
    "timeout": _Options("v", "ks", ("--signal", "--kill-after", "--preserve-status", "--foreground"), skip=1),
    "gtimeout": _Options("v", "ks", ("--signal", "--kill-after", "--preserve-status", "--foreground"), skip=1),
    "time": _Options("pvVqa", ""),
    "setsid": _Options("cfw", "", ("--fork", "--wait", "--ctty")),
    "stdbuf": _Options("", "ioe", ("--input", "--output", "--error")),
    "strace": _Options("fFqTtrcCyv", "es"),
    "ltrace": _Options("fFqTtrcCS", "es"),
    "unbuffer": _Options("p"),
    "builtin": _Options(),
    "busybox": _Options(),
    "toybox": _Options(),
    "caffeinate": _Options("dimsu", "t"),
    "npx": _Options("y", "", ("--yes", "--no", "--no-install")),
    **dict.fromkeys(("uvx", "bunx"), _Options("q")),
}
_SPECIAL: dict[str, Callable[[Words], Behind | None]] = {
    "eval": _evaluated,
    "xargs": _xargs,
    "find": _find,
    "env": _env,
    "command": _command,
    "exec": _exec,
    "flock": _flock,
    "watch": _watch,
    **dict.fromkeys(("su", "runuser", "script", "sg", "ssh", "sshpass", "parallel", "entr"), _by_text),
    **dict.fromkeys(("tmux", "screen", "hyperfine", "concurrently", "watchexec", "nodemon", "pee", "mosh"), _by_text),
    "ip": _ip,
    **dict.fromkeys(("trap", "nsenter", "chroot", "unshare", "pkexec", "systemd-run"), _by_text),
}
_DARK_TEXT = """
coproc source . gdb valgrind perf proot fakeroot bwrap firejail rr ld.so prlimit setpriv proxychains proxychains4 tini
dumb-init numactl xvfb-run dbus-run-session dbus-launch start-stop-daemon daemonize setarch linux32 linux64 i386 x86_64
systemd-cat systemd-inhibit systemd-nspawn torsocks torify tsocks eatmydata faketime fakechroot rlwrap chronic ifne
cpulimit trickle gosu su-exec chpst setuidgid envdir dotenv cross-env capsh cgexec catchsegv run-parts
"""
_DARK = frozenset(_DARK_TEXT.split())
