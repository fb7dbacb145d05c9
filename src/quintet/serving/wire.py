"""The engine as Kimi Wire's clients see it: one thread, Kimi's flags, skills as commands. Part of the composition root,
so that app.py need not know any protocol's clients.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from quintet.app import App
from quintet.domain.agent import Agent
from quintet.domain.hook import Hook, HookSubscription
from quintet.domain.item import Media, MediaKind
from quintet.domain.ports import Tool
from quintet.domain.shown import shown_line
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.tool import ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.commands import Commands, Deed, Named
from quintet.engine.starter import Starter
from quintet.workspace.project_root import project_root

if TYPE_CHECKING:
    from quintet.protocols.wire.house import House


class WireFlags(msgspec.Struct, frozen=True):
    """What a Wire client's process was started with."""

    work_dir: str
    share_dir: str
    called: str = ""  # the working directory as the client writes it, where a link is on the way
    session: str = ""
    yolo: bool = False
    model: str = ""
    agent: Agent | None = None
    hooks: tuple[Hook, ...] = ()  # of Kimi's configuration
    unsupported: str = ""  # why no model can be used, where its kind is not known here
    max_steps: int | None = None


def wire_house(app: App, flags: WireFlags) -> House:
    """The engine as a Wire client sees it: one thread, found by the client's own id, in its working directory."""
    from quintet import __version__
    from quintet.protocols.wire.house import ME, House
    from quintet.protocols.wire.place import Place

    app.hooks.configured = (*app.hooks.configured, *flags.hooks)
    session = flags.session or str(uuid.uuid4())
    linked = flags.work_dir if flags.called and flags.called != flags.work_dir else ""
    place = Place(flags.share_dir, flags.called or flags.work_dir, session, linked)

    async def open_thread() -> Thread:
        return await app.wire_files.open(place, ThreadSettings(flags.work_dir))

    async def use() -> None:
        await app.wire_files.use(place)

    async def leave() -> None:
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
            mode=Mode.ALLOW if flags.yolo else Mode.ASK,
            model=flags.model,
            max_steps=flags.max_steps,
            tools=tools,
            external_tools=external_tools,
            hooks=hooks,
            withheld=withheld,
            restarts=True,  # a StepRetry is its clients' cue to clear what they show
            agent=flags.agent,
            keeps_steers=False,  # a steer belongs to its turn alone
        )

    return House(
        app.feed,
        app.turns,
        app.threads,
        app.interactions,
        open_thread=open_thread,
        use=use,
        leave=leave,
        starter=starter,
        tools=lambda: app.tools,
        version=__version__,
        configured_hooks=Counter(hook.event.value for hook in app.hooks.configured),
        window=app.window,
        session=place.session,
        unsupported=flags.unsupported,
        fetch=lambda address, kind: _fetched(app, address, kind),
        commands=Commands(lambda: _skill_commands(app, flags)),
        log=app.log.line,
    )


async def _fetched(app: App, address: str, kind: MediaKind) -> Media:
    from quintet.workspace.web.media import fetch_media

    app.log.line(f"wire: the client named {kind} by its address, which is fetched: {shown_line(address)[:200]}")
    return await fetch_media(address, kind)


def _skill_commands(app: App, flags: WireFlags) -> list[Named]:
    """The person's own skills are given to the model whole. A project's are read with the tool for that, where somebody
    agrees to what is in it."""
    from quintet.workspace.skills import Skill, find_skills, text_of

    def command(skill: Skill) -> Named:
        async def say(words: str) -> str:
            if skill.of_project:
                told = f"Read the skill {skill.name} with read_skill and do what it says."
            else:
                told = (await asyncio.to_thread(text_of, skill)).strip()
            return f"{told}\n\nUser request:\n{words}" if words else told

        described = "A skill of the project" if skill.of_project else skill.description
        return Named(f"skill:{skill.name}", described or "A skill", Deed.ASK, input=say)

    return [command(s) for s in find_skills(str(app.home), project_root(flags.work_dir), app.skills_dirs)]
