"""Slash commands on Wire: an input that means one is carried out instead of being given to the model.

Those that only do something are told as a turn without a step; those that ask the model are one, or several in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quintet.domain.errors import Busy, Invalid, NotFound
from quintet.domain.event import ThreadUpdated
from quintet.domain.model import ModelInfo
from quintet.engine.commands import Called, Commands, Deed, listed
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.greeting import SlashCommandInfo
from quintet.protocols.wire.status import filled

if TYPE_CHECKING:
    from quintet.protocols.wire.running import Running

CLEARED = "The context has been cleared."
EMPTY = "The context is empty."
NO_DISK = "There is no disk here to do that on."
NO_QUESTION = "Ask with /btw QUESTION."


def infos(commands: Commands) -> list[SlashCommandInfo]:
    return [SlashCommandInfo(c.name, c.description, list(c.aliases)) for c in commands.all()]


async def carry_out(running: Running, called: Called) -> wire.PromptResult | None:
    """The whole prompt; or None where the model is asked, with what `running` has been given to say."""
    deed = called.command.deed if called.command else None
    if called.command is not None and deed is Deed.ASK:
        running.says(await called.command.input(called.words))
        return None
    if deed is Deed.FLOW:
        from quintet.protocols.wire.flowing import run_flow  # few prompts are flows

        return await run_flow(running, called)
    if deed is Deed.ASIDE and called.words:
        await running.fits()
        return await running.aside(called.words)
    if deed is Deed.COMPACT and not await _is_empty(running):
        await running.fits()
        return await running.compact(called.words)
    await running.whole(lambda: _tell(running, called))
    return wire.PromptResult("finished")


async def _tell(running: Running, called: Called) -> None:
    house = running.client.house
    match called.command.deed if called.command else None:
        case None:
            await running.text(f'Unknown slash command "/{called.name}".')
        case Deed.HELP:
            await running.text(listed(house.commands.all()))
        case Deed.COMPACT:
            await running.text(EMPTY)
        case Deed.ASIDE:
            await running.text(NO_QUESTION)
        case Deed.PLAN:
            await _plan(running, called.words.lower())
        case Deed.YOLO | Deed.AFK as deed:
            await running.text(await house.toggle(deed))
        case Deed.EXPORT | Deed.IMPORT | Deed.ADD_DIR as deed:
            await running.text(await _done(running, deed, called.words))
        case Deed.CLEAR:
            thread = await house.thread()
            await house.threads.clear(thread.id)
            await running.text(CLEARED)
            await running.tell("StatusUpdate", filled(0, running.client.window(thread)))


async def _plan(running: Running, words: str) -> None:
    house = running.client.house
    thread = (await house.threads.get((await house.thread()).id)).thread
    if words in ("view", "clear") and (deeds := house.deeds) is not None:
        await running.text(await (deeds.plan(thread) if words == "view" else deeds.clear_plan(thread)))
        return
    if words not in ("", "on", "off"):
        await running.text("There are /plan on, /plan off, /plan view and /plan clear; /plan alone is the other one.")
        return
    enabled = words == "on" if words else not thread.settings.plan_mode
    await house.threads.configure(thread.id, ThreadUpdated(plan_mode=enabled))
    await running.text("Plan mode ON: nothing is changed." if enabled else "Plan mode OFF.")
    await running.tell("StatusUpdate", wire.PlanUpdate(plan_mode=enabled))


async def _done(running: Running, deed: Deed, words: str) -> str:
    """What came of it; what cannot be done is told, too, and is no error of the prompt's."""
    house = running.client.house
    if (deeds := house.deeds) is None:
        return NO_DISK
    thread = (await house.threads.get((await house.thread()).id)).thread
    try:
        match deed:
            case Deed.EXPORT:
                return await deeds.export(thread, words)
            case Deed.ADD_DIR:
                return await deeds.add_directory(thread, words)
            case _:
                return await deeds.take_in(thread, words, running.client.model(thread) or ModelInfo(""))
    except (Invalid, NotFound, Busy) as error:
        return error.line()


async def _is_empty(running: Running) -> bool:
    house = running.client.house
    thread = (await house.threads.get((await house.thread()).id)).thread
    return not thread.view.model_ordinals(thread.last_ordinal)
