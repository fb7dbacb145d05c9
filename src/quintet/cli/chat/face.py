"""Face: what a conversation needs of a terminal. Two play it: the panel, and plain lines for what can do no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quintet.cli.styled import Line


class Talk(Protocol):
    """What a face tells the conversation."""

    def submit(self, text: str) -> None: ...
    def interrupt(self) -> None:
        """Ctrl-C, with nothing typed that it could mean."""

    def leave(self) -> None: ...
    def live(self) -> list[Line]: ...
    def status(self) -> str: ...

    @property
    def running(self) -> bool: ...


class Face(Protocol):
    def write(self, lines: Sequence[Line]) -> None:
        """Above everything that moves, for good."""

    def width(self) -> int: ...
    def refresh(self) -> None:
        """What is live has changed."""

    def ask(self, label: str) -> None:
        """What is typed now answers a request; with no label it does not any more. What was typed before is kept."""

    async def run(self, talk: Talk) -> None:
        """Until it is closed. The terminal is what it was before when this returns, however it returns."""

    def close(self) -> None: ...
