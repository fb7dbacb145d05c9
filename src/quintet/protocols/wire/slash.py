"""Slash commands: a text that begins with `/name` may mean one of these instead of words for the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from quintet.protocols.wire.models import SlashCommandInfo

if TYPE_CHECKING:
    from quintet.protocols.wire.running import Running

# Runs inside the prompt that named it, with the words behind its name.
Run = Callable[["Running", str], Awaitable[None]]


class SlashCommand(Struct, frozen=True):
    name: str
    description: str
    run: Run
    aliases: tuple[str, ...] = ()


class SlashCommands:
    """What a client may offer and what its texts are compared with."""

    def __init__(self, commands: Iterable[SlashCommand] = ()) -> None:
        self._commands = {command.name: command for command in commands}
        self._names = {name: c for c in self._commands.values() for name in (c.name, *c.aliases)}

    def infos(self) -> list[SlashCommandInfo]:
        return [SlashCommandInfo(c.name, c.description, list(c.aliases)) for c in self._commands.values()]

    def find(self, text: str) -> tuple[SlashCommand, str] | None:
        """The command a text names, and the rest of it."""
        if not text.startswith("/"):
            return None
        name, _, words = text[1:].partition(" ")
        command = self._names.get(name.strip())
        return (command, words.strip()) if command else None
