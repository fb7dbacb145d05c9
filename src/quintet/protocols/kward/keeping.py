"""What Kward keeps for its user beside sessions: settings, memory, the choice of a model, a log of figures, logins.

Ports and the parts of the engine behind them; whoever composes gives them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from quintet.domain.model import ModelInfo
from quintet.domain.ports import SettingsStore

Known = tuple[str, ModelInfo | None, str]  # reference, what is known of it, its name for people

if TYPE_CHECKING:
    from quintet.engine.memory import Mind
    from quintet.engine.telemetry import Telemetry
    from quintet.protocols.kward import models as wire


class ModelChoice(Protocol):
    def reference(self) -> str: ...
    def current(self) -> wire.Model: ...
    def effort(self) -> str: ...
    def info(self, reference: str) -> ModelInfo | None: ...
    async def reload(self) -> None: ...
    async def set_model(self, provider: str, model: str) -> None: ...
    async def set_effort(self, effort: str, provider: str = "") -> None: ...
    async def references(self) -> Sequence[Known]: ...
    async def catalog(self) -> Sequence[Known]: ...


class Credential(msgspec.Struct, frozen=True):
    """Where one is, never what it is."""

    environment: bool = False
    stored: bool = False
    account: str = ""

    @property
    def configured(self) -> bool:
        return self.environment or self.stored


class LoginSeen(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def redirect_uri(self) -> str: ...
    @property
    def authorization_url(self) -> str: ...
    @property
    def error(self) -> str: ...


class Accounts(Protocol):
    async def openai(self) -> Credential: ...
    async def openrouter(self) -> Credential: ...
    async def store_key(self, key: str) -> None: ...
    async def remove_key(self) -> None: ...
    async def remove_login(self) -> None: ...
    async def renew(self) -> None:
        """A login that is about to end gets another token; one that cannot is left as it is."""

    async def start(self, wait_s: float) -> LoginSeen: ...
    async def submit(self, id: str, given: str) -> LoginSeen: ...
    def login(self, id: str) -> LoginSeen: ...
    async def close(self) -> None:
        """Nobody waits for the logins that were begun any more."""

    def tell(self, finished: Callable[[LoginSeen], Awaitable[None]]) -> None:
        """Who is told of every login that has ended."""


class Keeping:
    def __init__(
        self,
        *,
        settings: SettingsStore,
        mind: Callable[[], Mind],
        models: ModelChoice,
        telemetry: Telemetry,
        accounts: Accounts,
        roots: Callable[[str], tuple[str, ...]],
    ) -> None:
        """`roots` gives the workspaces that a directory counts as; blocking."""
        self.settings = settings
        self._mind = mind
        self.models = models
        self.telemetry = telemetry
        self.accounts = accounts
        self.roots = roots

    @property
    def mind(self) -> Mind:
        """Made when something is first asked of it."""
        return self._mind()


def text_values(values: Any) -> list[str]:
    """A list of texts, or one, as older clients send it."""
    if isinstance(values, str):
        return [values]
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
