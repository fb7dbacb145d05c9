"""Power loss between an intent and its effect: when a tool begins to run, that it was going to is on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.domain.event import CheckpointMade, ToolStarted
from quintet.domain.item import TextPart
from quintet.domain.ports import ToolContext
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode, TurnState
from quintet.engine.starter import Starter
from quintet.journal import open_journal
from tests.fakes.providers import GatedProvider, OneModel, call, text
from tests.unit.journal.nouns import everything
from tests.unit.journal.test_write_order import Disk, Entry, states

CALLS = [f"c{number}" for number in range(6)]


class Entered:
    """A tool that writes into the disk's own record when it is entered: before that, what was synced is on disk."""

    def __init__(self, effect: Effect, log: list[Entry]) -> None:
        self.spec = ToolSpec("mark", "leaves a mark", {"type": "object"}, effect)
        self._log = log

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        return Prepared("mark", arguments, command="mark", cwd=scope.cwd, paths=(f"{scope.cwd}/f",), digest="d")

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        self._log.append(("entered", context.call_id, 0, b""))
        context.emit_output("stdout", "many deltas without a sync of their own\n")
        return ToolOutcome("marked")


@pytest.mark.req("reliability:R1", "mechanisms:M1.facts")
@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.EXECUTE])
async def test_when_a_tool_is_entered_its_intent_survives_the_loss_of_power(tmp_path: Path, effect: Effect) -> None:
    log: list[Entry] = []
    disk, home, work = Disk(log), tmp_path / "home", tmp_path / "work"
    work.mkdir()
    try:
        journal = await open_journal(home, protocol="test", vfs="recording", boot_id="first")
        app = App(home, load_config(str(home)), journal)
        thread = (await app.threads.create(ThreadSettings(str(work)))).id
        model = OneModel(GatedProvider([line for name in CALLS for line in call("mark", "{}", name)], text("ok")))
        starter = Starter(local("test"), model, [Entered(effect, log)], mode=Mode.ALLOW)
        started = await app.turns.start(thread, (TextPart("go"),), starter)
        assert (await app.turns.wait(started.turn.id, 30)).state is TurnState.DONE
        await app.close()
    finally:
        disk.unregister()
    moments = [(place, entry[1]) for place, entry in enumerate(log) if entry[0] == "entered"]
    assert sorted(name for _, name in moments) == CALLS
    synced = list(states(log))
    for place, name in moments:
        files = [files for at, files in synced if at < place][-1]
        intents, made = await after_power_loss(tmp_path / f"at-{name}", files, home)
        assert name in intents
        assert name in made, "what undo needs of it is there as well"


async def after_power_loss(place: Path, files: dict[str, bytes], home: Path) -> tuple[set[str], set[str]]:
    """The calls whose intents, and whose checkpoints, are found when the machine has started anew."""
    place.mkdir()
    for name, content in files.items():
        if content:
            (place / Path(name).relative_to(home)).write_bytes(content)
    journal = await open_journal(place, protocol="test", boot_id="second")
    try:
        events = [event.payload for event in await everything(journal)]
    finally:
        await journal.close()
    intents = {said.call_id for said in events if isinstance(said, ToolStarted)}
    return intents, {said.call_id for said in events if isinstance(said, CheckpointMade)}
