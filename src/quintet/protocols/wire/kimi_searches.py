"""Arguments of Kimi's Glob and Grep as those of our searches, and back. Pure."""

from __future__ import annotations

from quintet.domain.errors import Invalid
from quintet.protocols.wire.kimi_arguments import Given, renamed

GREP_OUTPUT = {"content": "content", "files_with_matches": "files", "count_matches": "occurrences"}
_AROUND = ("before", "after", "context")
MOST_AROUND = 20
MOST_HITS = 1_000
HITS = 250  # unless said
# Types of files whose names do not end in the word for them.
_ENDINGS = {
    "python": "py",
    "rust": "rs",
    "javascript": "{js,jsx,mjs,cjs}",
    "js": "{js,jsx,mjs,cjs}",
    "ts": "{ts,tsx,mts,cts}",
    "typescript": "{ts,tsx,mts,cts}",
    "markdown": "{md,markdown}",
    "md": "{md,markdown}",
    "cpp": "{cpp,cc,cxx,h,hh,hpp}",
    "c": "{c,h}",
    "yaml": "{yaml,yml}",
    "ruby": "rb",
    "sh": "{sh,bash}",
    "html": "{html,htm}",
}

_GLOB_IN, _GLOB_OUT = renamed(
    {"pattern": "pattern", "directory": "path", "include_dirs": "directories", "limit": "limit"}
)


def glob_inward(given: Given) -> Given:
    """Kimi's globs are read from the directory on and know no ignore rules; only one that begins with ** looks
    everywhere, and leaves out what is ignored."""
    made = {"directories": True, "limit": MOST_HITS, **_GLOB_IN(given)}
    pattern = made.get("pattern")
    if not isinstance(pattern, str):
        return made
    everywhere = pattern.startswith("**")
    return made | {"pattern": pattern if "/" in pattern or everywhere else f"./{pattern}", "ignored": not everywhere}


def glob_outward(given: Given) -> Given:
    made = {name: value for name, value in _GLOB_OUT(given).items() if name in ("pattern", "directory")}
    return made | {"include_dirs": bool(given.get("directories"))}


_GREP_IN, _GREP_OUT = renamed(
    {
        "pattern": "pattern",
        "path": "path",
        "glob": "glob",
        "-i": "ignore_case",
        "-n": "numbers",
        "-A": "after",
        "-B": "before",
        "-C": "context",
        "head_limit": "limit",
        "offset": "skip",
        "multiline": "multiline",
        "include_ignored": "ignored",
    }
)


def grep_inward(given: Given) -> Given:
    mode = given.get("output_mode") or "files_with_matches"
    if not isinstance(mode, str) or mode not in GREP_OUTPUT:
        raise Invalid(f"output_mode is one of {', '.join(GREP_OUTPUT)}.")
    made: Given = {"limit": HITS, **_GREP_IN(given), "output": GREP_OUTPUT[mode]}
    kind, limit = given.get("type"), made["limit"]
    if kind and not made.get("glob"):
        made["glob"] = f"*.{_ENDINGS.get(str(kind), str(kind))}"
    if isinstance(limit, int):
        made["limit"] = min(limit, MOST_HITS) or MOST_HITS
    if mode == "files_with_matches":
        made["sort"] = "mtime"
    around = {name: min(made[name], MOST_AROUND) for name in _AROUND if isinstance(made.get(name), int)}
    return made | around  # what is no number the tool itself takes for one, or refuses


def grep_outward(given: Given) -> Given:
    made = {name: value for name, value in given.items() if name not in ("output", "sort")}
    back = {ours: theirs for theirs, ours in GREP_OUTPUT.items()} | {"count": "count_matches"}
    return _GREP_OUT(made) | {"output_mode": back.get(given.get("output", "content"), "content")}
