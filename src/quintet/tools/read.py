"""The tool `read`: lines of a text file or an image, with honest words about everything it leaves out."""

from __future__ import annotations

import io
import os
from functools import partial
from typing import Annotated, Any, BinaryIO

from msgspec import Meta

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
    "Read a text file of the workspace. Returns its lines as they are, without numbers; at most 2000 lines at once. "
    "For a longer file name the first line and how many you want. A PNG, JPEG, GIF or WebP image is shown to you, "
    "and so is a video or a sound recording where you can take it.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
            "lines": {"type": "integer", "minimum": 1, "maximum": LINES, "description": "How many lines to read."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadArguments(Arguments, frozen=True):
    path: str
    from_line: Annotated[int, Meta(ge=1)] = 1
    lines: Annotated[int, Meta(ge=1, le=LINES)] = LINES


class ReadTool:
    def __init__(self, guard: PathGuard, seen: Seen) -> None:
        self._guard = guard
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("read", arguments, ReadArguments)
        return await prepared_look("read", given, given.path, scope, self._guard)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("read", prepared.arguments, ReadArguments)
        return await look(given.path, prepared.cwd, self._guard, partial(self._read, given, context))

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


def _lines(place: Place, given: ReadArguments, file: BinaryIO, size: int) -> ToolOutcome:
    lines: list[str] = []
    number = scanned = characters = 0
    cut = more = False
    for raw in iter(lambda: file.readline(SCAN_LIMIT), b""):
        number += 1
        scanned += len(raw)
        if number < given.from_line:
            if scanned > SCAN_LIMIT:
                return failed(f"Line {given.from_line} of {place.shown} lies too deep in the file to be read.")
            continue
        if len(lines) >= given.lines or characters >= CHARACTERS:
            more = True
            break
        line = raw.decode("utf-8", "replace")
        if len(line) > LINE_LENGTH:
            line, cut = line[:LINE_LENGTH] + "…\n", True
        lines.append(line)
        characters += len(line)
    return _told(place, given, lines, last=number - more, size=size, more=more, cut=cut)


def _told(
    place: Place, given: ReadArguments, lines: list[str], *, last: int, size: int, more: bool, cut: bool
) -> ToolOutcome:
    if not lines:
        if given.from_line > 1:
            return failed(f"{place.shown} has only {last} lines.")
        return ToolOutcome(f"[{place.shown} is empty]", message="empty file", display=brief(f"{place.shown} is empty"))
    text = "".join(lines)
    notes: list[str] = []
    if more:
        notes.append(f"lines {given.from_line}-{last} of a file of {size} bytes; read on with from_line={last + 1}")
    if cut:
        notes.append(f"lines longer than {LINE_LENGTH} characters are cut at the …")
    if "\ufffd" in text:
        notes.append("some bytes are not UTF-8 and are shown as \ufffd")
    told = "".join(f"\n[{note}]" for note in notes)
    if told and not text.endswith("\n"):
        told = "\n" + told
    count = f"{len(lines)} line{'s' if len(lines) != 1 else ''} of {place.shown}"
    return ToolOutcome(text + told.removeprefix("\n") if told else text, message=count, display=brief(count))
