"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them."""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain.principal import Principal, Role
from quintet.engine.fanout import Fanout
from quintet.engine.feed import Feed
from quintet.engine.threads import Threads
from quintet.protocols.knp.events import project
from quintet.protocols.knp.frames import Frame
from quintet.rpc.http.call import Caller
from quintet.rpc.http.health import LoopLag


class House:
    def __init__(
        self,
        feed: Feed,
        threads: Threads,
        *,
        version: str,
        lag: LoopLag,
        on_defect: Callable[[BaseException], None] = lambda failure: None,
    ) -> None:
        self.feed, self.threads = feed, threads
        self.version = version
        self.lag = lag
        self.fanout: Fanout[Frame] = Fanout(feed, project, on_defect)


def principal(caller: Caller) -> Principal:
    """Computed here, from how the caller came and what it proved; never from what a request says of itself."""
    return Principal(caller.name, Role.OWNER if caller.local else Role.REMOTE, "knp", caller.proof)
