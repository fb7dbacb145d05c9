"""Leave: how freely the turns of one client act, as its person says while it is connected.

A word of the moment. Nothing keeps it: nobody gets leave by writing it into a file, and nobody else has it.
"""

from __future__ import annotations

from quintet.domain.turn import Mode, strictest

BOUND = "config.toml has [policy] mode = {mode}, which goes first"
ALONE = "Nobody is at hand in this turn. Ask nothing; where you would ask, decide yourself and say what you chose."


class Leave:
    """`yolo`: nothing is asked. `afk`: nobody is there either, so questions are dismissed at once. `bound` is what
    the person's configuration allows at most."""

    def __init__(self, bound: Mode | None = None, *, yolo: bool = False, afk: bool = False) -> None:
        self._bound = bound
        self.yolo = yolo
        self.afk = afk

    @property
    def mode(self) -> Mode:
        return strictest(Mode.ALLOW if self.yolo or self.afk else Mode.ASK, self._bound)

    @property
    def told(self) -> str:
        """To the model."""
        return ALONE if self.afk else ""

    def shown(self) -> dict[str, bool]:
        return {"yolo": self.yolo, "afk": self.afk}

    def toggle_yolo(self) -> str:
        """The other one; what to say of it."""
        self.yolo = not self.yolo
        if self.yolo:
            return f"Yolo is on: {self._allowed()}."
        if self.afk:
            return f"Yolo is off, but afk is on: {self._allowed()}. /afk turns it off."
        return f"Yolo is off: {self._asked()}."

    def toggle_afk(self) -> str:
        self.afk = not self.afk
        if self.afk:
            return f"Afk is on: questions of the model are dismissed, and {self._allowed()}."
        if self.yolo:
            return "Afk is off: questions reach you again. Yolo is still on."
        return f"Afk is off: questions reach you again, and {self._asked()}."

    def _allowed(self) -> str:
        if self.mode is not Mode.ALLOW:
            return f"but that cannot be had, {self._asked()} ({BOUND.format(mode=self.mode)})"
        return "actions are no longer asked about, but for those that a rule of yours asks about"

    def _asked(self) -> str:
        return "actions are denied" if self.mode is Mode.READ_ONLY else "actions are asked about"
