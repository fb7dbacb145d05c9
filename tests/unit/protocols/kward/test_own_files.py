"""What lies around Kward's configuration reaches the model, through the whole app and real HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.kward_desk import desk
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.told import told
from tests.fakes.waiting import until

SKILL = 'scope: thread\ntool_call: read_skill {"name": "reviewing"}\n---\ntext: read'


def config(server: ModelServer) -> str:
    return f'default_model = "far/m"\n[providers.far]\nkind = "openai-chat"\nbase_url = "{server.url}"\n'


def furnished(kward: Path) -> None:
    skill = kward / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: reviewing\ndescription: Review well\n---\nLook closely.\n")
    (kward / "AGENTS.md").write_text("Mind the hen.\n")


async def test_kwards_instructions_and_skills_are_told_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(tmp_path / "kward")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Mind the fox.\n")
    async with ModelServer(SKILL) as server, desk(tmp_path, monkeypatch, script="", config=config(server)) as client:
        session = await client.turn("go")
        first, second = (told(request.body) for request in server.requests)
        assert "Mind the hen." in first.instructions
        assert "Mind the fox." in first.instructions
        assert first.instructions.index("Mind the hen.") < first.instructions.index("Mind the fox.")
        assert "reviewing" in first.instructions
        assert "Look closely." in str(second)
        assert {"read_file", "edit_file", "write_file", "run_shell_command", "ask_user_question"} <= {
            tool["function"]["name"] for tool in (await client.call("tools/list"))["tools"]
        }
        sections = (await client.call("resources/startup", sessionId=session))["sections"]
        assert [section["name"] for section in sections] == ["Context", "Skills"]


async def test_compaction_goes_by_kwards_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "scope: thread\n" + "\n---\n".join(f"text: {n} {'word ' * 200}" for n in range(3)) + "\n---\ntext: short"
    chosen = {"enabled": False, "keep_recent_tokens": 300}
    async with desk(tmp_path, monkeypatch, script=script, kward={"compaction": chosen}) as client:
        session = await client.turn(f"0 {'word ' * 200}")
        for number in (1, 2):
            await client.turn(f"{number} {'word ' * 200}", session)
        state = await client.call("runtime/state", sessionId=session)
        assert state["autoCompactionEnabled"] is False
        made = await client.call("sessions/compact", sessionId=session)
        assert made["firstKeptEntryId"] == "message:5"


async def test_a_plugin_tells_the_model_something_and_hears_of_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    plugins = tmp_path / ".kward" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "own.py").write_text(
        "import os\n"
        "def prompt_context(context):\n    return 'Mind the goose in ' + os.path.basename(context['workspaceRoot'])\n"
        "def transcript_events(events, context):\n"
        "    with open('heard', 'w') as file:\n        file.write(' '.join(event['type'] for event in events))\n"
    )
    (plugins / "broken.py").write_text("def prompt_context(context):\n    raise ValueError('no')\n")
    async with (
        ModelServer("text: hello") as server,
        desk(tmp_path, monkeypatch, script="", config=config(server)) as client,
    ):
        await client.turn("go")
        assert "# From the plugin own.py\nMind the goose in work" in told(server.requests[0].body).instructions
        await until(lambda: (client.work / "heard").exists() and "turnFinished" in (client.work / "heard").read_text())
        assert (client.work / "heard").read_text().startswith("turnQueued turnStarted assistantDelta")
