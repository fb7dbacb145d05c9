"""Model servers on this machine: asked only when a person asks, on loopback, each within a moment, all at once.

Says which models they serve and how much context those have here, which is what the server was started with and often
far less than the model could take.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import httpx2

USUAL_PORTS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
TITLES = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp", "vllm": "vLLM"}
WITHIN_S = 2.0  # for everything a server is asked
MOST_MODELS = 50
MOST_BYTES = 4 * 1024 * 1024


class LocalModel(msgspec.Struct, frozen=True):
    name: str
    context_window: int | None = None  # what it has here; None: the server does not say
    could_have: int | None = None  # what the model was made for


class LocalServer(msgspec.Struct, frozen=True):
    kind: str
    url: str  # as base_url
    models: tuple[LocalModel, ...] = ()
    left_out: int = 0
    problem: str = ""  # it answers, but not as this kind of server does


Ask = Callable[..., Awaitable[Any]]


async def ask_local(ports: Mapping[str, int] = USUAL_PORTS, within_s: float = WITHIN_S) -> list[LocalServer]:
    """The servers that answer, in the order of the ports."""
    open_ports = await asyncio.gather(*(_is_open(port, within_s) for port in ports.values()))
    there = {kind: port for (kind, port), is_open in zip(ports.items(), open_ports, strict=True) if is_open}
    if not there:  # with most people, who need not wait for the import either
        return []
    import httpx2

    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=within_s) as client:
        found = await asyncio.gather(*(_server(client, kind, port, within_s) for kind, port in there.items()))
    return [server for server in found if server is not None]


async def _is_open(port: int, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _server(client: httpx2.AsyncClient, kind: str, port: int, within_s: float) -> LocalServer | None:
    import httpx2

    address = f"http://127.0.0.1:{port}"
    url = f"{address}/v1"

    async def ask(path: str, **body: Any) -> Any:
        return await _json(client, address + path, body)

    try:
        async with asyncio.timeout(within_s):
            models = await _MODELS[kind](ask)
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        return None
    except (httpx2.HTTPError, TimeoutError):
        return LocalServer(kind, url, problem="it does not answer in time, or breaks off")
    except (_NotIt, msgspec.DecodeError, AttributeError, TypeError, LookupError, ValueError):
        return LocalServer(kind, url, problem=f"something answers there, but not as {TITLES[kind]} does")
    return LocalServer(kind, url, tuple(models[:MOST_MODELS]), max(0, len(models) - MOST_MODELS))


class _NotIt(Exception):
    """Whatever answers there does not know what was asked."""


async def _json(client: httpx2.AsyncClient, url: str, body: dict[str, Any]) -> Any:
    request = client.build_request("POST", url, json=body) if body else client.build_request("GET", url)
    response = await client.send(request, stream=True)
    try:
        if response.status_code != 200:
            raise _NotIt
        said = bytearray()
        async for piece in response.aiter_bytes():
            said += piece
            if len(said) > MOST_BYTES:
                raise _NotIt
    finally:
        await response.aclose()
    return msgspec.json.decode(bytes(said))


async def _ollama(ask: Ask) -> list[LocalModel]:
    names = [str(model["name"]) for model in (await ask("/api/tags"))["models"]]
    running = {m["name"]: m.get("context_length") for m in (await ask("/api/ps"))["models"]}
    shown = await asyncio.gather(*(ask("/api/show", model=name) for name in names[:MOST_MODELS]))
    models = [_shown(name, about, running.get(name)) for name, about in zip(names, shown, strict=False)]
    return models + [LocalModel(name) for name in names[MOST_MODELS:]]


def _shown(name: str, about: dict[str, Any], running: Any) -> LocalModel:
    """What it runs with now, else what its own file sets; without either the server decides when it loads it."""
    could = [v for k, v in (about.get("model_info") or {}).items() if k.endswith(".context_length")]
    said = re.search(r"^num_ctx\s+(\d+)", str(about.get("parameters") or ""), re.MULTILINE)
    return LocalModel(name, _count(running) or (int(said[1]) if said else None), _count(next(iter(could), None)))


async def _lmstudio(ask: Ask) -> list[LocalModel]:
    try:
        listed = (await ask("/api/v0/models"))["data"]
    except _NotIt:  # an older one, which tells names only
        return [LocalModel(str(m["id"])) for m in (await ask("/v1/models"))["data"]]
    return [
        LocalModel(str(m["id"]), _count(m.get("loaded_context_length")), _count(m.get("max_context_length")))
        for m in listed
        if m.get("type") not in ("embeddings", "embedding")
    ]


async def _llamacpp(ask: Ask) -> list[LocalModel]:
    listed, properties = await asyncio.gather(ask("/v1/models"), ask("/props"))
    here = _count((properties.get("default_generation_settings") or {}).get("n_ctx"))
    return [LocalModel(str(m["id"]), here, _count((m.get("meta") or {}).get("n_ctx_train"))) for m in listed["data"]]


async def _vllm(ask: Ask) -> list[LocalModel]:
    return [LocalModel(str(m["id"]), _count(m.get("max_model_len"))) for m in (await ask("/v1/models"))["data"]]


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


_MODELS: dict[str, Callable[[Ask], Awaitable[list[LocalModel]]]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llamacpp": _llamacpp,
    "vllm": _vllm,
}
