"""The tool `read`: lines of a text file or an image, with honest words about everything it leaves out."""

from __future__ import annotations

import io
import os
from functools import partial
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from quintet.domain.errors import Invalid
from quintet.domain.item import MediaKind, ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, failed
from quintet.tools.looking import brief, look, prepared_look
from quintet.workspace.files import TEXT_LIMIT, open_regular
from quintet.workspace.kinds import LARGEST, as_part, binary_kind, media_kind
from quintet.workspace.paths import PathGuard, Place
from quintet.workspace.seen import Seen

LINES = 2_000
CHARACTERS = 60_000
LINE_LENGTH = 2_000
SCAN_LIMIT = 64 * 1024 * 1024  # bytes gone through in search of a first line
SNIFF = 8_192
_NOUNS = {
    MediaKind.IMAGE: ("an image", "image", "images"),
    MediaKind.AUDIO: ("a recording", "recording", "sound"),
    MediaKind.VIDEO: ("a video", "video", "videos"),
}

SPEC = ToolSpec(
    "read",
    "Read a text file of the workspace. Returns its lines as they are; at most 2000 lines at once. "
    "For a longer file name the first line and how many you want. A PNG, JPEG, GIF or WebP image is shown to you, "
    "and so is a video or a sound recording where you can take it.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
            "from_line": {
                "type": "integer",
                "description": "The first line to read, from 1; -1 is the last one, -100 the hundredth from the end.",
            },
            "lines": {"type": "integer", "minimum": 1, "maximum": LINES, "description": "How many lines to read."},
            "numbered": {"type": "boolean", "description": "Put its number and a tab in front of each line."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadArguments(Arguments, frozen=True):
    path: str
    from_line: Annotated[int, Meta(ge=-SCAN_LIMIT)] = 1
    lines: Annotated[int, Meta(ge=1, le=LINES)] = LINES
    numbered: bool = False


class ReadTool:
    def __init__(self, guard: PathGuard, seen: Seen) -> None:
        self._guard = guard
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("read", arguments, ReadArguments)
        if given.from_line == 0:
            raise Invalid("read: lines count from 1, or from -1 at the end.")
        return await prepared_look("read", given, given.path, scope, self._guard)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("read", prepared.arguments, ReadArguments)
        told = partial(self._read, given, context)
        return await look(given.path, prepared.cwd, self._guard, told, context.directories)

    def _read(self, given: ReadArguments, context: ToolContext, place: Place) -> ToolOutcome:
        try:
            handle = open_regular(place)
        except FileNotFoundError:
            return failed(f"There is no file {place.shown}.")
        with os.fdopen(handle, "rb") as file:
            size = os.fstat(handle).st_size
            start = file.read(SNIFF)
            if media := media_kind(start):
                kind, media_type = media
                if kind is not MediaKind.IMAGE and not context.takes(kind):  # of an image it is told by its wire
                    return _not_taken(place, kind, media_type, size)
                return _media(place, kind, media_type, start + file.read(LARGEST[kind]), size)
            if b"\0" in start:
                binary = binary_kind(start)
                shown = f"{place.shown} is a binary file{f' ({binary})' if binary else ''} of {size} bytes"
                return failed(f"{shown}; it cannot be read as text.")
            file.seek(0)
            if size > TEXT_LIMIT:  # too large to be edited, so nobody asks later whether it was seen
                return _lines(place, given, file, size)
            content = file.read(TEXT_LIMIT + 1)
        told = _lines(place, given, io.BytesIO(content), len(content))
        if told.status is ResultStatus.OK:
            self._seen.note(context.thread, place.path, content)
        return told


def _media(place: Place, kind: MediaKind, media_type: str, data: bytes, size: int) -> ToolOutcome:
    one, noun, _ = _NOUNS[kind]
    if len(data) > LARGEST[kind]:
        limit = f"{LARGEST[kind] // 1024 // 1024} MiB"
        return failed(f"{place.shown} is {one} ({media_type}) of {size} bytes; at most {limit} can be shown.")
    words = f"{noun} {place.shown}: {media_type}, {len(data)} bytes"
    return ToolOutcome(f"[{words}]", message=words, display=brief(words), images=(as_part(kind, media_type, data),))


def _not_taken(place: Place, kind: MediaKind, media_type: str, size: int) -> ToolOutcome:
    one, _, many = _NOUNS[kind]
    words = f"{place.shown} is {one} ({media_type}) of {size} bytes, and the model in use takes no {many}."
    return failed(f"{words} Tell the person that another model is needed for it.")


class _Taken(msgspec.Struct):
    """Lines of a file, and what is known of those around them."""

    lines: list[str]
    first: int
    cut: list[int]  # numbers of lines that are too long to be shown whole
    full: bool = False  # more characters than are shown at once
    total: int | None = None  # lines of the file; None where nobody counts them


def _lines(place: Place, given: ReadArguments, file: BinaryIO, size: int) -> ToolOutcome:
    total = _counted(file) if size <= SCAN_LIMIT else None
    first = given.from_line
    if first < 0:
        if total is None:
            return failed(f"{place.shown} is too long to be read from its end: name a line from its beginning.")
        first = max(1, total + first + 1)
    file.seek(0)
    scanned = 0
    for _ in range(1, first):
        scanned += len(raw := file.readline(SCAN_LIMIT))
        if not raw:
            break
        if scanned > SCAN_LIMIT:
            return failed(f"Line {first} of {place.shown} lies too deep in the file to be read.")
    return _told(place, given, _taken(given, file, first, total), size)


def _counted(file: BinaryIO) -> int:
    file.seek(0)
    lines, last = 0, b"\n"
    while piece := file.read(1 << 20):
        lines, last = lines + piece.count(b"\n"), piece[-1:]
    return lines + (last != b"\n")


def _taken(given: ReadArguments, file: BinaryIO, first: int, total: int | None) -> _Taken:
    """As many as are wanted and shown at once. Who counts from the end wants the last of them, else the first."""
    taken = _Taken([], first, [], total=total)
    characters = 0
    for number in range(first, first + given.lines):
        if characters >= CHARACTERS and given.from_line > 0:
            taken.full = total is None or number <= total
            break
        raw = file.readline(SCAN_LIMIT)
        if not raw:
            break
        line = raw.decode("utf-8", "replace")
        if len(line) > LINE_LENGTH:
            line = line[:LINE_LENGTH] + "…\n"
            taken.cut.append(number)
        taken.lines.append(line)
        characters += len(line)
    while characters > CHARACTERS and given.from_line < 0:
        characters -= len(taken.lines.pop(0))
        taken.first, taken.full = taken.first + 1, True
    if total is None and not file.read(1):
        taken.total = taken.first + len(taken.lines) - 1
    return taken


def _told(place: Place, given: ReadArguments, taken: _Taken, size: int) -> ToolOutcome:
    lines, first, total = taken.lines, taken.first, taken.total
    last = first + len(lines) - 1
    facts = {"first": first, "lines": len(lines), "total": total, "cut": taken.cut, "full": taken.full}
    if not lines:
        if first > 1:
            return replace(failed(f"{place.shown} has only {total} line{'s' if total != 1 else ''}."), facts=facts)
        shown = brief(f"{place.shown} is empty")
        return ToolOutcome(f"[{place.shown} is empty]", message="empty file", display=shown, facts=facts)
    text = "".join(f"{n:6d}\t{line}" for n, line in enumerate(lines, first)) if given.numbered else "".join(lines)
    notes: list[str] = []
    of = f"of {total}" if total is not None else f"of a file of {size} bytes"
    if total is None or last < total:
        notes.append(f"lines {first}-{last} {of}; read on with from_line={last + 1}")
    elif given.from_line < 0:
        notes.append(f"lines {first}-{last} {of}")
    if taken.cut:
        notes.append(f"lines longer than {LINE_LENGTH} characters are cut at the …")
    if "\ufffd" in text:
        notes.append("some bytes are not UTF-8 and are shown as \ufffd")
    told = "".join(f"\n[{note}]" for note in notes)
    if told and not text.endswith("\n"):
        told = "\n" + told
    count = f"{len(lines)} line{'s' if len(lines) != 1 else ''} of {place.shown}"
    text = text + told.removeprefix("\n") if told else text
    return ToolOutcome(text, message=count, display=brief(count), facts=facts)
