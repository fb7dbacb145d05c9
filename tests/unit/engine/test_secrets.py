"""Known secrets: whatever path they come by, they are nowhere in the store's bytes."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.event import ReasoningDelta, TextDelta, ThreadUpdated, ToolInputDelta, ToolOutputDelta
from quintet.domain.grant import Scope
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, ToolResult, UserMessage, user_text
from quintet.domain.model import ReasoningChunk, TextChunk, ToolInput, ToolStart
from quintet.domain.ports import ToolContext
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import Effect, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.interactions import Answer
from quintet.engine.redaction import MASK
from quintet.engine.transfer import export_thread, import_thread
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.providers import Gate, GatedProvider, Line, call, text
from tests.fakes.tools import FakeTool, SlowTool, printing
from tests.fakes.waiting import soon, until

PLAIN = "canary-7f3a9c1e55d0"
ODD = 'c4nary"with\\quotes&=/ü'
SECRETS = (PLAIN, ODD)


@pytest.fixture
async def filed(tmp_path: Path) -> House:
    return House("sqlite", tmp_path / "home")


@pytest.fixture
async def sworn(filed: House) -> Process:
    return await filed.process(secrets=SECRETS)


async def stored(house: House, process: Process) -> bytes:
    """Every byte of the store, the log before it is folded in as well as after."""
    before = b"".join(p.read_bytes() for p in sorted(house.home.rglob("*")) if p.is_file())
    await process.close()
    return before + b"".join(p.read_bytes() for p in sorted(house.home.rglob("*")) if p.is_file())


def nowhere(found: bytes) -> None:
    for secret in SECRETS:
        raw = secret.encode()
        once = msgspec.json.encode(secret)[1:-1]
        twice = msgspec.json.encode(once.decode())[1:-1]
        for form in (raw, base64.b64encode(raw), quote(secret, safe="").encode(), once, twice):
            assert form not in found, form
    assert MASK.encode() in found


def pieces(secret: str, size: int) -> list[str]:
    return [secret[n : n + size] for n in range(0, len(secret), size)]


@pytest.mark.req("security:S44", "mechanisms:M9.known")
@pytest.mark.parametrize("secret", SECRETS, ids=["plain", "odd"])
async def test_a_secret_in_inputs_answers_titles_and_errors_is_nowhere(
    filed: House, sworn: Process, secret: str
) -> None:
    thread = (await sworn.threads.create(ThreadSettings("/w", agent=secret), title=f"about {secret}")).id
    await sworn.threads.configure(thread, ThreadUpdated(agent="coder"))  # nobody can work under the other name
    second = await sworn.thread()
    await sworn.run(
        second, GatedProvider([ProviderFailed(f"401 for {secret}", key=secret)]), say=f"use {secret}\nplease"
    )
    await sworn.threads.rename(thread, "t" * 70 + secret)
    assert secret[:6] not in (await sworn.journal.thread(thread)).title  # not even cut at its eighty characters
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    given = msgspec.json.encode({"command": f"curl -H {secret}", "paths": [secret]}).decode()
    started = await sworn.start(thread, GatedProvider(call("shell", given), text("x")), [tool], mode=Mode.ASK)
    asked = await sworn.asked(thread)
    await soon(sworn.turns.steer(thread, parts(f"or {secret}"), ME))
    await soon(sworn.interactions.answer(asked, Answer(Verdict.DENY, f"because {secret}"), ME))
    await sworn.ended(started.turn.id)
    theirs = ToolSpec("theirs", "", {}, external=True)
    started = await sworn.start(thread, GatedProvider(call("theirs", given, "c2"), text("x")), external_tools=[theirs])
    asked = await sworn.asked(thread)
    result: dict[str, object] = {"text": f"it is {secret}", "more": [secret]}
    await soon(sworn.interactions.answer(asked, Answer(Verdict.ANSWER, result=result), ME))
    await sworn.ended(started.turn.id)
    slow = SlowTool()
    started = await sworn.start(thread, GatedProvider(call("slow", call_id="c3")), [slow])
    await slow.started()
    await soon(sworn.turns.cancel(started.turn.id, ME, f"it said {secret}"))
    await sworn.threads.fork(thread, title=secret)
    await sworn.threads.replace(thread, [user_text(f"instead {secret}")])
    nowhere(await stored(filed, sworn))


@pytest.mark.req("security:S44", "mechanisms:M9.stream")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("secret", SECRETS, ids=["plain", "odd"])
async def test_a_secret_the_model_or_a_tool_says_in_pieces_is_nowhere(
    filed: House, sworn: Process, secret: str, size: int
) -> None:
    thread = await sworn.thread()
    inside = msgspec.json.encode({"key": secret}).decode()
    spoken: list[Line] = [
        *[ReasoningChunk(p) for p in pieces(f"think {secret} so", size)],
        *[TextChunk(p) for p in pieces(f"say {secret} now", size)],
        ToolStart("c1", "print"),
        *[ToolInput("c1", p) for p in pieces(inside, size)],
    ]
    tool = printing(*pieces(f"out {secret} end", size))
    await sworn.run(thread, GatedProvider(spoken, text("x")), [tool])
    assert tool.ran == [{"key": secret}]
    events = await sworn.events(thread)
    for kind in (TextDelta, ReasoningDelta, ToolInputDelta, ToolOutputDelta):
        said = "".join(e.payload.text for e in events if isinstance(e.payload, kind))
        assert secret[2:] not in said
        assert MASK in said
    assert [b.text for b in await sworn.bodies(thread, ToolResult)] == [f"out {MASK} end"]
    assert (await sworn.bodies(thread, AssistantMessage))[0].text == f"say {MASK} now"
    nowhere(await stored(filed, sworn))


@pytest.mark.req("security:S44")
async def test_what_was_cut_off_or_imported_or_made_a_grant_is_masked_too(filed: House, sworn: Process) -> None:
    thread, gate = await sworn.thread(), Gate()
    started = await sworn.start(thread, GatedProvider([*text(*pieces(f"it is {PLAIN}!", 4)), gate]))
    await gate.stopped()
    await soon(sworn.turns.cancel(started.turn.id, ME))
    assert (await sworn.bodies(thread, AssistantMessage))[0].text == f"it is {MASK}!"
    plain = await (House("memory", filed.home)).process()
    source = await plain.put("", user_text(f"my {PLAIN}"))
    made = await import_thread(sworn.threads, await export_thread(plain.threads, source.id), cwd="/project/here")
    await plain.close()
    assert await sworn.bodies(made.id, UserMessage) == [user_text(f"my {MASK}")]
    tool = FakeTool("put", effect=Effect.WRITE)
    provider = GatedProvider(call("put", f'{{"paths": ["/w/{PLAIN}"]}}'), text("x"))
    started = await sworn.start(thread, provider, [tool], mode=Mode.ASK)
    answer = Answer(Verdict.ALLOW, remember=Scope.THREAD)
    await soon(sworn.interactions.answer(await sworn.asked(thread), answer, ME))
    await sworn.ended(started.turn.id)
    nowhere(await stored(filed, sworn))


@pytest.mark.req("mechanisms:M9.stream")
async def test_a_possible_beginning_of_a_secret_is_held_for_a_moment_only(filed: House, sworn: Process) -> None:
    """In the model's words and in a tool's output; and when the rest comes after all, it is masked."""
    thread, gate, after = await sworn.thread(), Gate(), asyncio.Event()

    async def prompt(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        context.emit_output("stdout", PLAIN[:9])
        await after.wait()
        context.emit_output("stdout", PLAIN[9:])
        return ToolOutcome("done")

    lines: list[Line] = [TextChunk(PLAIN[:9]), gate, TextChunk(PLAIN[9:]), *call("prompt")]
    started = await sworn.start(thread, GatedProvider(lines, text("x")), [FakeTool("prompt", prompt)])
    heard: list[str] = []
    sworn.feed.journal.listen(lambda es: heard.extend(e.payload.text for e in es if isinstance(e.payload, TextDelta)))
    await gate.stopped()
    await until(lambda: PLAIN[:9] in heard)
    gate.open()
    out = await sworn.seen(lambda e: isinstance(e.payload, ToolOutputDelta), thread)
    assert out.payload == ToolOutputDelta("c1", "prompt", 0, "stdout", PLAIN[:9])
    after.set()
    await sworn.ended(started.turn.id)
    for kind in (TextDelta, ToolOutputDelta):
        said = [p.text for p in await sworn.payloads(thread, kind)]
        assert said[:2] == [PLAIN[:9], MASK]
    nowhere(await stored(filed, sworn))
