"""The tool `read`: lines of a text file, with honest words about everything it leaves out."""

from __future__ import annotations

import os
from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.files import on_disk, open_regular
from quintet.workspace.paths import PathGuard, Place

LINES = 2_000
CHARACTERS = 60_000
LINE_LENGTH = 2_000
SCAN_LIMIT = 64 * 1024 * 1024  # bytes gone through in search of a first line
SNIFF = 8_192

SPEC = ToolSpec(
    "read",
    "Read a text file of the workspace. Returns its lines as they are, without numbers; at most 2000 lines at once. "
    "For a longer file name the first line and how many you want.",
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
    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("read", arguments, ReadArguments)
        place = self._guard.reading(given.path, scope.cwd)
        normal = plain(given)
        return Prepared(
            title=one_line(f"read {place.shown}"),
            arguments=normal,
            cwd=scope.cwd,
            paths=(place.path,),
            digest=digest("read", normal, scope.cwd),
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("read", prepared.arguments, ReadArguments)
        try:
            place = self._guard.reading(given.path, prepared.cwd)
            return await on_disk(_read, place, given)
        except FileNotFoundError:
            return failed(f"There is no file {given.path}.")
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))


def _read(place: Place, given: ReadArguments) -> ToolOutcome:
    with os.fdopen(open_regular(place), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(SNIFF)
        if b"\0" in start:
            return failed(f"{place.shown} is a binary file{_kind(start)} of {size} bytes; it cannot be read as text.")
        file.seek(0)
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
        return ToolOutcome(f"[{place.shown} is empty]", message="empty file")
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
    count = f"{len(lines)} line{'s' if len(lines) != 1 else ''}"
    return ToolOutcome(text + told.removeprefix("\n") if told else text, message=f"{count} of {place.shown}")


def _kind(start: bytes) -> str:
    known = {
        b"\x89PNG": "PNG",
        b"\xff\xd8\xff": "JPEG",
        b"GIF8": "GIF",
        b"%PDF": "PDF",
        b"\x7fELF": "ELF",
        b"PK": "zip",
    }
    return next((f" ({name})" for magic, name in known.items() if start.startswith(magic)), "")
