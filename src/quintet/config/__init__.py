"""config.toml and the home directory: what the person wrote, checked key by key. For app and cli only; the rooms below
get plain values. Nothing starts half-configured: the first thing wrong is one line naming file, key and fix.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from quintet.domain.errors import Invalid, StorageReadOnly
from quintet.domain.home import CONFIG as FILE
from quintet.domain.home import holds_words, strangers_in
from quintet.domain.home import home_directory as home_directory
from quintet.domain.hook import TIMEOUT_MOST_S, HookEvent
from quintet.domain.hook import Hook as CommandHook
from quintet.domain.hook_matcher import Matcher
from quintet.domain.turn import Mode
from quintet.providers.settings import ModelSettings, ProviderSettings
from quintet.workspace.web.search_settings import SearchSettings

VERSION = 1
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Directory = Annotated[
    str, msgspec.Meta(pattern=r"^(/|~/)[^\0]*[^/\0]$")
]  # absolute, or in the user's own; never / itself
HostName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$")]
Origin = Annotated[str, msgspec.Meta(pattern=r"^https?://[^/\s]+$")]
T = TypeVar("T", bound=msgspec.Struct)


class Policy(msgspec.Struct, frozen=True):
    mode: Mode | None = None  # None: each protocol's own default
    rules: dict[str, Literal["allow", "ask", "deny"]] = {}


class Projects(msgspec.Struct, frozen=True):
    roots: tuple[str, ...] = ()


class Sandbox(msgspec.Struct, frozen=True):
    mode: Literal["auto", "off"] = "auto"
    required: bool | None = None  # None: nobody said, which is not the same as no
    network: Literal["off", "on"] | tuple[str, ...] | None = None
    max_processes: Count | None = None  # None: the usual caps of a command
    max_memory_mib: Count | None = None
    max_file_mib: Count | None = None
    writable: tuple[Directory, ...] = ()  # beside the workspace, e.g. package caches


class Limits(msgspec.Struct, frozen=True):
    interaction_timeout_s: Positive = 86_400.0
    turn_budget: Positive | None = None  # US dollars, like the other two
    thread_budget: Positive | None = None
    day_budget: Positive | None = None
    max_steps: Count | None = None
    compact_at: Share | None = None
    storage_quota: Count | str | None = None


class McpServer(msgspec.Struct, frozen=True):
    command: str | tuple[str, ...] | None = None
    url: str | None = None
    env: dict[str, str] = {}


class Hook(msgspec.Struct, frozen=True):
    event: HookEvent
    command: Annotated[str, msgspec.Meta(min_length=1)]
    matcher: str = ""  # a regular expression, searched for
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=TIMEOUT_MOST_S)] = 30.0


class Agent(msgspec.Struct, frozen=True):
    description: str = ""
    instructions: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    mode: Mode | None = None


class Retention(msgspec.Struct, frozen=True):
    delta_grace_s: Positive = 900.0
    checkpoints_days: Positive = 30.0


class Server(msgspec.Struct, frozen=True):
    """Names beside loopback by which the HTTP server may be called, and by whom. All exact."""

    hosts: tuple[HostName, ...] = ()
    origins: tuple[Origin, ...] = ()
    proxies: tuple[str, ...] = ()  # addresses whose X-Forwarded-For is believed
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 30.0


class Mirrors(msgspec.Struct, frozen=True):
    """Which threads have the files that a protocol's clients read themselves."""

    kimi: Literal["named", "all"] = "named"  # those that its clients have named, or all


class Memory(msgspec.Struct, frozen=True):
    """Where a profile's own settings do not say it."""

    enabled: bool = False
    auto_summary: bool = False


class Config(msgspec.Struct, frozen=True):
    version: int = VERSION
    default_model: str = ""
    providers: dict[str, ProviderSettings] = {}
    models: dict[str, ModelSettings] = {}
    policy: Policy = Policy()
    projects: Projects = Projects()
    sandbox: Sandbox = Sandbox()
    limits: Limits = Limits()
    mcp: dict[str, McpServer] = {}
    hooks: tuple[Hook, ...] = ()
    agents: dict[str, Agent] = {}
    retention: Retention = Retention()
    server: Server = Server()
    web_search: SearchSettings | None = None  # None: there is no such tool
    mirrors: Mirrors = Mirrors()
    memory: Memory = Memory()
    # Tables whose rooms read their own keys.
    embeddings: dict[str, Any] = {}
    log: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()  # ours, not a key


_NAMED: dict[str, type[msgspec.Struct]] = {
    "providers": ProviderSettings,
    "models": ModelSettings,
    "mcp": McpServer,
    "agents": Agent,
}
_PLAIN: dict[str, type] = {"version": int, "default_model": str}
_TABLES: dict[str, type[msgspec.Struct]] = {
    "policy": Policy,
    "projects": Projects,
    "sandbox": Sandbox,
    "limits": Limits,
    "retention": Retention,
    "server": Server,
    "memory": Memory,
    "web_search": SearchSettings,
    "mirrors": Mirrors,
}


def make_home(path: str) -> None:
    """Make the directory for its owner's eyes only. One that exists is left as it is."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise Invalid(f"{path} is not a directory.", next_step="Name another one with `--home`.") from None
        refuse_foreign(path)
        refuse_strangers(path)
    except OSError as error:
        raise StorageReadOnly(f"The home directory {path} cannot be made: {error.strerror}.") from error


def refuse_foreign(path: str) -> None:
    """A home that somebody else has closed to us is theirs: nothing in it is to be mended or moved away by us."""
    with contextlib.suppress(FileNotFoundError):
        if os.stat(path).st_uid != os.geteuid() and not os.access(path, os.R_OK | os.X_OK):
            raise StorageReadOnly(
                f"The home directory {path} belongs to another user.",
                next_step="Name one of your own with `--home` or QUINTET_HOME.",
            )


def refuse_strangers(path: str) -> None:
    """A directory that is there for something else, a project or somebody's own, is not to be filled with our files.
    Before the journal is begun a configuration that can be read shows that it is meant to be a home."""
    try:
        names = os.listdir(path)
    except OSError:
        return  # not there, or closed: whoever opens it says so
    if not (strangers := strangers_in(names)):
        return
    if FILE in names:
        load_config(path)
        return
    raise Invalid(
        f"{path} is no home of Quintet's: it holds {holds_words(strangers)}.",
        next_step=f"Name an empty directory with `--home` or QUINTET_HOME, or one to be made: {path}/quintet",
    )


def load_config(home: str) -> Config:
    """The home's config.toml; the defaults when there is none."""
    path = os.path.join(home, FILE)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise _unreadable(path, str(error.strerror), "Make it readable for you, or move it away.") from error
    return parse_config(data, path)


def parse_config(data: bytes, path: str) -> Config:
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not UTF-8 text", "Save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, f"it is not TOML: {error}", "Correct that place.") from error
    return _Reader(path, document).config()


class _Reader:
    """One pass over the document. In a file of a newer version an unknown key is a warning, so that an older Quintet
    started by an editor still works."""

    def __init__(self, path: str, document: dict[str, Any]) -> None:
        self._path = path
        self._document = document
        version = document.get("version", VERSION)
        self._newer = isinstance(version, int) and version > VERSION
        self._warnings: list[str] = []

    def config(self) -> Config:
        known = [name for name in Config.__struct_fields__ if name != "warnings"]
        made: dict[str, Any] = {}
        for key in self._known(self._document, known, ""):
            value = self._document[key]
            if key in _TABLES:
                made[key] = self._struct(value, _TABLES[key], key)
            elif key in _NAMED:
                table = self._table(value, key)
                names = [name for name in table if not name.startswith("x-")]
                made[key] = {name: self._struct(table[name], _NAMED[key], f"{key}.{_quoted(name)}") for name in names}
            elif key == "hooks":
                entries = self._value(value, list[Any], key)
                made[key] = tuple(self._struct(entry, Hook, f"hooks[{n}]") for n, entry in enumerate(entries))
                self._check_matchers(made[key])
            else:
                made[key] = self._value(value, _PLAIN.get(key, dict[str, Any]), key)
        self._check_hosts(made)
        self._warn_of_keys(made.get("providers", {}))
        return Config(**made, warnings=tuple(self._warnings))

    def _struct(self, value: Any, form: type[T], where: str) -> T:
        table = self._table(value, where)
        types = {field.name: field for field in msgspec.structs.fields(form)}
        made = {
            key: self._value(table[key], types[key].type, f"{where}.{key}") for key in self._known(table, types, where)
        }
        for field in types.values():
            if field.required and field.name not in made:
                raise Invalid(
                    f"{self._path}: {where} needs `{field.name}`.", next_step=f"Add `{field.name} = …` to it."
                )
        return form(**made)

    def _known(self, table: dict[str, Any], known: Any, where: str) -> list[str]:
        keys = []
        for key in table:
            if key in known:
                keys.append(key)
            elif not key.startswith("x-"):
                self._unknown(f"{where}.{key}" if where else key, key, list(known))
        return keys

    def _unknown(self, where: str, key: str, known: list[str]) -> None:
        if self._newer:
            self._warnings.append(f"{self._path}: `{where}` is not known to this version and is ignored.")
            return
        from difflib import get_close_matches

        near = get_close_matches(key, known, 1)
        fix = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
        raise Invalid(f"{self._path}: unknown key `{where}`.", next_step=f"{fix} Keys that begin with x- are ignored.")

    def _table(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Invalid(f"{self._path}: `{where}` must be a table.", next_step=f"Write it as [{where}].")
        return value

    def _value(self, value: Any, form: Any, where: str) -> Any:
        try:
            return msgspec.convert(value, form)
        except msgspec.ValidationError as error:
            problem, _, inner = str(error).partition(" - at `$")
            for word, ours in ((" | null", ""), ("object", "table"), ("array", "list")):
                problem = problem.replace(word, ours)
            problem = problem.split(" matching regex")[0] + (" (absolute, or from ~/)" if "regex" in problem else "")
            inside = " (in one of its entries)" if inner.startswith("[") else ""
            choices = _choices(form)
            fix = f"Use one of {', '.join(choices)}." if choices else "Correct its value."
            problem = problem[:1].lower() + problem[1:]
            raise Invalid(f"{self._path}: `{where}`{inside}: {problem}.", next_step=fix) from error

    def _check_hosts(self, made: dict[str, Any]) -> None:
        """What other rooms can say of an address: at the start, not at the first use."""
        try:
            if "web_search" in made:
                from quintet.workspace.web.search_endpoint import endpoint

                endpoint(made["web_search"])
            if isinstance(hosts := made.get("sandbox", Sandbox()).network, tuple):
                from quintet.workspace.sandbox.allowed_hosts import parse_allowed

                parse_allowed(hosts)
        except Invalid as error:
            raise Invalid(f"{self._path}: {error.message}", next_step=error.step) from None

    def _check_matchers(self, hooks: Sequence[Hook]) -> None:
        for n, hook in enumerate(hooks):
            try:
                Matcher(hook.matcher)
            except Invalid as error:
                raise Invalid(f"{self._path}: `hooks[{n}].matcher`: {error.message}", next_step=error.step) from None

    def _warn_of_keys(self, providers: dict[str, ProviderSettings]) -> None:
        for name, settings in providers.items():
            if settings.api_key:
                self._warnings.append(
                    f"{self._path}: providers.{name}.api_key is a key in plain text; name a variable in api_key_env."
                )


def command_hooks(hooks: Sequence[Hook]) -> tuple[CommandHook, ...]:
    """The person's own, as the engine knows them."""
    return tuple(
        CommandHook(hook.event, hook.command, Matcher(hook.matcher), f"config.toml hooks[{n}]", hook.timeout_s)
        for n, hook in enumerate(hooks)
    )


def _choices(form: Any) -> list[str]:
    """The words a value may be, also those inside an optional or a table."""
    if isinstance(form, type) and issubclass(form, Enum):
        return [str(member.value) for member in form]
    if get_origin(form) is Literal:
        return [str(word) for word in get_args(form)]
    return [word for inner in get_args(form) if not isinstance(inner, str) for word in _choices(inner)]


def _quoted(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'


def _unreadable(path: str, why: str, fix: str) -> Invalid:
    return Invalid(f"{path} cannot be read: {' '.join(why.split())}.", next_step=fix)
