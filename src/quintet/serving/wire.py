"""The engine as Kimi Wire's clients see it: one thread, Kimi's flags, skills as commands. Part of the composition root,
so that app.py need not know any protocol's clients.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from quintet.app import App
from quintet.domain.agent import Agent
from quintet.domain.errors import Invalid
from quintet.domain.event import ThreadUpdated
from quintet.domain.hook import Hook, HookSubscription
from quintet.domain.item import Media, MediaKind
from quintet.domain.ports import Tool
from quintet.domain.shown import shown_line
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.tool import ToolSpec
from quintet.engine.commands import Commands, Deed, Named
from quintet.engine.leave import Leave

if TYPE_CHECKING:
    from quintet.engine.deeds import Deeds
    from quintet.engine.flows import FlowToRun
    from quintet.engine.starter import Starter
    from quintet.protocols.wire.house import House
    from quintet.protocols.wire.place import Place

WORTH_A_SUMMARY = 250  # tokens; kimi-cli never summarises the last two messages, here they may be long ones


class WireFlags(msgspec.Struct, frozen=True):
    """What a Wire client's process was started with."""

    work_dir: str
    share_dir: str
    called: str = ""  # the working directory as the client writes it, where a link is on the way
    session: str = ""
    yolo: bool = False
    afk: bool = False
    plan: bool = False  # plan mode, whatever the thread was in
    plan_if_new: bool = False
    add_dirs: tuple[str, ...] = ()
    model: str = ""
    agent: Agent | None = None
    subagents: tuple[Agent, ...] = ()  # of the agent's file
    hooks: tuple[Hook, ...] = ()  # of Kimi's configuration
    unsupported: str = ""  # why no model can be used, where its kind is not known here
    by_login: bool = False  # the model's server is one that Kimi logs in to
    max_steps: int | None = None
    repeats: int = 0  # of each prompt, beyond the first time; below 0 without a number
    traced: bool = False  # what comes and goes is noted in the log


def wire_house(app: App, flags: WireFlags) -> House:
    """The engine as a Wire client sees it: one thread, found by the client's own id, in its working directory."""
    from quintet import __version__
    from quintet.protocols.wire.house import ME, House
    from quintet.protocols.wire.place import Place

    app.add_hooks(flags.hooks)
    session = flags.session or str(uuid.uuid4())
    linked = flags.work_dir if flags.called and flags.called != flags.work_dir else ""
    place = Place(flags.share_dir, flags.called or flags.work_dir, session, linked)

    leave_to_act = Leave(app.config.policy.mode, yolo=flags.yolo, afk=flags.afk)

    async def open_thread() -> Thread:
        app.wire_files.show(place, leave_to_act.shown)
        wanted = ThreadSettings(flags.work_dir, plan_mode=flags.plan or flags.plan_if_new)
        thread = await app.wire_files.open(place, wanted)
        change = ThreadUpdated(
            plan_mode=True if flags.plan and not thread.settings.plan_mode else None,
            directories=await asyncio.to_thread(_more_directories, app, flags, thread.settings),
        )
        if change == ThreadUpdated():
            return thread
        await app.threads.configure(thread.id, change)
        return (await app.threads.get(thread.id)).thread

    async def use() -> None:
        await app.wire_files.use(place)

    async def leave() -> None:
        if await asyncio.to_thread(os.path.isdir, place.directory):
            await app.wire_files.leave(place)

    def starter(
        tools: Sequence[Tool],
        *,
        external_tools: Sequence[ToolSpec],
        hooks: Sequence[HookSubscription],
        withheld: Mapping[str, str],
    ) -> Starter:
        return app.starter(
            ME,
            mode=leave_to_act.mode,
            attended=not leave_to_act.afk,
            told=leave_to_act.told,
            model=flags.model,
            max_steps=flags.max_steps,
            tools=tools,
            external_tools=external_tools,
            hooks=hooks,
            withheld=withheld,
            restarts=True,  # a StepRetry is its clients' cue to clear what they show
            agent=flags.agent,
            subagents=flags.subagents,
            keeps_steers=False,  # a steer belongs to its turn alone
            keep_least=WORTH_A_SUMMARY,
        )

    if flags.traced:
        who = f"session {session} in {place.work_dir}, model {flags.model or 'as configured'}"
        app.log.line(f"wire: serves {who}, mode {leave_to_act.mode}, plan {flags.plan}")
    return House(
        app.feed,
        lambda: app.room,
        open_thread=open_thread,
        use=use,
        leave=leave,
        starter=starter,
        tools=lambda: app.tools,
        version=__version__,
        configured_hooks=Counter(hook.event.value for hook in app.configured_hooks),
        window=app.window,
        repeats=flags.repeats,
        session=place.session,
        unsupported=flags.unsupported,
        by_login=flags.by_login,
        fetch=lambda address, kind: _fetched(app, address, kind),
        commands=Commands(lambda: _skill_commands(app, flags)),
        deeds=lambda: _deeds(app, place),
        leave_to_act=leave_to_act,
        log=app.log.line,
        trace=app.log.line if flags.traced else lambda line: None,
    )


def _more_directories(app: App, flags: WireFlags, settings: ThreadSettings) -> tuple[str, ...] | None:
    """Those of the command line put to the thread's own; None where that is nothing new."""
    if not flags.add_dirs:
        return None
    from quintet.engine.deeds import refuse_secret

    directories = settings.directories
    for path in flags.add_dirs:
        try:
            more = app.hands.guard.adding(path, settings.cwd, directories)
            if more != directories:
                refuse_secret(more[-1], app.feed.mask)
            directories = more
        except Invalid as error:
            app.log.line(f"wire: --add-dir {path}: {error.line()}")
    return directories if directories != settings.directories else None


def _deeds(app: App, place: Place) -> Deeds:
    from quintet.engine.deeds import Deeds
    from quintet.serving.wire_disk import WireDisk

    return Deeds(app.feed, app.threads, WireDisk(app, place))


async def _fetched(app: App, address: str, kind: MediaKind) -> Media:
    from quintet.workspace.web.media import fetch_media

    app.log.line(f"wire: {kind} to be fetched for the client: {shown_line(address)[:200]}")
    return await fetch_media(address, kind)


def _skill_commands(app: App, flags: WireFlags) -> list[Named]:
    """The person's own skills are given to the model whole. A project's are read with the tool for that, where somebody
    agrees to what is in it; before its flow is run, somebody agrees to the same."""
    from quintet.workspace.project_root import project_root
    from quintet.workspace.skills import Skill, find_skills, text_of

    def plain(skill: Skill) -> Named:
        async def say(words: str) -> str:
            if skill.of_project:
                told = f"Read the skill {skill.name} with read_skill and do what it says."
            else:
                told = (await asyncio.to_thread(text_of, skill)).strip()
            return f"{told}\n\nUser request:\n{words}" if words else told

        described = "A skill of the project" if skill.of_project else skill.description
        return Named(f"skill:{skill.name}", described or "A skill", Deed.ASK, input=say)

    def flow(skill: Skill) -> Named:
        async def read() -> FlowToRun:
            from quintet.engine.agreement import Agreement
            from quintet.engine.flows import FlowToRun
            from quintet.workspace.flow_skills import flow_of

            found, digest = await asyncio.to_thread(flow_of, skill)
            title = f"run the flow of the skill {skill.name}"
            asked = Agreement("read_skill", {"name": skill.name}, title, digest) if skill.of_project else None
            return FlowToRun(skill.name, found, asked)

        described = "A flow of the project" if skill.of_project else skill.description
        return Named(f"flow:{skill.name}", described or "A flow", Deed.FLOW, flow=read)

    found = find_skills(str(app.home), project_root(flags.work_dir), app.skills_dirs)
    return [*map(plain, found), *(flow(skill) for skill in found if skill.is_flow)]
