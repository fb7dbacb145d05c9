"""What a project's hooks need before they run: somebody's yes to exactly this row and the files it runs as they are.

A yes is asked for when the hook is first due in a turn, and holds for that turn; longer where the person says so, as a
grant bound to the digest. Silence and a no mean that the hook is not run, and that is told.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from quintet.domain.grant import Grant, GrantOffer, Scope, Subject
from quintet.domain.hook import Hook
from quintet.domain.interaction import Approval, Verdict
from quintet.domain.ports import Hooks
from quintet.engine.coverage import serves
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk

if TYPE_CHECKING:
    from quintet.engine.running import RunningTurn

TOOL = "hook"  # what such a grant is about; no tool has this name
OF_PROJECT = "The hook comes with the project, not from you."
NOT_AGREED = "nobody agreed to this hook of the project, so it was not run"
CHANGED = "it changed while it was being agreed to, so it was not run"


class HookTrust:
    """For the hooks of one turn."""

    def __init__(self, feed: Feed, interactions: Interactions, commands: Hooks, running: RunningTurn) -> None:
        self._feed = feed
        self._interactions = interactions
        self._commands = commands
        self._running = running
        self._decided: dict[str, bool] = {}  # by digest, in this turn
        self._asking = asyncio.Lock()  # hooks due at once are asked about once each

    async def agreed(self, hook: Hook) -> tuple[str, str]:
        """(the digest of what may run, why nothing may). Whoever runs it sees to it that it is still that."""
        cwd = self._running.thread.settings.cwd
        async with self._asking:
            digest = await self._commands.digest(hook, cwd)
            if digest not in self._decided:
                known = await self._remembered(digest)
                if known is not None:
                    return digest, "" if known else NOT_AGREED
                self._decided[digest] = await self._ask(hook, digest)
                if await self._commands.digest(hook, cwd) != digest:
                    return "", CHANGED
            return digest, "" if self._decided[digest] else NOT_AGREED

    async def _remembered(self, digest: str) -> bool | None:
        """What somebody said of exactly this before; a no goes before a yes."""
        thread, now = self._running.thread, self._feed.clock.now_ms()
        protocol = self._running.starter.principal.protocol
        known = await self._feed.journal.grants(root=thread.root, project=thread.project)
        for grant in sorted(known, key=lambda grant: not grant.denies):
            live = grant.live(now) and serves(grant, protocol, thread.root, thread.project)
            if live and _about(grant, digest) and await self._feed.journal.use_grant(grant.id):
                return not grant.denies
        return None

    async def _ask(self, hook: Hook, digest: str) -> bool:
        running, starter = self._running, self._running.starter
        pattern = ("hook", f"{hook.event} {hook.matcher.text}".strip(), digest)
        about = f", for targets that match {hook.matcher.text!r}" if hook.matcher.text else ""
        request = Approval(
            tool=TOOL,
            title=f"run a command of the project at every {hook.event}{about}",
            command=hook.command,
            cwd=running.thread.settings.cwd,
            digest=digest,
            reason=OF_PROJECT,
            notes=(OF_PROJECT, f"written in {hook.source}", "yes holds for this turn, or as long as you say"),
            offers=tuple(
                GrantOffer(TOOL, Subject.CONTENT, pattern, scope)
                for scope in (Scope.THREAD, Scope.PROJECT, Scope.ALWAYS)
            ),
            host=os.uname().nodename,
        )
        # A turn does not end because nobody can be asked about a hook: it goes on without.
        on_ask = starter.on_ask if starter.on_ask is OnAsk.WAIT else OnAsk.DENY
        if on_ask is OnAsk.WAIT:
            running.moments.waits(request)
        decision = await self._interactions.ask(
            running.lease,
            running.thread.root,
            "",
            request,
            on_ask=on_ask,
            timeout_s=starter.interaction_timeout_s,
            subagent=running.agent.name if running.above else "",
        )
        return decision.verdict is Verdict.ALLOW


def _about(grant: Grant, digest: str) -> bool:
    return grant.tool == TOOL and grant.subject is Subject.CONTENT and grant.pattern[-1] == digest
