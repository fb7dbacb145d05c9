"""The files Kimi's clients read: told from the journal line for line, and taken over where somebody else wrote them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import StorageFull
from quintet.domain.event import Event, TurnFinished
from quintet.domain.item import (
    AssistantMessage,
    ImagePart,
    MediaKind,
    MediaPart,
    Reasoning,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    text_of,
)
from quintet.domain.model import MediaChunk, ReasoningChunk, Usage, UsageChunk
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.tool import Effect
from quintet.engine.mirrors import Mirrors
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.names import Names
from quintet.protocols.wire.place import Place
from quintet.protocols.wire.session_files import SessionFiles
from quintet.workspace.mirror_files import DiskMirrorFiles
from tests.fakes.engine import ME, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.unit.protocols.wire.conftest import Connect

WORK = "/project/here"
MD5 = "d2175480be6d520da7b4645ccec6e608"
EMPTY = (
    '{"context_usage":null,"context_tokens":null,"max_context_tokens":null,"token_usage":null,"message_id":null,'
    '"plan_mode":false,"mcp_status":null}'
)


class Desk:
    """The files of one session, and whoever writes them here."""

    def __init__(self, process: Process, tmp_path: Path, session: str = "s1") -> None:
        self.process = process
        self.notes: list[str] = []
        files = DiskMirrorFiles(str(tmp_path / "home" / "run"))
        self.files = SessionFiles(process.journal, process.threads, files, Options(Names()), self.notes.append)
        mirrors = Mirrors(process.journal, {"wire": lambda: self.files}, self.notes.append)
        process.feed.mirror, process.feed.unmirror = mirrors.bring_up, mirrors.remove
        self.share = tmp_path / "share"
        self.place = Place(str(self.share), WORK, session)
        self.directory = Path(self.place.directory)

    async def open(self) -> Thread:
        return await self.files.open(self.place, ThreadSettings(WORK))

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()

    def lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in self.text(name).splitlines()]

    def state(self) -> Any:
        return json.loads(self.text("state.json"))

    def write(self, name: str, data: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(data)

    def append(self, name: str, data: str) -> None:
        self.write(name, self.text(name) + data)


@pytest.fixture
def desk(process: Process, tmp_path: Path) -> Desk:
    return Desk(process, tmp_path)


def user(words: str) -> str:
    return json.dumps({"role": "user", "content": words}) + "\n"


def kinds_of(desk: Desk) -> list[str]:
    return [row["message"]["type"] for row in desk.lines("wire.jsonl")[1:]]


@pytest.mark.req("wire:S94", "wire:S95", "wire:S96")
async def test_a_turn_is_written_line_for_line(desk: Desk) -> None:
    thread = await desk.open()
    model = GatedProvider(
        [ReasoningChunk("h"), ReasoningChunk("m"), *text("let ", "me\u2028"), *call("look", '{"a": 1}', "c1")],
        [*text("do", "ne"), UsageChunk(Usage(10, 5))],
    )
    await desk.process.run(thread.id, model, [FakeTool("look")], say="hé")
    assert sorted(p.name for p in desk.directory.iterdir()) == ["context.jsonl", "state.json", "wire.jsonl"]
    log = desk.text("wire.jsonl").encode().decode()
    assert re.sub(r'"timestamp":\d+\.\d+', '"timestamp":0', log).split("\n") == [
        '{"type":"metadata","protocol_version":"1.10"}',
        '{"timestamp":0,"message":{"type":"TurnBegin","payload":{"user_input":"hé"}}}',
        '{"timestamp":0,"message":{"type":"StepBegin","payload":{"n":1}}}',
        '{"timestamp":0,"message":{"type":"ContentPart","payload":{"type":"think","think":"hm","encrypted":null}}}',
        '{"timestamp":0,"message":{"type":"ContentPart","payload":{"type":"text","text":"let me\\u2028"}}}',
        '{"timestamp":0,"message":{"type":"ToolCall","payload":{"id":"c1","function":{"name":"look",'
        '"arguments":"{\\"a\\": 1}"},"type":"function","extras":null}}}',
        '{"timestamp":0,"message":{"type":"StatusUpdate","payload":' + EMPTY + "}}",
        '{"timestamp":0,"message":{"type":"ToolResult","payload":{"tool_call_id":"c1","return_value":{"is_error":false,'
        '"output":"look done","message":"","display":[],"extras":null}}}}',
        '{"timestamp":0,"message":{"type":"StepBegin","payload":{"n":2}}}',
        '{"timestamp":0,"message":{"type":"ContentPart","payload":{"type":"text","text":"done"}}}',
        '{"timestamp":0,"message":{"type":"StatusUpdate","payload":{"context_usage":null,"context_tokens":10,'
        '"max_context_tokens":null,"token_usage":{"input_other":10,"output":5,"input_cache_read":0,'
        '"input_cache_creation":0},"message_id":null,"plan_mode":false,"mcp_status":null}}}',
        '{"timestamp":0,"message":{"type":"TurnEnd","payload":{}}}',
        "",
    ]
    stamps = [row["timestamp"] for row in desk.lines("wire.jsonl")[1:]]
    times = [event.at_ms / 1000 for event in await desk.process.events(thread.id)]
    assert stamps == sorted(stamps)
    assert set(stamps) <= set(times)
    prompt, *context = desk.text("context.jsonl").split("\n")
    assert json.loads(prompt)["role"] == "_system_prompt"
    assert context == [
        '{"role":"_checkpoint","id":0}',
        '{"role":"user","content":"hé"}',
        '{"role":"_checkpoint","id":1}',
        '{"role":"assistant","content":[{"type":"think","think":"hm","encrypted":null},'
        '{"type":"text","text":"let me\\u2028"}],"tool_calls":[{"type":"function","id":"c1","function":{"name":"look",'
        '"arguments":"{\\"a\\": 1}"}}]}',
        '{"role":"tool","content":"look done","tool_call_id":"c1"}',
        '{"role":"_checkpoint","id":2}',
        '{"role":"assistant","content":[{"type":"text","text":"done"}]}',
        '{"role":"_usage","token_count":15}',
        "",
    ]
    assert json.loads((desk.share / "kimi.json").read_text()) == {
        "work_dirs": [{"path": WORK, "kaos": "local", "last_session_id": "s1"}]
    }


@pytest.mark.req("mechanisms:M6.resumable")
async def test_each_turn_is_put_behind_the_others_and_checkpoints_count_on(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))
    first = desk.text("wire.jsonl"), desk.text("context.jsonl")
    await desk.process.run(thread.id, GatedProvider(text("two")))
    assert desk.text("wire.jsonl").startswith(first[0])
    assert desk.text("context.jsonl").startswith(first[1])
    assert kinds_of(desk) == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"] * 2
    assert [r["id"] for r in desk.lines("context.jsonl") if r["role"] == "_checkpoint"] == [0, 1, 2, 3]


@pytest.mark.req("mechanisms:M6.before")
async def test_the_files_are_written_before_anybody_hears_of_the_end(desk: Desk) -> None:
    thread = await desk.open()
    seen: list[str] = []

    def look(event: Event) -> None:
        if isinstance(event.payload, TurnFinished):
            seen.append(kinds_of(desk)[-1])

    desk.process.feed.handle(look)
    await desk.process.run(thread.id)
    assert seen == ["TurnEnd"]


@pytest.mark.req("mechanisms:M6.never_fails")
async def test_files_that_cannot_be_written_fail_no_turn_and_are_caught_up_with(desk: Desk) -> None:
    thread = await desk.open()
    desk.share.write_text("in the way")
    assert (await desk.process.run(thread.id, say="first")).state == "done"
    assert "not up to date" in desk.notes[0]
    desk.share.unlink()
    await desk.open()
    assert kinds_of(desk)[-1] == "TurnEnd"


@pytest.mark.req("mechanisms:M6.resumable")
async def test_what_was_written_and_not_noted_is_not_written_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))

    async def full(mirror: object) -> None:
        raise StorageFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(desk.process.journal, "put_mirror", full)
        await desk.process.run(thread.id, GatedProvider(text("two")))
    cut = desk.text("context.jsonl")[:-10]
    desk.write("context.jsonl", cut)  # and killed before the last words were written
    assert (await desk.open()).id == thread.id
    await desk.process.run(thread.id, GatedProvider(text("three")))
    assert kinds_of(desk).count("TurnBegin") == 3
    assert [r["content"][0]["text"] for r in desk.lines("context.jsonl") if r["role"] == "assistant"] == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.req("mechanisms:M6.resumable")
async def test_a_turn_under_way_is_not_written_before_its_end(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))
    gate = Gate()
    started = await desk.process.start(thread.id, GatedProvider([*text("two"), gate]))
    await desk.process.seen(lambda e: e.kind == "step.started" and e.turn == started.turn.id, thread.id)
    await desk.open()
    assert kinds_of(desk).count("TurnBegin") == 1
    gate.open()
    await desk.process.ended(started.turn.id)
    assert kinds_of(desk) == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"] * 2
    assert [r["id"] for r in desk.lines("context.jsonl") if r["role"] == "_checkpoint"] == [0, 1, 2, 3]


@pytest.mark.req("mechanisms:M6.missing")
async def test_a_missing_file_is_written_anew(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id)
    before = desk.text("wire.jsonl"), desk.text("context.jsonl")
    for name in ("wire.jsonl", "context.jsonl"):
        (desk.directory / name).unlink()
    assert (await desk.open()).id == thread.id
    assert (desk.text("wire.jsonl"), desk.text("context.jsonl")) == before


@pytest.mark.req("mechanisms:M6.foreign")
async def test_what_somebody_put_behind_it_is_taken_over_as_items(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))
    desk.append("context.jsonl", user("by another program"))
    kept = desk.text("context.jsonl")
    assert (await desk.open()).id == thread.id
    model = GatedProvider(text("two"))
    await desk.process.run(thread.id, model, say="now")
    assert [i.body.parts[0].text for i in model.requests[0].items if isinstance(i.body, UserMessage)] == [
        "please",
        "by another program",
        "now",
    ]
    assert desk.text("context.jsonl").startswith(kept)
    assert desk.text("context.jsonl").count("by another program") == 1


@pytest.mark.req("mechanisms:M6.foreign")
async def test_a_file_somebody_rewrote_is_another_thread_under_its_name_and_not_overwritten(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))
    desk.write("context.jsonl", user("rewritten"))
    await desk.process.run(thread.id, GatedProvider(text("two")))  # meanwhile
    assert desk.text("context.jsonl") == user("rewritten")
    other = await desk.open()
    assert other.id != thread.id
    assert [b.parts[0].text for b in await desk.process.bodies(other.id, UserMessage)] == ["rewritten"]
    assert len(await desk.process.bodies(thread.id, UserMessage)) == 2
    await desk.process.run(other.id, GatedProvider(text("three")), say="go on")
    assert desk.text("context.jsonl").startswith(user("rewritten"))
    assert [r["content"] for r in desk.lines("context.jsonl") if r["role"] == "user"] == ["rewritten", "go on"]
    assert (await desk.open()).id == other.id


KIMIS = (
    '{"role": "_system_prompt", "content": "You are Kimi"}\n{"role": "_checkpoint", "id": 0}\n'
    '{"role":"user","content":[{"type":"text","text":"earlier"}]}\n{"role": "_checkpoint", "id": 1}\n'
    '{"role":"assistant","content":[{"type":"think","think":"hm"},{"type":"text","text":"look"}],'
    '"tool_calls":[{"type":"function","id":"t1","function":{"name":"Shell","arguments":"{}"}}]}\n'
    '{"role": "_usage", "token_count": 7}\n'
    '{"role":"tool","content":[{"type":"text","text":"out"}],"tool_call_id":"t1"}\n'
    '{"role":"assistant","content":"done"}\n'
)


@pytest.mark.req("wire:S93")
async def test_how_an_earlier_programs_call_ended_is_not_taken_for_its_output(desk: Desk, connect: Connect) -> None:
    def ended(call: str, *texts: str) -> str:
        return json.dumps(
            {"role": "tool", "content": [{"type": "text", "text": t} for t in texts], "tool_call_id": call}
        )

    calls = [{"type": "function", "id": f"t{n}", "function": {"name": "Shell", "arguments": "{}"}} for n in range(4)]
    lines = [
        user("go").strip(),
        json.dumps({"role": "assistant", "content": [], "tool_calls": calls}),
        ended("t0", "<system>It is done.</system>", "out\n"),
        ended("t1", "<system>ERROR: Exit 3.</system>", "half\n"),
        ended("t2", "<system>Tool output is empty.</system>"),
        ended("t3", "<system> is a tag</system> of theirs"),
    ]
    desk.write("context.jsonl", "".join(line + "\n" for line in lines))
    results = (await desk.process.bodies((await desk.open()).id))[-4:]
    assert [r.text for r in results] == [
        "out\n",
        "half\n\nExit 3.",
        "Tool output is empty.",
        "<system> is a tag</system> of theirs",
    ]
    told = await connect(thread=(await desk.open()).id).call("replay")
    shown = [p["return_value"] for p in payloads(told, "ToolResult")]
    assert [(v["is_error"], v["message"]) for v in shown] == [
        (False, "It is done."),
        (True, "Exit 3."),
        (False, "Tool output is empty."),
        (False, ""),
    ]


@pytest.mark.req("wire:S93")
async def test_a_session_of_an_earlier_program_goes_on_here(desk: Desk, connect: Connect) -> None:
    desk.write("context.jsonl", KIMIS)
    desk.write("wire.jsonl", '{"type": "metadata", "protocol_version": "1.9"}\n')
    thread = await desk.open()
    bodies = await desk.process.bodies(thread.id)
    assert [type(b) for b in bodies] == [
        UserMessage,
        Reasoning,
        AssistantMessage,
        ToolCall,
        ToolResult,
        AssistantMessage,
    ]
    assert bodies[4].name == "Shell"
    await desk.process.run(thread.id, GatedProvider(text("more")))
    assert desk.text("context.jsonl").startswith(KIMIS)
    assert [r["id"] for r in desk.lines("context.jsonl") if r["role"] == "_checkpoint"] == [0, 1, 2, 3]
    assert desk.lines("wire.jsonl")[0]["protocol_version"] == "1.9"
    assert kinds_of(desk)[0] == "TurnBegin"
    told = await connect(thread=thread.id).call("replay")
    assert kinds(told)[:6] == ["TurnBegin", "ContentPart", "ContentPart", "ToolCall", "ToolResult", "ContentPart"]
    assert payloads(told, "TurnBegin") == [{"user_input": "earlier"}, {"user_input": "please"}]
    assert kinds(told).count("TurnEnd") == 2
    assert spoken(told) == "lookdonemore"


@pytest.mark.req("wire:S94", "wire:S95")
async def test_sound_and_videos_are_written_with_their_urls_and_ids_and_read_back_as_they_were(
    desk: Desk, tmp_path: Path
) -> None:
    thread = await desk.open()
    clip = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AA==", label="v-1")
    sound = MediaPart(MediaKind.AUDIO, "data:audio/aac;base64,AA==")
    starter = desk.process.starter(GatedProvider([*text("so"), MediaChunk(clip)]))
    said = (TextPart("see"), sound, clip)
    started = await desk.process.turns.start(thread.id, said, starter)
    await desk.process.ended(started.turn.id)
    video = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "id": "v-1"}}
    audio = {"type": "audio_url", "audio_url": {"url": "data:audio/aac;base64,AA==", "id": None}}
    rows = [row["message"] for row in desk.lines("wire.jsonl")[1:]]
    given = [{"type": "text", "text": "see"}, audio, video]
    answer = [{"type": "text", "text": "so"}, video]
    assert rows[0]["payload"] == {"user_input": given}
    assert [row["payload"] for row in rows if row["type"] == "ContentPart"] == answer
    written = [row for row in desk.lines("context.jsonl") if not row["role"].startswith("_")]
    assert written == [{"role": "user", "content": given}, {"role": "assistant", "content": answer}]
    other = Desk(desk.process, tmp_path, "s2")
    other.write("context.jsonl", desk.text("context.jsonl"))
    copied = await desk.process.bodies((await other.open()).id)
    assert copied == await desk.process.bodies(thread.id)


@pytest.mark.req("mechanisms:M6.foreign")
async def test_what_a_file_holds_is_taken_over_and_what_lies_elsewhere_is_named_where_it_stood(desk: Desk) -> None:
    """An earlier program opened addresses; nothing is opened for a file. What its model's server keeps stays there."""
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "audio_url", "audio_url": {"url": "data:audio/aac;base64,AA=="}},
        {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}},
        {"type": "video_url", "video_url": {"url": "ms://file-7", "id": "v"}},
    ]
    video = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "id": "w"}}
    lines = [
        {"role": "user", "content": parts},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "so"}, video],
            "tool_calls": [{"type": "function", "id": "c1", "function": {"name": "ReadMediaFile", "arguments": "{}"}}],
        },
        {"role": "tool", "content": [{"type": "text", "text": "clip"}, video], "tool_call_id": "c1"},
    ]
    desk.write("context.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    body, said, sent, _, result = await desk.process.bodies((await desk.open()).id)
    held = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AA==", label="w")
    assert (said, sent) == (AssistantMessage("so"), AssistantMessage("[a video, video/mp4, 3 bytes]", sent=held))
    assert (result.text, result.images) == ("clip", (held,))
    assert body.parts == (
        TextPart("see"),
        TextPart("[an image at https://example.com/a.png]"),
        ImagePart("image/png", "iVBORw0KGgo="),
        MediaPart(MediaKind.AUDIO, "data:audio/aac;base64,AA=="),
        TextPart("[a video at https://example.com/v.mp4]"),
        MediaPart(MediaKind.VIDEO, "ms://file-7", label="v"),
    )


@pytest.mark.req("mechanisms:M6.foreign", "wire:S95")
async def test_behind_a_line_that_was_never_finished_a_new_one_is_begun(desk: Desk) -> None:
    """An earlier program was killed while it wrote. What it left stays, and what follows can be read."""
    desk.write("context.jsonl", user("earlier") + '{"role":"assistant","cont')
    desk.write("wire.jsonl", '{"type": "metadata", "protocol_version": "1.9"}\n{"timestamp":1.0,"mess')
    thread = await desk.open()
    assert len(await desk.process.bodies(thread.id)) == 1
    await desk.process.run(thread.id, GatedProvider(text("more")))
    await desk.process.run(thread.id, GatedProvider(text("again")))
    wire = desk.text("wire.jsonl").splitlines()
    assert wire[1] == '{"timestamp":1.0,"mess'
    assert [json.loads(line)["message"]["type"] for line in wire[2:]].count("TurnBegin") == 2
    context = desk.text("context.jsonl").splitlines()
    assert context[1] == '{"role":"assistant","cont'
    assert [json.loads(line)["role"] for line in context[2:]].count("user") == 2


@pytest.mark.req("mechanisms:M6.foreign")
@pytest.mark.parametrize(
    "line",
    [b"not json", b'{"role":"user","content":"\xff"}', b'{"role":"user","content":' + b"[" * 5000 + b"]" * 5000 + b"}"],
    ids=["no json", "no text", "too deep"],
)
async def test_what_cannot_be_understood_is_left_as_it_is(desk: Desk, line: bytes) -> None:
    there = b'{"role":"user","content":"x"}\n' + line + b"\n"
    desk.directory.mkdir(parents=True)
    (desk.directory / "context.jsonl").write_bytes(there)
    thread = await desk.open()
    assert await desk.process.bodies(thread.id) == []
    assert "Line 2" in desk.notes[0]
    await desk.process.run(thread.id)
    assert (desk.directory / "context.jsonl").read_bytes() == there


@pytest.mark.req("wire:S93")
@pytest.mark.parametrize(
    "there", ["{broken", "[]", '{"custom_title":"\\ud800"}', '{"x":' + "[" * 5000 + "]" * 5000 + "}"]
)
async def test_a_state_that_somebody_has_broken_is_left_alone_and_holds_up_nothing(desk: Desk, there: str) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id)
    desk.write("state.json", there)
    (desk.share / "kimi.json").unlink()
    assert (await desk.open()).id == thread.id
    assert "state.json" in desk.notes[-1]
    await desk.process.run(thread.id)
    assert desk.text("state.json") == there
    assert kinds_of(desk).count("TurnEnd") == 2
    assert await desk.files.last_used(str(desk.share), WORK) == "s1"


async def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_taken_over(desk: Desk) -> None:
    bad = {"type": "audio_url", "audio_url": {"url": "data:audio/x,zz"}}
    desk.write("context.jsonl", json.dumps({"role": "user", "content": [bad]}) + "\n" + user("and this"))
    thread = await desk.open()
    first, second = await desk.process.bodies(thread.id)
    assert "sound" in text_of(first)
    assert text_of(second) == "and this"


@pytest.mark.req("wire:S28")
async def test_a_cleared_thread_begins_its_context_anew_and_keeps_the_old(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")))
    before = desk.text("context.jsonl")
    await desk.process.threads.clear(thread.id)
    assert desk.text("context_1.jsonl") == before
    assert [r["role"] for r in desk.lines("context.jsonl")] == ["_system_prompt"]
    await desk.process.run(thread.id, GatedProvider(text("two")), say="afresh")
    assert [r["content"] for r in desk.lines("context.jsonl") if r["role"] == "user"] == ["afresh"]
    assert desk.lines("context.jsonl")[1] == {"role": "_checkpoint", "id": 0}
    await desk.process.threads.clear(thread.id)
    assert (desk.directory / "context_2.jsonl").exists()


async def test_a_reverted_thread_keeps_in_its_context_what_the_model_still_reads(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")), say="first")
    await desk.process.run(thread.id, GatedProvider(text("two")), say="second")
    await desk.process.threads.revert(thread.id, 2)
    said = [r["content"] for r in desk.lines("context.jsonl") if r["role"] in ("user", "assistant")]
    assert said == ["first", [{"type": "text", "text": "one"}]]


@pytest.mark.req("wire:S57")
async def test_state_says_what_is_granted_and_grants_nothing_itself(desk: Desk, connect: Connect) -> None:
    thread = await desk.open()
    model = GatedProvider(call("shell", call_id="c1"), text("one"), call("shell", call_id="c2"), text("two"))
    peer = connect(model, [FakeTool("shell", effect=Effect.EXECUTE)], thread=thread.id)
    heard = await peer.prompt("go", lambda request: {"response": "approve"})
    assert kinds(heard).count("ApprovalRequest") == 1
    assert desk.state()["approval"]["auto_approve_actions"] == []
    state = {**desk.state(), "archived": True, "approval": {"yolo": False, "auto_approve_actions": ["run command"]}}
    desk.write("state.json", json.dumps(state))
    await desk.open()
    heard = await peer.prompt("go", lambda request: {"response": "approve_for_session"})
    assert kinds(heard).count("ApprovalRequest") == 1
    assert desk.state()["approval"]["auto_approve_actions"] == ["run command"]
    assert desk.state()["archived"] is True
    for grant in await desk.process.journal.grants():
        await desk.process.journal.revoke_grant(grant.id)
    await desk.open()
    assert desk.state()["approval"]["auto_approve_actions"] == []


async def test_the_title_is_the_first_words_until_somebody_gives_another(desk: Desk) -> None:
    thread = await desk.open()
    await desk.process.run(thread.id, GatedProvider(text("one")), say="look at the roof")
    assert desk.state()["custom_title"] == "look at the roof"
    desk.write("state.json", json.dumps({**desk.state(), "custom_title": "theirs"}))
    await desk.process.run(thread.id, GatedProvider(text("two")))
    assert desk.state()["custom_title"] == "theirs"
    await desk.process.threads.rename(thread.id, "ours")
    assert desk.state()["custom_title"] == "ours"


async def test_other_peoples_rows_and_broken_files_are_left_alone(desk: Desk) -> None:
    thread = await desk.open()
    desk.share.mkdir()
    theirs = {"path": "/elsewhere", "kaos": "local", "last_session_id": "x", "more": 1}
    (desk.share / "kimi.json").write_text(json.dumps({"work_dirs": [theirs], "thinking": True}))
    await desk.process.run(thread.id)
    found = json.loads((desk.share / "kimi.json").read_text())
    assert found["thinking"] is True
    assert found["work_dirs"] == [theirs, {"path": WORK, "kaos": "local", "last_session_id": "s1"}]
    assert await desk.files.last_used(str(desk.share), WORK) == "s1"
    (desk.share / "kimi.json").write_text("{broken")
    await desk.process.run(thread.id)
    assert (desk.share / "kimi.json").read_text() == "{broken"
    assert await desk.files.last_used(str(desk.share), WORK) == ""


@pytest.mark.parametrize("name", ["../../outside", "..", ".hidden", "a/b", "", "x" * 300])
async def test_a_name_that_is_no_directorys_has_no_files(process: Process, tmp_path: Path, name: str) -> None:
    desk = Desk(process, tmp_path, name)
    thread = await desk.open()
    await process.run(thread.id)
    assert not desk.share.exists()
    assert not (tmp_path / "outside").exists()


@pytest.mark.req("mechanisms:M6.delete", "mechanisms:M5.delete")
async def test_a_deleted_thread_takes_its_files_along_but_not_what_others_wrote(desk: Desk) -> None:
    for theirs in (False, True):
        thread = await desk.open()
        await desk.process.run(thread.id, GatedProvider(text("one")))
        await desk.process.threads.clear(thread.id)
        await desk.process.run(thread.id, GatedProvider(text("two")))
        if theirs:
            desk.append("wire.jsonl", "{}\n")
            desk.write("notes.txt", "mine")
        await desk.process.threads.delete(thread.id, ME)
        assert desk.directory.exists() is theirs
    assert sorted(p.name for p in desk.directory.iterdir()) == ["notes.txt", "wire.jsonl"]


@pytest.mark.req("wire:S113")
async def test_an_empty_directory_is_removed_and_a_full_one_stays(desk: Desk) -> None:
    desk.directory.mkdir(parents=True)
    await desk.files.leave(desk.place)
    assert not desk.directory.exists()
    thread = await desk.open()
    await desk.process.run(thread.id)
    await desk.files.leave(desk.place)
    assert (desk.directory / "wire.jsonl").exists()


@pytest.mark.req("wire:S94")
async def test_the_name_of_the_directory_is_the_md5_of_the_work_dir(desk: Desk) -> None:
    assert desk.directory.parent.name == MD5
