"""Model servers of this machine in a check-up: which answer, and whether their models have room to work in."""

from __future__ import annotations

from collections.abc import Mapping

from quintet.domain.checkup import Row, ok, warn
from quintet.providers.local_servers import TITLES, USUAL_PORTS, LocalModel, LocalServer, ask_local

SMALL = 16_384  # tokens: the instructions and tools alone take a good part of it, and servers cut silently
_LARGER = {
    "ollama": "OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
    "lmstudio": "lms load MODEL --context-length 32768",
    "llamacpp": "llama-server -c 32768 …",
    "vllm": "vllm serve MODEL --max-model-len 32768",
}
_NAMED = 3


async def look_at_local(ports: Mapping[str, int] = USUAL_PORTS) -> list[Row]:
    found = await ask_local(ports)
    if not found:
        asked = ", ".join(f"{TITLES[kind]} {port}" for kind, port in ports.items())
        return [ok("local models", f"no server answers (asked: {asked})")]
    return [_row(server) for server in found]


def _row(server: LocalServer) -> Row:
    title, where = TITLES[server.kind], f"at {server.url}"
    if server.problem:
        return ok(title, f"{where}: {server.problem}")
    if not server.models:
        return warn(title, f"{where} serves no model", "Load one there, then `quintet models --local`")
    small = [m for m in server.models if m.context_window is not None and m.context_window < SMALL]
    if small:
        words = f"{where}: {_names(small)}: too little, and what does not fit is cut without a word"
        return warn(title, words, _LARGER[server.kind])
    return ok(title, f"{where}: {_names(server.models)}", "quintet models --local")


def _names(models: list[LocalModel] | tuple[LocalModel, ...]) -> str:
    said = [f"{m.name} ({_context(m)})" for m in models[:_NAMED]]
    return ", ".join([*said, *([f"{len(models) - _NAMED} more"] if len(models) > _NAMED else [])])


def _context(model: LocalModel) -> str:
    return "context not said" if model.context_window is None else f"{model.context_window:,} tokens of context"
