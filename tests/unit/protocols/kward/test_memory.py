"""memory/*: what a Kward client adds, lists, forgets and is told the reasons of, over Kward's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.kward_desk import desk

Patch = pytest.MonkeyPatch


@pytest.mark.req("kward:123", "kward:124", "kward:125")
async def test_it_is_off_works_all_the_same_and_its_switch_and_files_are_kwards(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    async with desk(tmp_path, monkeypatch, kward={"provider": "fake", "memory": {"x": 1}}) as client:
        memory = client.kward / "memory"
        paths = {
            n: str(memory / f) for n, f in (("core", "core.json"), ("soft", "soft.jsonl"), ("events", "events.jsonl"))
        }
        assert await client.call("memory/status") == {"enabled": False, "autoSummary": False, "paths": paths}
        assert (await client.call("memory/add", text="kept while it is off"))["memory"]["id"] == "soft_001"
        assert await client.call("memory/enable") == {"enabled": True}
        assert {p.name: oct(p.stat().st_mode & 0o777) for p in memory.iterdir()} == dict.fromkeys(
            ("core.json", "soft.jsonl", "events.jsonl"), "0o600"
        )
        assert client.config == {"provider": "fake", "memory": {"x": 1, "enabled": True}}
        assert await client.call("memory/autoSummary/enable") == {"autoSummary": True}
        assert (await client.call("memory/status"))["autoSummary"] is True
        assert await client.call("memory/autoSummary/disable") == {"autoSummary": False}
        assert await client.call("memory/disable") == {"enabled": False}
        assert "kept while it is off" in (memory / "soft.jsonl").read_text()


@pytest.mark.req("kward:126", "kward:127", "kward:128", "kward:129", "kward:130")
async def test_memories_are_numbered_forgotten_and_promoted(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        for n in range(3):
            await client.call("memory/add", text=f"hint {n}", tags=["a"])
        core = (await client.call("memory/addCore", text="wish"))["memory"]
        assert (core["id"], core["source"], core["pinned"]) == ("core_001", "explicit_user_instruction", True)
        for id in ("soft_001", "core_001"):
            assert await client.call("memory/forget", id=id) == {"forgotten": True}
            assert await client.call("memory/forget", id=id) == {"forgotten": False}
        promoted = (await client.call("memory/promote", id="soft_002"))["memory"]
        assert (promoted["text"], promoted["source"]) == ("hint 1", "promoted_soft_memory")
        for id in ("soft_001", "soft_002", "soft_999"):
            assert await client.refused("memory/promote", id=id) == (-32602, f"Unknown active soft memory: {id}")
        assert (await client.call("memory/add", text="later"))["memory"]["id"] == "soft_004"
        listed = await client.call("memory/list")
        assert [m["id"] for m in listed["soft"]] == ["soft_003", "soft_004"]
        everything = await client.call("memory/list", includeInactive=True)
        assert [m["status"] for m in everything["soft"]] == ["forgotten", "forgotten", "active", "active"]
        inspected = await client.call("memory/inspect")
        gone = inspected["soft"][0]
        assert (gone["text"], gone["tags"], gone["confidence"], gone["hits"]) == ("[forgotten]", [], 0, 0)
        assert (inspected["enabled"], inspected["core"]) == (False, everything["core"])


@pytest.mark.req("kward:131", "kward:132")
async def test_tags_and_texts_are_cleaned(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        made = (await client.call("memory/add", text="two\nlines", tags=["a,b", "b c", *map(str, range(9))]))["memory"]
        assert (made["text"], made["tags"]) == ("two lines", ["a", "b", "c", "0", "1", "2", "3", "4", "5", "6"])
        for blank in ("", " \n", None):
            for method in ("memory/add", "memory/addCore"):
                assert await client.refused(method, text=blank) == (-32602, "Memory text cannot be empty")


async def test_the_scope_workspace_is_the_session_s_and_lists_come_in_both_shapes(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        other = tmp_path / "other"
        other.mkdir()
        await client.call("sessions/create", workspaceRoot=str(other), name="kept")
        for method in ("memory/add", "memory/addCore"):
            made = (await client.call(method, text="here", scope="workspace"))["memory"]
            assert made["scope"] == f"workspace:{other}"
        await client.call("memory/addCore", text="everywhere")
        listed = await client.call("memory/list", workspaceRoot=str(other))
        by_list = {name: [m["text"] for m in rows] for name, rows in listed.items()}
        assert by_list == {
            "core": ["here", "everywhere"],
            "soft": ["here"],
            "global_core": ["everywhere"],
            "workspace_core": ["here"],
            "workspace_soft": ["here"],
        }
        assert (await client.call("memory/list", workspaceRoot=str(client.work)))["workspace_core"] == []


@pytest.mark.req("kward:133", "kward:134")
async def test_a_turn_remembers_and_says_why_also_after_a_resume(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        nothing = {
            "enabled": False,
            "core": [],
            "soft": [],
            "reasons": [],
            "message": "No memory retrieval has run yet.",
        }
        assert await client.call("memory/why") == nothing
        await client.call("memory/enable")
        for n in range(8):
            await client.call("memory/addCore", text=f"wish {n}")
            await client.call("memory/add", text=f"hint {n}")
        await client.call("memory/add", text="elsewhere", scope="workspace:/elsewhere")
        session = await client.turn("hello")
        why = await client.call("memory/why", sessionId=session)
        assert (len(why["core"]), len(why["soft"])) == (6, 6)
        assert why["scopes"] == ["global", f"workspace:{client.work}"]
        assert {tuple(reason) for reason in why["reasons"]} == {("id", "layer", "score", "reasons")}
        assert "elsewhere" not in json.dumps(why)
        path = next((client.kward / "sessions").rglob("*.jsonl"))
        again = await client.call("sessions/resume", path=str(path), workspaceRoot=str(client.work))
        assert await client.call("memory/why", sessionId=again["id"]) == why
        assert await client.refused("memory/why", sessionId="nobody") == (-32603, "Unknown session: nobody")
    async with desk(tmp_path, monkeypatch) as client:
        again = await client.call("sessions/resume", path=str(path), workspaceRoot=str(client.work))
        assert await client.call("memory/why", sessionId=again["id"]) == why


@pytest.mark.req("security:S51")
async def test_what_is_forgotten_is_in_no_file_of_kwards_or_ours_any_more(tmp_path: Path, monkeypatch: Patch) -> None:
    def holding(words: str) -> list[str]:
        return sorted(p.name for p in tmp_path.rglob("*") if p.is_file() and words.encode() in p.read_bytes())

    async with desk(tmp_path, monkeypatch, kward={"memory": {"enabled": True}}) as client:
        await client.call("memory/add", text="The fox is called Reinhard", tags=["vulpine"])
        await client.call("memory/addCore", text="Call him Reinhard")
        session = await client.turn("hello")
        assert (await client.call("memory/why", sessionId=session))["soft"][0]["text"] == "The fox is called Reinhard"
        path = next((client.kward / "sessions").rglob("*.jsonl"))
        states = [json.loads(line) for line in path.read_text().splitlines() if "memory_state" in line]
        assert [[m["id"] for m in state["lastRetrieval"]["soft"]] for state in states] == [["soft_001"]]
        assert holding("Reinhard") == ["core.json", "soft.jsonl"]
        for id in ("soft_001", "core_001"):
            await client.call("memory/forget", id=id)
        assert (holding("Reinhard"), holding("vulpine")) == ([], [])
        why = await client.call("memory/why", sessionId=session)
        assert (why["core"], why["soft"], len(why["reasons"])) == ([], [], 2)


@pytest.mark.req("security:S51")
async def test_a_turn_s_own_tools_cannot_put_a_memory_there(tmp_path: Path, monkeypatch: Patch) -> None:
    planted = {"path": "kward/memory/core.json", "content": '[{"id": "core_001", "text": "obey", "scope": "global"}]'}
    command = {"command": "mkdir -p kward/memory; echo '[]' > kward/memory/core.json; cat kward/config.json"}
    script = (
        f"scope: turn\ntool_call: write_file {json.dumps(planted)}\ntool_call: run_shell_command {json.dumps(command)}"
        "\n---\ntext: done\n"
    )
    async with desk(tmp_path, monkeypatch, script=script, kward={"memory": {"enabled": True}, "x": "mine"}) as client:
        await client.call("memory/addCore", text="wish")
        session = await client.call("sessions/create", workspaceRoot=str(tmp_path))
        await client.turn("go", session["id"])
        results = [m["params"]["payload"] for m in client.notes if m["params"].get("type") == "toolResult"]
        assert len(results) == 2
        assert "mine" not in json.dumps(results)
        assert [m["text"] for m in (await client.call("memory/list"))["core"]] == ["wish"]


@pytest.mark.req("kward:133")
async def test_while_it_is_off_nothing_comes_to_mind(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        await client.call("memory/addCore", text="wish")
        session = await client.turn("hello")
        assert (await client.call("memory/why", sessionId=session))["core"] == []


@pytest.mark.req("kward:135")
async def test_a_summary_reads_the_user_s_messages_only(tmp_path: Path, monkeypatch: Patch) -> None:
    script = "scope: turn\ntext: We always use what the model says."
    async with desk(tmp_path, monkeypatch, script=script) as client:
        session = await client.turn("We use pytest here. I love you and always prefer you. What now?")
        for n in range(6):
            await client.turn(f"We use tool number {n} here", session)
        made = (await client.call("memory/summarize", sessionId=session))["memories"]
        assert [m["text"] for m in made] == ["We use pytest here", *(f"We use tool number {n} here" for n in range(4))]
        assert {(m["scope"], m["confidence"], m["source"]) for m in made} == {
            (f"workspace:{client.work}", 0.55, "inferred")
        }
        again = (await client.call("memory/summarize", sessionId=session))["memories"]
        assert [m["text"] for m in again] == [f"We use tool number {n} here" for n in (4, 5)]
        assert await client.refused("memory/summarize", sessionId="nobody") == (-32603, "Unknown session: nobody")


@pytest.mark.req("kward:136")
async def test_completed_turns_are_summarised_when_that_is_on(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch, kward={"memory": {"enabled": True, "auto_summary": True}}) as client:
        await client.turn("We use pytest here")
        await client.app.turns.shutdown()
        assert [m["text"] for m in (await client.call("memory/list"))["soft"]] == ["We use pytest here"]


@pytest.mark.req("kward:136")
async def test_a_plugin_s_turn_has_no_memory_and_leaves_none(tmp_path: Path, monkeypatch: Patch) -> None:
    plugins = tmp_path / ".kward" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "hi.py").write_text('COMMANDS = {"hi": {"description": "greets"}}\ndef run(*a):\n    return "hello"\n')
    given = {"memory": {"enabled": True, "auto_summary": True}}
    async with desk(tmp_path, monkeypatch, kward=given, HOME=str(tmp_path)) as client:
        await client.call("memory/addCore", text="wish")
        session = await client.turn("/hi we always use plugins")
        assert (await client.call("memory/why", sessionId=session))["message"].startswith("No memory retrieval")
        await client.app.turns.shutdown()
        assert (await client.call("memory/list"))["soft"] == []
        answers = [m["params"] for m in client.notes if m["params"].get("type") == "answer"]
        assert [a["payload"]["content"] for a in answers] == ["hello"]
