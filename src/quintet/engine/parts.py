"""Parts: what a protocol has of the engine beside the feed. Whoever composes gives them when they are first asked for,
since a greeting needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quintet.engine.interactions import Interactions
    from quintet.engine.projects import Projects
    from quintet.engine.threads import Threads
    from quintet.engine.turns import Turns


class Parts(Protocol):
    @property
    def turns(self) -> Turns: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def projects(self) -> Projects: ...
