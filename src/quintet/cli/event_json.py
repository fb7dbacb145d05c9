"""Events as lines of JSON: the versioned form of `--json`. One frame per event, its public number as cursor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from quintet.domain.cursor import FRAMES_PER_EVENT, public_number
from quintet.domain.event import Delta, Event, Gap, InteractionRequested
from quintet.domain.interaction import Approval, Interaction
from quintet.domain.shown import shown

VERSION = 1


def event_line(entry: Event | Gap) -> bytes:
    if isinstance(entry, Gap):
        first, last = gap_cursors(entry)
        return encode_line({"v": VERSION, "kind": "gap", "from": first, "to": last, "signals": entry.signals})
    payload: Any = entry.payload
    if isinstance(payload, Delta):
        payload = msgspec.structs.asdict(payload)
    elif isinstance(payload, InteractionRequested):
        payload = {"interaction": interaction_json(payload.interaction)}
    line = {
        "v": VERSION,
        "cursor": public_number(entry.seq),
        "id": entry.id,
        "kind": entry.kind,
        "at": iso(entry.at_ms),
        "thread": entry.thread,
        "turn": entry.turn,
        "payload": payload,
    }
    if entry.damaged:
        line["damaged"] = True
    return encode_line(line)


def interaction_json(interaction: Interaction) -> dict[str, Any]:
    """The request as it is, and beside it the texts as a person should read them."""
    line: dict[str, Any] = msgspec.to_builtins(interaction)
    request = interaction.request
    if isinstance(request, Approval):
        names = ("title", "command", "cwd", "diff", "plan")
        texts = {name: getattr(request, name) for name in names}
        line["request"]["shown"] = {name: shown(text) for name, text in texts.items() if text}
    return line


def gap_cursors(gap: Gap) -> tuple[int, int]:
    """The first and the last cursor of what is no longer kept."""
    return public_number(gap.from_seq), public_number(gap.to_seq, FRAMES_PER_EVENT - 1)


def encode_line(value: Any) -> bytes:
    """JSON whose every control character is escaped, also those that JSON itself lets through."""
    return escaped(msgspec.json.encode(value)) + b"\n"


def escaped(json: bytes) -> bytes:
    """The same JSON with nothing in it that a terminal would obey; newlines between lines stay."""
    return "".join(c if c.isprintable() or c in " \n" else _escape(c) for c in json.decode()).encode()


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _escape(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
