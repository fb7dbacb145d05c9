"""Commands that change how freely turns act, or that touch files: with the whole engine, as a process has it."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from quintet.app import App, open_app
from quintet.domain.item import UserMessage, text_of
from quintet.engine.leave import Leave
from quintet.engine.plans import PUT_ASIDE
from quintet.serving.wire import WireFlags, wire_house
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message, Peer
from tests.faults.processes import write_home

WRITES = 'scope: turn\ntool_call: WriteFile {"path": "made", "content": "hi"}\n---\ntext: "end"\n'
ASKS = (
    'scope: turn\ntool_call: AskUserQuestion {"questions": [{"question": "which?", "options": '
    '[{"label": "a"}, {"label": "b"}]}]}\n---\ntext: "end"\n'
)
PLANS = 'scope: turn\ntool_call: ExitPlanMode {"plan": "# first this"}\n---\ntext: "begun"\n'
BOTH = {"supports_question": True, "supports_plan_mode": True}
Start = Callable[..., Awaitable[Peer]]


def approve(request: Message) -> Message:
    return {"response": "approve"}


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """One process after the other, in one home and one directory."""
    (tmp_path / "work").mkdir()
    async with AsyncExitStack() as stack:

        async def make(script: str = 'scope: turn\ntext: "hello"\n', config: str = "", **flags: Any) -> Peer:
            home = write_home(tmp_path / "home", script, config)
            app: App = await stack.enter_async_context(open_app(str(home), "wire"))
            given = {"session": "s1", "work_dir": str(tmp_path / "work"), "share_dir": str(tmp_path / "share")}
            peer = Peer.at(wire_house(app, WireFlags(**{**given, **flags})))
            stack.push_async_callback(peer.close)
            peer.app = app  # type: ignore[attr-defined]
            await peer.initialize(capabilities=BOTH)
            return peer

        yield make


def state(tmp_path: Path) -> dict[str, Any]:
    (found,) = (tmp_path / "share" / "sessions").glob("*/s1/state.json")
    told: dict[str, Any] = json.loads(found.read_text())["approval"]
    return told


@pytest.mark.req("wire:S28", "wire:S60")
async def test_yolo_asks_no_more_until_it_is_ended_and_the_file_shows_it(start: Start, tmp_path: Path) -> None:
    peer = await start(WRITES)
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))
    heard = await peer.prompt("/yolo")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    assert "Yolo is on" in spoken(heard)
    assert state(tmp_path)["yolo"] is True
    assert "ApprovalRequest" not in kinds(await peer.prompt("go"))
    assert "Yolo is off" in spoken(await peer.prompt("/yolo"))
    assert state(tmp_path)["yolo"] is False
    os.unlink(tmp_path / "work" / "made")
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))


@pytest.mark.req("wire:S28", "security:S21")
async def test_what_a_file_says_of_yolo_gives_the_next_process_nothing(start: Start, tmp_path: Path) -> None:
    peer = await start(WRITES)
    await peer.prompt("/yolo")
    await peer.prompt("go")
    assert state(tmp_path)["yolo"] is True
    await peer.close()
    peer = await start(WRITES)
    os.unlink(tmp_path / "work" / "made")
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))
    assert state(tmp_path) == {"yolo": False, "afk": False, "auto_approve_actions": []}


@pytest.mark.req("wire:S28")
async def test_yolo_beyond_what_config_toml_allows_is_said_to_be_had_not(start: Start) -> None:
    peer = await start(WRITES, '[policy]\nmode = "ask"\n')
    said = spoken(await peer.prompt("/yolo"))
    assert "cannot be had" in said
    assert "mode = ask" in said
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))


@pytest.mark.req("wire:S28")
async def test_a_rule_of_the_person_asks_in_yolo_too(start: Start) -> None:
    peer = await start(WRITES, '[policy.rules]\n"write" = "ask"\n', yolo=True)
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))


@pytest.mark.req("wire:S28")
async def test_afk_dismisses_questions_at_once_and_begins_with_a_plan(start: Start, tmp_path: Path) -> None:
    peer = await start(ASKS)
    assert "Afk is on" in spoken(await peer.prompt("/afk"))
    heard = await peer.prompt("go")
    assert "QuestionRequest" not in kinds(heard)
    (result,) = payloads(heard, "ToolResult")
    assert not result["return_value"]["is_error"]
    assert json.loads(result["return_value"]["output"])["answers"] == {}
    assert state(tmp_path) == {"yolo": False, "afk": True, "auto_approve_actions": []}
    assert "Afk is off" in spoken(await peer.prompt("/afk"))
    heard = await peer.prompt("go", lambda request: {"answers": {"which?": "a"}})
    assert "QuestionRequest" in kinds(heard)


@pytest.mark.req("wire:S28")
async def test_started_with_afk_a_plan_is_begun_with_unless_a_rule_asks(start: Start) -> None:
    peer = await start(PLANS, afk=True, plan=True)
    heard = await peer.prompt("go")
    assert "ApprovalRequest" not in kinds(heard)
    assert payloads(heard, "StatusUpdate")[-1]["plan_mode"] is False
    await peer.close()
    peer = await start(PLANS, '[policy.rules]\n"exit_plan_mode" = "ask"\n', afk=True, plan=True)
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))


@pytest.mark.req("wire:S28")
async def test_yolo_alone_still_shows_the_plan_to_somebody(start: Start) -> None:
    peer = await start(PLANS, yolo=True, plan=True)
    assert "ApprovalRequest" in kinds(await peer.prompt("go", approve))


def test_leave_says_what_holds_when_one_of_two_ends() -> None:
    leave = Leave(yolo=True, afk=True)
    assert "afk is on" in leave.toggle_yolo()
    assert leave.mode.value == "allow"
    assert "are asked about" in leave.toggle_afk()
    assert leave.mode.value == "ask"
    leave = Leave(yolo=True, afk=True)
    assert "Yolo is still on" in leave.toggle_afk()


@pytest.mark.req("wire:S28")
async def test_the_last_plan_is_viewed_and_put_aside(start: Start) -> None:
    peer = await start(PLANS, plan=True)
    assert "No plan" in spoken(await peer.prompt("/plan view"))
    await peer.prompt("go", approve)
    assert spoken(await peer.prompt("/plan VIEW")) == "# first this"
    assert "put aside" in spoken(await peer.prompt("/plan clear"))
    assert "No plan" in spoken(await peer.prompt("/plan view"))
    app: App = peer.app  # type: ignore[attr-defined]
    (thread,) = await app.threads.page(_everything())
    assert text_of((await app.threads.items(thread.id))[-1].body) == PUT_ASIDE


@pytest.mark.req("wire:S28", "security:S16")
async def test_export_writes_markdown_into_the_workspace_and_over_nothing(start: Start, tmp_path: Path) -> None:
    peer, work = await start(), tmp_path / "work"
    assert "nothing to export" in spoken(await peer.prompt("/export"))
    await peer.prompt("say hello")
    said = spoken(await peer.prompt("/export"))
    (made,) = work.glob("quintet-export-*.md")
    assert made.name in said
    assert "say hello" in made.read_text()
    assert made.stat().st_mode & 0o777 == 0o600
    (work / "sub").mkdir()
    assert "sub/" in spoken(await peer.prompt("/export sub/"))
    assert "told.md" in spoken(await peer.prompt('/export "told.md"'))
    before = (work / "told.md").read_text()
    refused = spoken(await peer.prompt("/export told.md"))
    assert refused == "told.md exists already; nothing was overwritten. Name another file."
    (work / "link.md").symlink_to(tmp_path / "out.md")
    assert "link" in spoken(await peer.prompt("/export link.md"))
    for outside in ("../out.md", str(tmp_path / "out.md"), str(tmp_path / "home" / "out.md"), ".git/config"):
        heard = await peer.prompt(f"/export {outside}")
        assert "Exported" not in spoken(heard), outside
        assert heard[-1]["result"] == {"status": "finished"}
    assert (work / "told.md").read_text() == before
    assert not (tmp_path / "out.md").exists()


@pytest.mark.req("wire:S28", "security:S16")
async def test_import_gives_the_model_a_file_and_asks_it_nothing(start: Start, tmp_path: Path) -> None:
    peer, work = await start(), tmp_path / "work"
    (work / "notes.txt").write_text("the cellar is wet")
    (tmp_path / "secret").write_text("no")
    (work / "way").symlink_to(tmp_path / "secret")
    (work / "large").write_text("x" * 300_000)
    heard = await peer.prompt("/import notes.txt")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    assert "Imported the file notes.txt" in spoken(heard)
    for refused in ("", "none", "../secret", "way", "large", "."):
        said = spoken(await peer.prompt(f"/import {refused}"))
        assert "Imported" not in said, refused
    assert "256 KiB" in spoken(await peer.prompt("/import large"))
    app: App = peer.app  # type: ignore[attr-defined]
    (thread,) = await app.threads.page(_everything())
    (item,) = await app.threads.items(thread.id)
    assert isinstance(item.body, UserMessage)
    assert "the cellar is wet" in text_of(item.body)
    (context,) = (tmp_path / "share" / "sessions").glob("*/s1/context.jsonl")
    assert "the cellar is wet" in context.read_text()
    assert spoken(await peer.prompt("go on")) == "hello"


@pytest.mark.req("wire:S28")
async def test_import_takes_what_was_said_in_another_session_by_its_name(start: Start, tmp_path: Path) -> None:
    other = await start(session="other")
    await other.prompt("the cellar is wet")
    app: App = other.app  # type: ignore[attr-defined]
    await other.close()
    peer = await start()
    assert "another thread" in spoken(await peer.prompt("/import other"))
    (written,) = [t for t in await app.threads.page(_everything()) if t.title == "the cellar is wet"]
    assert "Imported another thread" in spoken(await peer.prompt(f"/import {written.id}"))
    assert "itself" in spoken(await peer.prompt("/import s1"))
    (here,) = [t for t in await app.threads.page(_everything()) if t.id != written.id]
    assert "the cellar is wet" in text_of((await app.threads.items(here.id))[0].body)


def working_in(tmp_path: Path) -> tuple[Path, str]:
    """A directory beside the work, and a script that works there with tools and commands."""
    beside = tmp_path / "beside"
    beside.mkdir()
    calls = [
        ("WriteFile", {"path": str(beside / "made"), "content": "hi"}),
        ("ReadFile", {"path": str(beside / "made")}),
        ("Glob", {"pattern": "*", "directory": str(beside)}),
        ("Shell", {"command": f"echo there > {beside}/by-command && cat {beside}/made"}),
    ]
    script = "scope: turn\n" + "---\n".join(f"tool_call: {name} {json.dumps(given)}\n" for name, given in calls)
    return beside, f'{script}---\ntext: "end"\n'


def failed(heard: list[Message]) -> list[bool]:
    return [row["return_value"]["is_error"] for row in payloads(heard, "ToolResult")]


@pytest.mark.req("wire:S28", "security:S29")
async def test_a_directory_that_is_added_is_worked_in_asked_about_shown_and_kept(start: Start, tmp_path: Path) -> None:
    beside, script = working_in(tmp_path)
    peer = await start(script)
    assert "No directory" in spoken(await peer.prompt("/add-dir"))
    assert failed(await peer.prompt("go", approve)) == [True] * 4
    assert f"Added {beside}" in spoken(await peer.prompt("/add-dir ../beside"))
    assert "already" in spoken(await peer.prompt(f"/add-dir {beside}"))
    assert str(beside) in spoken(await peer.prompt("/add-dir"))
    heard = await peer.prompt("go", approve)
    assert failed(heard) == [False] * 4
    assert kinds(heard).count("ApprovalRequest") == 2
    assert sorted(path.name for path in beside.iterdir()) == ["by-command", "made"]
    (found,) = (tmp_path / "share" / "sessions").glob("*/s1/state.json")
    assert json.loads(found.read_text())["additional_dirs"] == [str(beside)]
    await peer.close()
    peer = await start(script, yolo=True)
    assert failed(await peer.prompt("go")) == [False] * 4
    app: App = peer.app  # type: ignore[attr-defined]
    (thread,) = await app.threads.page(_everything())
    told = await app.diffs.of(thread.id)
    assert str(beside / "made") in [file.path for file in told.files]
    assert any("added to the workspace" in why for why in told.partial)
    await app.threads.revert(thread.id, 0, files=True)
    assert [path.name for path in beside.iterdir()] == ["by-command"]


@pytest.mark.req("security:S17", "mechanisms:M8.own")
async def test_undo_does_not_follow_a_link_that_was_put_into_an_added_directory(start: Start, tmp_path: Path) -> None:
    """What a command may move there must not lead the person's undo elsewhere."""
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    (beside / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    given = json.dumps({"path": str(beside / "sub" / "made"), "content": "hi"})
    peer = await start(f'scope: turn\ntool_call: WriteFile {given}\n---\ntext: "end"\n', yolo=True)
    await peer.prompt(f"/add-dir {beside}")
    assert failed(await peer.prompt("go")) == [False]
    os.rename(beside / "sub", beside / "away")
    (elsewhere / "made").write_text("hi")
    (beside / "sub").symlink_to(elsewhere)
    app: App = peer.app  # type: ignore[attr-defined]
    (thread,) = await app.threads.page(_everything())
    reverted = await app.threads.revert(thread.id, 0, files=True, force=True)
    assert (elsewhere / "made").exists()
    assert reverted.files is not None
    assert reverted.files.restored == ()


@pytest.mark.req("wire:S28", "security:S16")
async def test_exports_and_imports_reach_what_was_added_and_no_further(start: Start, tmp_path: Path) -> None:
    peer = await start()
    (beside := tmp_path / "beside").mkdir()
    (beside / "notes").write_text("the cellar is wet")
    (tmp_path / "secret").write_text("no")
    (beside / "way").symlink_to(tmp_path / "secret")
    await peer.prompt("say hello")
    assert "Imported" not in spoken(await peer.prompt(f"/import {beside}/notes"))
    await peer.prompt(f"/add-dir {beside}")
    assert "Imported" in spoken(await peer.prompt(f"/import {beside}/notes"))
    assert "Exported" in spoken(await peer.prompt(f"/export {beside}/told.md"))
    assert "the cellar is wet" in (beside / "told.md").read_text()
    for path in (beside / "way", beside / ".." / "secret"):
        assert "Imported" not in spoken(await peer.prompt(f"/import {path}")), path
    for path in (beside / "way", beside / ".." / "out.md", beside / ".git" / "config"):
        assert "Exported" not in spoken(await peer.prompt(f"/export {path}")), path
    assert not (tmp_path / "out.md").exists()


@pytest.mark.req("wire:S28", "security:S16")
async def test_what_cannot_be_added_is_told_and_a_file_adds_nothing(start: Start, tmp_path: Path) -> None:
    beside, script = working_in(tmp_path)
    peer = await start(script)
    for path in (tmp_path / "home", tmp_path, Path("/etc"), tmp_path / "none", Path("/")):
        assert "Added" not in spoken(await peer.prompt(f"/add-dir {path}")), path
    await peer.prompt("go", approve)
    (found,) = (tmp_path / "share" / "sessions").glob("*/s1/state.json")
    await peer.close()
    found.write_text(json.dumps(json.loads(found.read_text()) | {"additional_dirs": [str(beside)]}))
    peer = await start(script)
    assert failed(await peer.prompt("go", approve)) == [True] * 4
    assert json.loads(found.read_text())["additional_dirs"] == []


@pytest.mark.req("security:S44")
async def test_a_directory_with_a_known_secret_in_its_name_is_refused_in_words_and_not_lost_in_silence(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", "hunter2-hunter2")
    (tmp_path / "hunter2-hunter2").mkdir()
    peer = await start(add_dirs=(str(tmp_path / "hunter2-hunter2"),))
    assert "secret is part of its name" in spoken(await peer.prompt("/add-dir ../hunter2-hunter2"))
    assert "No directory" in spoken(await peer.prompt("/add-dir"))
    log = (tmp_path / "home" / "quintet.log").read_text()
    assert "secret is part of its name" in log
    assert "hunter2" not in log


@pytest.mark.req("wire:S28")
async def test_directories_of_the_command_line_are_added_to_those_of_the_thread(start: Start, tmp_path: Path) -> None:
    beside, script = working_in(tmp_path)
    (tmp_path / "more").mkdir()
    peer = await start(script, add_dirs=(str(beside), str(tmp_path / "work")))
    assert failed(await peer.prompt("go", approve)) == [False] * 4
    await peer.close()
    peer = await start(script, add_dirs=(str(tmp_path / "more"), str(tmp_path / "gone")))
    said = spoken(await peer.prompt("/add-dir"))
    assert [line.strip() for line in said.splitlines()[1:]] == [str(beside), str(tmp_path / "more")]


@pytest.mark.req("wire:S28", "wire:S01")
async def test_kimis_commands_are_listed(start: Start) -> None:
    greeting = await (await start()).initialize()
    listed = {row["name"] for row in greeting["result"]["slash_commands"]}
    assert {"init", "compact", "clear", "yolo", "afk", "plan", "add-dir", "export", "import", "help"} <= listed


def _everything() -> Any:
    from quintet.domain.thread import ThreadQuery

    return ThreadQuery()
