"""What all tools do with what a model sends: check it by type, bind it to a digest, show it on one line."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import ToolOutcome

T = TypeVar("T", bound=msgspec.Struct)
TITLE_LENGTH = 120


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arguments of one tool. An unknown one is refused: silence about it would let the model believe it counts."""


def checked(tool: str, arguments: dict[str, Any], form: type[T]) -> T:
    """The arguments as the tool's own type; Invalid says in the model's words what is wrong with which."""
    try:
        return msgspec.convert(arguments, form, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(f"{tool}: {str(error).replace('`$.', '`')}.") from error


def plain(arguments: msgspec.Struct) -> dict[str, Any]:
    """Back to what is stored and shown."""
    made: dict[str, Any] = msgspec.to_builtins(arguments)
    return made


def digest(tool: str, arguments: dict[str, Any], cwd: str, *more: str) -> str:
    """What an approval is bound to: exactly this call, here, on top of what `more` names."""
    from hashlib import sha256

    return sha256(msgspec.json.encode([tool, arguments, cwd, *more], order="deterministic")).hexdigest()


def one_line(text: str, limit: int = TITLE_LENGTH) -> str:
    """For titles: nothing in it moves a cursor or turns the reading direction, and what was cut is seen to be cut."""
    shown = text
    if not text.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def failed(text: str, message: str = "") -> ToolOutcome:
    return ToolOutcome(text, ResultStatus.ERROR, message or one_line(text))


def os_words(error: OSError, shown: str) -> str:
    return f"{shown}: {error.strerror or type(error).__name__}."
