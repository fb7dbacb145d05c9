"""Commands whose words do not tell what they do: code for an interpreter, options that name programs, builtins that
change what the rest of the line means. Pure. A hint list: what is missing here is still asked or covered word by word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from quintet.domain.ports import UNKNOWN_WORD
from quintet.workspace.shell_parsing.variables import harmless_in_shell
from quintet.workspace.shell_parsing.wrappers import program_name

Words = Sequence[str]

# Change the shell itself, or evaluate what they are given.
_STATEFUL_TEXT = """
alias unalias bind compgen complete compopt declare typeset dirs enable fc getopts hash history let local mapfile
readarray popd pushd readonly set shopt shift suspend times ulimit umask caller disown logout return
"""
_STATEFUL = frozenset(_STATEFUL_TEXT.split())
_KEYWORDS_TEXT = "if then elif else fi for while until do done case esac in select function { } ! [[ ]] coproc time"
_KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
_ASKS_ONLY = frozenset({"--version", "--help", "-V", "-h", "-v"})
# Options by which an otherwise plain program runs others or evaluates what it is given.
_RUNS_BY_OPTION: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("python", "pypy"), ("-c",)),
    **dict.fromkeys(("perl", "ruby", "lua", "luajit"), ("-e", "-E")),
    **dict.fromkeys(("node", "nodejs", "bun", "deno", "tsx"), ("-e", "-p", "--eval", "--print", "-r", "--require")),
    **dict.fromkeys(("pwsh", "powershell"), ("-c", "-e", "-Command", "-EncodedCommand")),
    "php": ("-r", "-B", "-R", "-E"),
    "printf": ("-v",),
    "wait": ("-p",),
    "git": (
        *("-c", "--exec-path", "--config-env", "--upload-pack", "--receive-pack", "--ext-diff", "--exec"),
        *("--open-files-in-pager", "--textconv", "--config", "--template", "--output"),
    ),
    "tar": (
        "--to-command",
        "--checkpoint-action",
        "-I",
        "--use-compress-program",
        "--rsh-command",
        "-F",
        "--info-script",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    **dict.fromkeys(("scp", "sftp"), ("-S", "-o")),
    "sort": ("--compress-program",),
    "man": ("-P", "--pager", "-H"),
    "zip": ("-TT", "--unzip-command"),
    "make": ("--eval", "-E", "SHELL=", "MAKE="),
    "cargo": ("--config",),
    "go": ("-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool"),
    "split": ("--filter",),
    "install": ("--strip-program",),
    "cmake": ("-P", "-E"),
    "tcpdump": ("-z",),
    **dict.fromkeys(("fd", "fdfind"), ("-x", "-X", "--exec", "--exec-batch")),
    **dict.fromkeys(("nc", "ncat", "netcat"), ("-e", "-c", "--exec", "--sh-exec", "--lua-exec")),
    **dict.fromkeys(("bat", "batcat", "delta", "ag"), ("--pager",)),
    "rg": ("--pre", "--hostname-bin"),
    "test": ("-v", "-R"),
}
# Exact spelling only: a bundle of letters that holds one of these means nothing here.
_NO_BUNDLES = frozenset({"git", "zip", "go", "test", "cargo", "rg", "make", "sort", "cmake"})
# Whole names of their own that also begin one of the options above.
_NO_ABBREVIATIONS = frozenset({"--text", "--checkpoint"})
_GIT_RUNS = frozenset({"bisect", "submodule", "filter-branch", "difftool", "mergetool", "send-email", "daemon"})
_GIT_CONFIG_READS = frozenset({"--get", "--list", "-l", "get", "list", "--get-all", "--get-regexp"})
_GIT_CONFIG_WHERE = frozenset({"--global", "--local", "--system", "--worktree", "--show-origin", "--show-scope", "-z"})
_GIT_RUNS_BY = {"rebase": "-x", "grep": "-O", "clone": "-u", "ls-remote": "-u"}
_READ_CODE_TEXT = "python pypy perl ruby node nodejs lua luajit php bun deno pwsh tclsh expect osascript"
_READ_CODE = frozenset(_READ_CODE_TEXT.split())
_ALWAYS_TEXT = """
awk gawk mawk nawk bc dc ed m4 sqlite3 psql mysql irb ipython iex ghci scala jshell vi vim nvim ex emacs nano at
batch crontab socat pwsh powershell
"""
_ALWAYS = frozenset(_ALWAYS_TEXT.split())
_SED_OPTIONS = re.compile(
    r"-[nEerisz]+|--(quiet|silent|regexp-extended|in-place|null-data|separate|posix|debug|sandbox)"
)
_SED_LINES = re.compile(r"(\d+|\$)?(,(\d+|\$))?[pdq=]?|/[\w .:#-]*/[pd]")
_SED_SUBSTITUTE = re.compile(r"(\d+|\$)?(,(\d+|\$))?s([/|#,:!])((?!\4)[^\\\n]|\\.)*\4((?!\4)[^\\\n]|\\.)*\4[gpiI0-9]*")


def opaque(argv: Words) -> bool:
    """Whether the command's words leave open what it does."""
    word, name = argv[0], program_name(argv[0])
    if not name or "=" in word or word.startswith(("%", "-", "+")) or word in _STATEFUL or word in _KEYWORDS:
        return word != "time"
    if name in _ALWAYS or word.rsplit("/", 1)[-1].lower() in _ALWAYS:
        return True
    if _holds_any(argv[1:], _RUNS_BY_OPTION.get(name, ()), bundles=name not in _NO_BUNDLES):
        return True
    if name in _READ_CODE and not any(w in _ASKS_ONLY for w in argv[1:]):
        return not _script_given(argv[1:])
    check = _CHECKS.get(name)
    return check is not None and check(argv[1:])


def _holds_any(words: Words, options: tuple[str, ...], *, bundles: bool) -> bool:
    """Short options also count in a bundle (-Ic) and with their value glued on (-cpager=x)."""
    for word in words:
        for option in options:
            if word == option or word.startswith(option if option.endswith("=") else option + "="):
                return True
            if _abbreviates(word.partition("=")[0], option):
                return True
            short = len(option) == 2 and word.startswith("-") and not word.startswith("--")
            if short and (word.startswith(option) or (bundles and option[1] in word)):
                return True
    return False


def _abbreviates(name: str, option: str) -> bool:
    """Most programs take a long option by its first letters as well."""
    return len(name) > 2 and name.startswith("--") and option.startswith(name) and name not in _NO_ABBREVIATIONS


def _script_given(words: Words) -> bool:
    """An interpreter with a file or module to run; without one it reads its code from somewhere."""
    for n, word in enumerate(words):
        if word == "-m":
            return n + 1 < len(words) and words[n + 1] != UNKNOWN_WORD
        if word in ("-", UNKNOWN_WORD):
            return False
        if not word.startswith("-"):
            return not word.startswith("/dev/")
    return False


def _git(words: Words) -> bool:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "--git-dir", "--work-tree") else rest[1:]
    if not rest or rest[0] == UNKNOWN_WORD:
        return bool(rest)
    if any("::" in w.partition("/")[0] for w in rest[1:]):
        return True  # ext::COMMAND and other helpers in the place of an address
    if rest[0] == "config":
        asked = [w for w in rest[1:] if w not in _GIT_CONFIG_WHERE]
        return not asked or asked[0] not in _GIT_CONFIG_READS
    option = _GIT_RUNS_BY.get(rest[0], "")
    return rest[0] in _GIT_RUNS or bool(option and any(w.startswith(option) for w in rest[1:]))


def _sed(words: Words) -> bool:
    """Only prints, deletions and plain substitutions are read; w, e, r and F are not. Options also follow files."""
    scripts, operands, rest = [], [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if not word.startswith("-") or len(word) == 1:
            operands.append(word)
        elif word in ("-e", "-ne", "-ie", "-Ee", "-re") and rest:
            scripts.append(rest.pop(0))
        elif not _SED_OPTIONS.fullmatch(word) or ("e" in word and not word.startswith("--")):
            return True
    if not scripts:
        scripts = operands[:1]
    parts = [part.strip() for script in scripts for part in ([script] if "s" in script else script.split(";"))]
    return not parts or not all(_SED_LINES.fullmatch(p) or _SED_SUBSTITUTE.fullmatch(p) for p in parts)


def _read(words: Words) -> bool:
    names = [w for w in words if not w.startswith("-")]
    options = [w for w in words if w.startswith("-")]
    return any(w != "-r" for w in options) or not all(harmless_in_shell(w) for w in names)


def _unset(words: Words) -> bool:
    return not all(harmless_in_shell(w) for w in words)


_CHECKS: dict[str, Callable[[Words], bool]] = {"git": _git, "sed": _sed, "read": _read, "unset": _unset}
