"""Commands a person types at the head of an input: `/clear`, `/compact keep the plan`, `/flow:review`.

What there is and what a text means; each protocol carries them out in its own order of events. Not the commands of a
turn's inbox, and no shell.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from quintet.engine.flows import FlowToRun

_CALL = re.compile(r"\s*/([A-Za-z0-9_-]+(?::[A-Za-z0-9._-]+)*)(?:\s+|$)(.*)", re.DOTALL)

INIT = (
    "Get to know this project: what it is for, how it is laid out, how it is built, run and tested, and which habits "
    "its code and its people have. Look at the files themselves and take nothing for granted. Then write what an agent "
    "who has never seen the project needs to work in it well into the file AGENTS.md at its root: short, exact, in the "
    "language of the project's own documentation. If there is such a file already, keep what is right in it."
)


class Deed(StrEnum):
    """What carrying out a command means."""

    ASK = "ask"  # its words go to the model as an input
    CLEAR = "clear"
    COMPACT = "compact"
    PLAN = "plan"
    YOLO = "yolo"
    AFK = "afk"
    ADD_DIR = "add-dir"
    EXPORT = "export"
    IMPORT = "import"
    FLOW = "flow"  # its chart is walked, each node an input of its own
    HELP = "help"
    ASIDE = "aside"


async def _nothing(words: str) -> str:
    return words


class Named(msgspec.Struct, frozen=True):
    name: str
    description: str
    deed: Deed
    aliases: tuple[str, ...] = ()
    input: Callable[[str], Awaitable[str]] = _nothing  # of Deed.ASK: what the model is told, with the words behind it
    flow: Callable[[], Awaitable[FlowToRun]] | None = None  # of Deed.FLOW


async def _init(words: str) -> str:
    return f"{INIT}\n\n{words}" if words else INIT


BUILT_IN = (
    Named("init", "Look at the project and write an AGENTS.md for it", Deed.ASK, input=_init),
    Named("compact", "Summarise the older part of the conversation; words behind it say what matters", Deed.COMPACT),
    Named("clear", "Let the model begin afresh, with nothing of the conversation", Deed.CLEAR, ("reset",)),
    Named("plan", "Plan without changing anything: on, off, or the other one; view or clear the last plan", Deed.PLAN),
    Named("yolo", "Let actions be done without being asked about, or end that", Deed.YOLO),
    Named("afk", "As /yolo, and questions of the model are dismissed, since nobody is there; or end that", Deed.AFK),
    Named("add-dir", "Let a directory be worked in beside this one; alone it lists them", Deed.ADD_DIR),
    Named("export", "Write the conversation as Markdown, into the working directory or where you say", Deed.EXPORT),
    Named("import", "Give the model a text file, or what was said in another session", Deed.IMPORT),
    Named("btw", "Ask something beside the work: nothing of it is kept, and no tool is used", Deed.ASIDE),
    Named("help", "List these commands", Deed.HELP),
)


class Called(msgspec.Struct, frozen=True):
    """A text that means a command; without one, nobody knows this name."""

    name: str
    words: str
    command: Named | None


class Commands:
    """`more` gives those that come and go, skills say; asked anew each time."""

    def __init__(self, more: Callable[[], Sequence[Named]] = tuple, built_in: Sequence[Named] = BUILT_IN) -> None:
        self._more = more
        self._built_in = tuple(built_in)

    def all(self) -> tuple[Named, ...]:
        taken = {name for command in self._built_in for name in (command.name, *command.aliases)}
        return (*self._built_in, *(command for command in self._more() if command.name not in taken))

    def meant(self, text: str) -> Called | None:
        """None when the text is no command at all: a path at its head is not one."""
        found = _CALL.match(text)
        if found is None:
            return None
        name, words = found[1], found[2].strip()
        return Called(name, words, next((c for c in self.all() if name in (c.name, *c.aliases)), None))


def listed(commands: Sequence[Named]) -> str:
    return "\n".join(f"/{c.name}  {c.description}" for c in commands)
