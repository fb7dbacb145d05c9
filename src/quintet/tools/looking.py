"""Looking at one place of the workspace: what `read` and `list` do alike. Changing one is in change.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.tool import CallScope, Prepared, ToolOutcome
from quintet.tools.arguments import digest, failed, one_line, os_words, plain
from quintet.workspace.files import on_disk
from quintet.workspace.paths import PathGuard, Place


async def prepared_look(tool: str, given: msgspec.Struct, path: str, scope: CallScope, guard: PathGuard) -> Prepared:
    place = await on_disk(partial(guard.reading, path, scope.cwd, added=scope.directories))
    normal = plain(given)
    return Prepared(
        title=one_line(f"{tool} {place.shown}"),
        arguments=normal,
        cwd=scope.cwd,
        paths=(place.path,),
        digest=digest(tool, normal, scope.cwd),
    )


async def look(
    path: str, cwd: str, guard: PathGuard, told: Callable[[Place], ToolOutcome], added: Sequence[str] = ()
) -> ToolOutcome:
    """Judge the path anew and let `told` look, on the disk's own thread; what cannot be looked at is told in words."""

    def looked() -> ToolOutcome:
        return told(guard.reading(path, cwd, added=added))

    try:
        return await on_disk(looked)
    except Invalid as error:
        return failed(error.line(), error.message)
    except OSError as error:
        return failed(os_words(error, path))


def brief(text: str) -> tuple[dict[str, str], ...]:
    """One line for people, in place of what only the model needs to read."""
    return ({"type": "brief", "text": one_line(text)},)
