"""A change of one file, between what was shown and what is done: the heart `write` and `edit` share. Blocking."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.item import ResultStatus
from quintet.domain.tool import Prepared, ToolOutcome
from quintet.tools.arguments import digest, failed, os_words
from quintet.workspace.diffs import unified_diff
from quintet.workspace.files import replace_text
from quintet.workspace.paths import Place


class Change(msgspec.Struct, frozen=True):
    place: Place
    before: str | None  # None: there is no file yet
    after: str

    def diff(self) -> str:
        return unified_diff(self.before, self.after, self.place.shown)


def digest_of(tool: str, arguments: dict[str, Any], cwd: str, change: Change) -> str:
    """Bound to the file's place and content too: an approved diff holds only for the file it was computed from."""
    before = "absent" if change.before is None else digest("content", {}, "", change.before)
    return digest(tool, arguments, cwd, change.place.path, before)


def apply_change(tool: str, change: Change, prepared: Prepared, words: str) -> ToolOutcome:
    """Do what was prepared, or nothing if the file is not what it was then."""
    shown = change.place.shown
    if digest_of(tool, prepared.arguments, prepared.cwd, change) != prepared.digest:
        return failed(f"{shown} has changed since this was prepared; nothing was written. Read it again first.")
    if change.before == change.after:
        return ToolOutcome(f"{shown} already holds exactly this; nothing was written.", message="no change")
    try:
        replace_text(change.place, change.after)
    except OSError as error:
        return failed(os_words(error, shown))
    diff = prepared.diff
    plus, minus = _counts(diff)
    return ToolOutcome(
        words,
        ResultStatus.OK,
        message=f"{shown} (+{plus} -{minus})",
        display=({"type": "diff", "path": change.place.path, "diff": diff},),
        changed_files=(change.place.path,),
        diff=diff,
    )


def _counts(diff: str) -> tuple[int, int]:
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)
