"""Model servers on this machine: what they say of their models, and what is said when something else answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys

import pytest

from quintet.providers.local_servers import LocalModel, LocalServer, ask_local
from tests.fakes.answers import HANG, Answers
from tests.fakes.waiting import soon

OLLAMA = {
    "/api/tags": {"models": [{"name": "qwen3:8b"}, {"name": "llama3.2:latest"}, {"name": "tuned"}]},
    "/api/ps": {"models": [{"name": "qwen3:8b", "context_length": 8192}]},
    "POST /api/show": {
        "parameters": 'stop "<|im_end|>"\nnum_ctx    16384\n',
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    },
}
LM_STUDIO = {
    "/api/v0/models": {
        "data": [
            {"id": "qwen2.5-coder", "type": "llm", "max_context_length": 32768, "loaded_context_length": 4096},
            {"id": "not-loaded", "type": "vlm", "max_context_length": 131072},
            {"id": "nomic-embed", "type": "embeddings", "max_context_length": 2048},
        ]
    }
}
LLAMA_CPP = {
    "/v1/models": {"data": [{"id": "/models/q.gguf", "meta": {"n_ctx_train": 131072}}]},
    "/props": {"default_generation_settings": {"n_ctx": 8192}},
}
VLLM = {"/v1/models": {"data": [{"id": "Qwen/Qwen3-Coder", "max_model_len": 262144}]}}
EXPECTED = {
    "ollama": (
        LocalModel("qwen3:8b", 8192, 40960),
        LocalModel("llama3.2:latest", 16384, 40960),
        LocalModel("tuned", 16384, 40960),
    ),
    "lmstudio": (LocalModel("qwen2.5-coder", 4096, 32768), LocalModel("not-loaded", None, 131072)),
    "llamacpp": (LocalModel("/models/q.gguf", 8192, 131072),),
    "vllm": (LocalModel("Qwen/Qwen3-Coder", 262144),),
}
SERVERS = {"ollama": OLLAMA, "lmstudio": LM_STUDIO, "llamacpp": LLAMA_CPP, "vllm": VLLM}


def everywhere(answer: object) -> dict[str, object]:
    return {path: answer for path in ("/api/tags", "/v1/models", "/api/v0/models", "/props")}  # noqa: C420


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.req("models:K4")
async def test_each_kind_of_server_tells_its_models_and_how_much_context_they_have_here():
    async with contextlib.AsyncExitStack() as stack:
        made = {kind: await stack.enter_async_context(Answers(says)) for kind, says in SERVERS.items()}
        found = await soon(ask_local({kind: server.port for kind, server in made.items()}))
        assert {s.kind: s.models for s in found} == EXPECTED
        assert {s.kind: s.url for s in found} == {k: f"http://127.0.0.1:{s.port}/v1" for k, s in made.items()}
        assert not any(s.problem or s.left_out for s in found)
        shown = [asked.body for asked in made["ollama"].asked if asked.path == "/api/show"]
        assert sorted(body["model"] for body in shown) == ["llama3.2:latest", "qwen3:8b", "tuned"]


@pytest.mark.req("models:K4")
async def test_an_older_lm_studio_tells_names_only():
    async with Answers({"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}) as server:
        [found] = await soon(ask_local({"lmstudio": server.port}))
    assert found.models == (LocalModel("a"), LocalModel("b"))


@pytest.mark.req("models:K4")
@pytest.mark.parametrize("kind", list(SERVERS))
@pytest.mark.parametrize(
    "says",
    [
        {},
        {"/": b"<html>"},
        everywhere(b"<html>hello</html>"),
        everywhere(["not", "an", "object"]),
        everywhere({"data": [7], "models": [7]}),
        everywhere(b"x" * (5 * 1024 * 1024)),
    ],
    ids=["nothing", "page", "html", "array", "shapes", "endless"],
)
async def test_something_else_on_that_port_is_told_and_breaks_nothing(kind, says):
    async with Answers(says) as server:
        [found] = await soon(ask_local({kind: server.port}))
    assert found.models == ()
    assert "something answers there" in found.problem


@pytest.mark.req("models:K4")
async def test_a_port_where_nobody_listens_is_left_out_and_one_that_hangs_keeps_nobody_waiting():
    async with Answers(VLLM) as good, Answers({"/v1/models": HANG, "/props": HANG}) as hangs:
        ports = {"ollama": free_port(), "llamacpp": hangs.port, "vllm": good.port}
        found = await soon(ask_local(ports, within_s=0.3))
    assert [s.kind for s in found] == ["llamacpp", "vllm"]
    assert "does not answer in time" in found[0].problem
    assert found[1].models == EXPECTED["vllm"]


@pytest.mark.req("models:K4")
async def test_the_servers_are_asked_at_the_same_time():
    """Each waits until the other has been asked: one after the other would never end."""
    asked_of: set[object] = set()
    both = asyncio.Event()

    class Together(Answers):
        async def _answer(self, asked, writer):  # type: ignore[no-untyped-def]
            asked_of.add(self)
            if len(asked_of) == 2:
                both.set()
            await both.wait()
            await super()._answer(asked, writer)

    async with Together(VLLM) as one, Together({"/v1/models": VLLM["/v1/models"]}) as other:
        found = await soon(ask_local({"vllm": one.port, "lmstudio": other.port}, within_s=5))
    assert found[0].models


async def test_of_very_many_models_some_are_left_out_and_that_is_said():
    async with Answers({"/v1/models": {"data": [{"id": f"m{n}"} for n in range(60)]}}) as server:
        [found] = await soon(ask_local({"vllm": server.port}))
    assert (len(found.models), found.left_out) == (50, 10)


@pytest.mark.parametrize("length", [0, -1, True, "4096", None, 4096.5])
async def test_a_size_that_is_none_is_not_told(length):
    async with Answers({"/v1/models": {"data": [{"id": "m", "max_model_len": length}]}}) as server:
        [found] = await soon(ask_local({"vllm": server.port}))
    assert found == LocalServer("vllm", f"http://127.0.0.1:{server.port}/v1", (LocalModel("m"),))


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def ask() -> list[LocalServer]:
        async with Answers(VLLM) as server:
            return await soon(ask_local({"vllm": server.port}))

    assert asyncio.run(ask())[0].models


def test_looking_at_models_loads_no_http_client():
    """Nor does a look for servers where none is."""
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        asking = f"asyncio.run(ask_local({{'vllm': {taken.getsockname()[1]}}}))"
        code = "import asyncio, sys, quintet.cli.models, quintet.providers.table\n"
        code += f"from quintet.providers.local_servers import ask_local\nassert {asking} == []\n"
        done = subprocess.run(
            [sys.executable, "-c", f"{code}print('httpx2' in sys.modules)"], capture_output=True, text=True, check=True
        )
    assert done.stdout == "False\n"
