"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from quintet.domain.agent import Agent
from quintet.domain.errors import NotFound
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Models, WorkspaceFiles
from quintet.domain.principal import Principal, Role
from quintet.domain.thread import Thread
from quintet.engine.agents import Agents
from quintet.engine.attachments import Attachments
from quintet.engine.fanout import Fanout
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.projects import Projects
from quintet.engine.starter import Starter
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.protocols.knp.asking import namespace_asked
from quintet.protocols.knp.events import Projection
from quintet.protocols.knp.frames import Frame
from quintet.protocols.knp.lookup import Lookup
from quintet.protocols.knp.namespaces import Namespace, Namespaces, in_namespace, no_thread
from quintet.rpc.http.call import Caller, HttpCall
from quintet.rpc.http.health import LoopLag


class MakeStarter(Protocol):
    def __call__(self, by: Principal, *, model: str, agent: Agent | None, on_ask: OnAsk) -> Starter: ...


class ProviderSeen(msgspec.Struct, frozen=True):
    """A place models come from, as far as a client may know."""

    id: str
    connected: bool
    models: tuple[ModelInfo, ...]


class House:
    def __init__(
        self,
        feed: Feed,
        threads: Threads,
        turns: Turns,
        interactions: Interactions,
        agents: Agents,
        projects: Projects,
        *,
        roots: Sequence[str],
        files: WorkspaceFiles,
        attachments: Callable[[], Attachments],
        starter: MakeStarter,
        providers: Callable[[], Sequence[ProviderSeen]],
        default_model: Callable[[], str],
        settings: Callable[[], dict[str, Any]],
        models: Callable[[], Models],
        version: str,
        lag: LoopLag,
        on_defect: Callable[[BaseException], None] = lambda failure: None,
    ) -> None:
        self.feed, self.journal = feed, feed.journal
        self.threads, self.turns, self.interactions, self.agents = threads, turns, interactions, agents
        self.files, self.attachments, self.starter = files, attachments, starter
        self.providers, self.default_model, self.settings = providers, default_model, settings
        self.models = models  # made when first asked for
        self.version, self.lag = version, lag
        self.namespaces = Namespaces(projects, roots)
        self.lookup = Lookup(feed.journal, self.namespaces)
        self.fanout: Fanout[Frame] = Fanout(feed, Projection(self.lookup, default_model).project, on_defect)

    def check_model(self, reference: str) -> str:
        """The whole reference, if it can be used; raises NotConfigured."""
        return self.models().resolve(reference)[0]

    async def namespace(self, call: HttpCall[House], query: str = "", body: str = "") -> Namespace:
        return await self.namespaces.named(namespace_asked(call, query, body))

    async def thread(self, call: HttpCall[House], tid: str, query: str) -> tuple[Thread, Namespace]:
        """The thread a request means, after ending what a dead process left in it."""
        namespace = await self.namespace(call, query)
        try:
            found = (await self.threads.get(tid)).thread
        except NotFound:
            raise no_thread() from None
        return in_namespace(found, namespace), namespace


def principal(caller: Caller) -> Principal:
    """Computed here, from how the caller came and what it proved; never from what a request says of itself."""
    return Principal(caller.name, Role.OWNER if caller.local else Role.REMOTE, "knp", caller.proof)
