"""The hooks in Kimi's own configuration, as the engine knows hooks: at the same moments, by Kimi's names of tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.hook import TIMEOUT_MOST_S, Hook, HookEvent
from quintet.domain.hook_matcher import Matcher


class KimiHook(msgspec.Struct, frozen=True):
    event: str
    command: str
    matcher: str = ""
    timeout: Annotated[float, msgspec.Meta(ge=1, le=TIMEOUT_MOST_S)] = 30


class KimiHooks(msgspec.Struct, frozen=True):
    """Those that are run, and what is told of the others."""

    hooks: tuple[Hook, ...] = ()
    notes: tuple[str, ...] = ()


def hooks_of(given: Sequence[KimiHook]) -> KimiHooks:
    """They know tools by Kimi's names. The moments are the same."""
    found: list[Hook] = []
    notes: list[str] = []
    for number, hook in enumerate(given):
        where = f"Kimi's configuration, hooks[{number}]"
        try:
            event, matcher = HookEvent(hook.event), Matcher(hook.matcher)
            found.append(Hook(event, hook.command, matcher, where, hook.timeout, spelled=True))
        except ValueError:
            notes.append(f"{where} is not run: there is no event {hook.event!r}.")
        except Invalid as error:
            notes.append(f"{where} is not run: {error.line()}")
    return KimiHooks(tuple(found), tuple(notes))
