"""A change of one file, between what was shown and what is done: the heart `write` and `edit` share. Blocking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import Prepared, ToolOutcome
from quintet.tools.arguments import digest, failed, one_line, os_words, plain
from quintet.workspace.diffs import hunks, unified_diff
from quintet.workspace.files import read_text, replace_bytes
from quintet.workspace.paths import Place
from quintet.workspace.seen import Seen


class Change(msgspec.Struct, frozen=True):
    place: Place
    before: str | None  # None: there is no file yet
    after: str
    words: str  # what is said when it is done
    replaced: int = 0  # how often a text was put in another's place


def text_at(place: Place) -> str | None:
    """What stands there now; None when nothing does. Everything that keeps it from being changed as text is Invalid."""
    try:
        return read_text(place)
    except OSError as error:
        raise Invalid(os_words(error, place.shown)) from error


def prepared_change(tool: str, given: msgspec.Struct, cwd: str, change: Change) -> Prepared:
    normal = plain(given)
    return Prepared(
        title=one_line(f"{tool} {change.place.shown}"),
        arguments=normal,
        cwd=cwd,
        paths=(change.place.path,),
        diff=unified_diff(change.before, change.after, change.place.shown),
        digest=_digest(tool, normal, cwd, change),
    )


def carry_out(tool: str, change_now: Callable[[], Change], prepared: Prepared, seen: Seen, thread: str) -> ToolOutcome:
    """Do what was prepared. Drifted, and nothing done, when it would now be another change than the one shown."""
    with seen.changing:
        try:
            change = change_now()
        except Invalid as error:
            # What could be prepared and cannot be done was changed in between.
            return failed(f"{error.message} It has changed since this was prepared; nothing was written.")
        place = change.place
        if _digest(tool, prepared.arguments, prepared.cwd, change) != prepared.digest:
            raise Drifted(f"{place.shown} has changed since this was prepared; nothing was written.")
        content = change.after.encode()
        if change.before != change.after:
            try:
                replace_bytes(place, content)
            except Invalid as error:
                return failed(error.line(), error.message)
            except OSError as error:
                return failed(os_words(error, place.shown))
        seen.note(thread, place.path, content)
    if change.before == change.after:
        return ToolOutcome(f"{place.shown} already holds exactly this; nothing was written.", message="no change")
    return _told(change, prepared.diff)


def _told(change: Change, diff: str) -> ToolOutcome:
    place = change.place
    size = len(change.after.encode())
    body = diff.split("\n")[2:]
    plus, minus = (sum(line.startswith(mark) for line in body) for mark in "+-")
    shown = {"type": "diff", "path": place.path, "hunks": hunks(change.before, change.after), "bytes": size}
    return ToolOutcome(
        change.words,
        ResultStatus.OK,
        message=f"{place.shown} (+{plus} -{minus})",
        display=(shown | {"replaced": change.replaced} if change.replaced else shown,),
        changed_files=(place.path,),
        diff=diff,
    )


def _digest(tool: str, arguments: dict[str, Any], cwd: str, change: Change) -> str:
    """Bound to the file's place and content too: an approved diff holds only for the file it was computed from."""
    before = "absent" if change.before is None else digest("content", {}, "", change.before)
    return digest(tool, arguments, cwd, change.place.path, before)
