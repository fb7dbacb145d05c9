"""What a client learns of server and session: capabilities, state, counts, tools, commands, resources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.kward_peer import Message, Peer
from tests.fakes.providers import GatedProvider, call, text
from tests.unit.protocols.kward.conftest import Connect

DETAILS = ["transcript", "sessions", "turns", "events", "attachments", "models", "runtime", "runtimeSettings", "auth"]
DETAILS += ["memory", "commands", "startupResources", "extensionUi", "composer", "security", "export", "logging"]
LEGACY = ["asyncTurns", "turnCancellation", "turnEventReplay", "uiQuestions", "authLogin", "configUpdate", "session"]
LEGACY += ["cancellation", "eventReplay", "uiQuestion", "prompts", "skills", "tools", "config"]


# --- initialize -------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:17", "kward:20", "kward:21", "kward:22")
async def test_the_greeting_may_be_said_at_any_time_and_says_the_same(connect: Connect) -> None:
    peer = connect()
    first = await peer.ok("initialize")
    assert (first["protocolVersion"], first["serverName"], first["experimental"]) == (1, "kward", True)
    told = first["capabilities"]
    assert told["turns"]["eventReplay"] == {"behavior": "recent-in-memory", "persisted": False, "limit": 1000}
    assert told["attachments"]["input"]["maxBytes"] == 10485760
    assert told["turns"]["busyInput"]["steer"] == "native"
    await peer.turn((await peer.session())["id"])
    assert await peer.ok("initialize") == first


@pytest.mark.req("kward:18")
async def test_the_greeting_has_every_group_and_every_older_field(connect: Connect) -> None:
    told = (await connect().ok("initialize"))["capabilities"]
    assert not [name for name in (*DETAILS, *LEGACY) if name not in told]
    assert set(told) == {"framing", *DETAILS, *LEGACY}
    assert told["framing"] == "content-length"
    assert told["extensionUi"]["question"] == {
        "supported": True,
        "notification": "ui/question",
        "method": "ui/answerQuestion",
        "maxQuestions": 4,
        "multiSelect": False,
        "preview": False,
    }
    assert told["security"] == {
        "workspaceMutationGuard": "none",
        "toolApproval": "none",
        "canRunShell": True,
        "canWriteFiles": True,
    }


# --- state and counts -------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:105")
async def test_the_state_names_the_persistent_id_which_is_no_param(connect: Connect) -> None:
    peer = connect(known={"context_window": 1000})
    session = await peer.session(name="n")
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert state["sessionId"] == state["persistentSessionId"] == session["persistentId"]
    assert state["rpcSessionId"] == session["id"]
    assert state["sessionFile"] == session["path"]
    assert state["sessionName"] == "n"
    assert state["model"]["current"] is True
    assert state["defaultModel"] == "fake/model"
    assert state["messageCount"] == 0
    fixed = {
        "steeringMode": "in-flight",
        "followUpMode": "one-at-a-time",
        "autoRetryEnabled": False,
        "hideThinkingBlock": False,
        "quietStartup": False,
        "transport": "kward-rpc",
        "imageAutoResize": False,
        "blockImages": False,
        "enabledModels": [],
        "enableSkillCommands": True,
        "autoCompactionEnabled": True,
        "isStreaming": False,
        "isCompacting": False,
    }
    assert {name: state[name] for name in fixed} == fixed
    told = await peer.fails("runtime/state", sessionId=session["persistentId"])
    assert told == (-32603, f"Unknown session: {session['persistentId']}")


@pytest.mark.req("kward:106", "kward:107")
async def test_the_counts_are_of_messages_and_of_the_calls_in_them(connect: Connect) -> None:
    calls = [*call("read_file", '{"path": "a"}'), *call("read_file", '{"path": "b"}', "c2")]
    peer = connect(GatedProvider(calls, text("done")), known={"context_window": 1000})
    session = await peer.session()
    stats = await peer.ok("runtime/stats", sessionId=session["id"])
    assert "contextUsage" not in stats
    assert stats["totalMessages"] == 0
    await peer.turn(session["id"])
    stats = await peer.ok("runtime/stats", sessionId=session["id"])
    counts = ("userMessages", "assistantMessages", "toolCalls", "toolResults", "totalMessages")
    assert [stats[name] for name in counts] == [1, 2, 2, 2, 5]
    assert stats["rpcSessionId"] == session["id"]
    assert stats["sessionId"] == session["persistentId"]
    used = stats["contextUsage"]
    assert used["estimated"] is True
    assert used["contextWindow"] == 1000
    assert 0 < used["tokens"] < 1000
    assert used["percent"] == round(used["tokens"] / 10, 2)


async def test_no_window_no_usage(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    await peer.turn(session["id"])
    assert "contextUsage" not in await peer.ok("runtime/stats", sessionId=session["id"])


@pytest.mark.req("kward:109")
async def test_only_the_model_and_its_thinking_can_be_set(connect: Connect) -> None:
    peer = connect()
    session = (await peer.session())["id"]

    async def fails(setting: object, value: object) -> tuple[int, str]:
        return await peer.fails("runtime/updateSetting", sessionId=session, settingId=setting, value=value)

    assert await fails("theme", "dark") == (-32602, "Unsupported runtime setting: theme")
    assert await fails("defaultModel", " ") == (-32602, "Model must be a non-empty string")
    assert await fails("defaultModel", 5) == (-32602, "Model must be a non-empty string")
    for value in ("OpenRouter/a/b", "plain"):
        told = await peer.ok("runtime/updateSetting", sessionId=session, settingId="defaultModel", value=value)
        assert told["applied"] == "live"
    assert peer.choice.set == [("OpenRouter", "a/b"), ("", "plain")]
    await peer.ok("runtime/updateSetting", sessionId=session, settingId="defaultThinkingLevel", value="high")
    assert (await peer.ok("runtime/state", sessionId=session))["thinkingLevel"] == "high"
    assert await peer.ok("runtime/reload", sessionId=session) == {"ok": True, "message": "Resources reloaded."}


# --- tools, commands, resources ---------------------------------------------------------------------------------------
async def test_tools_are_listed_under_kwards_names(connect: Connect) -> None:
    told = (await connect().ok("tools/list"))["tools"]
    assert {tool["type"] for tool in told} == {"function"}
    names = [tool["function"]["name"] for tool in told]
    assert names == ["read_file", "write_file", "edit_file", "ask_user_question"]
    assert all(tool["function"]["description"] and tool["function"]["parameters"] for tool in told)


def furnished(peer: Peer) -> None:
    prompts = peer.config / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "plan.md").write_text("---\ndescription: Plan it\nargument-hint: WHAT\n---\nPlan $ARGUMENTS\n")
    (prompts / "model.md").write_text("a reserved name")
    (prompts / "no name.md").write_text("not a name")
    (prompts / "notes.txt").write_text("no template")
    (prompts / "link.md").symlink_to(prompts / "plan.md")
    skill = peer.config / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: reviewing\ndescription: Review well\n---\nLook closely.\n")
    plugins = peer.where / "plugins"
    plugins.mkdir()
    (plugins / "hi.py").write_text(
        "COMMANDS = {'hi': {'description': 'Greets', 'argument_hint': 'NAME'}, 'bad name': {}, 'help': {}}\n"
        "def run(command, arguments, context):\n    return f'hello {arguments}'\n"
    )
    (plugins / "broken.py").write_text("COMMANDS = {'broken': {}}\ndef run(:\n")
    (plugins / "mute.py").write_text("COMMANDS = {'mute': {}}\n")
    (plugins / "runs.py").write_text("COMMANDS = open('/tmp/x', 'w')\ndef run(c, a, x):\n    pass\n")
    (plugins / "old.rb").write_text("puts 1")


async def test_commands_are_prompts_then_skills_then_plugins(connect: Connect) -> None:
    peer = connect()
    furnished(peer)
    session = await peer.session()
    told = (await peer.ok("commands/list", sessionId=session["id"]))["commands"]
    assert told == [
        {
            "name": "plan",
            "description": "Plan it",
            "source": "prompt",
            "location": "user",
            "path": str(peer.config / "prompts" / "plan.md"),
            "sourceInfo": {},
        },
        {
            "name": "skill:reviewing",
            "description": "Review well",
            "source": "skill",
            "path": str((peer.config / "skills" / "review" / "SKILL.md").resolve()),
        },
        {
            "name": "hi",
            "description": "Greets",
            "argumentHint": "NAME",
            "source": "plugin",
            "path": str(peer.where / "plugins" / "hi.py"),
            "executable": True,
        },
    ]


async def test_resources_are_listed_in_sections_and_empty_ones_left_out(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    assert await peer.ok("resources/startup", sessionId=session["id"]) == {"sections": []}
    furnished(peer)
    (peer.work / "AGENTS.md").write_text("be good")
    told: Message = await peer.ok("resources/startup", sessionId=session["id"])
    assert told["sections"] == [
        {"name": "Context", "items": ["AGENTS.md"]},
        {"name": "Skills", "items": ["reviewing"]},
        {"name": "Prompts", "items": ["/plan"]},
        {"name": "Plugins", "items": ["/hi", "old.rb (unsupported: Ruby plugin)"]},
    ]


async def test_prompts_are_listed_and_expanded_with_and_without_the_slash(connect: Connect) -> None:
    peer = connect()
    furnished(peer)
    path = str(peer.config / "prompts" / "plan.md")
    told = await peer.ok("prompts/list")
    row = {"command": "plan", "description": "Plan it", "argumentHint": "WHAT", "path": path}
    assert told == {"prompts": [row]}
    for command in ("plan", "/plan"):
        made = await peer.ok("prompts/expand", command=command, arguments="the move")
        assert made == {"command": "plan", "text": "Plan the move"}
    assert (await peer.ok("prompts/expand", command="plan"))["text"] == "Plan "
    assert await peer.fails("prompts/expand", command="nope") == (-32603, "Unknown prompt template: nope")


async def test_a_plugin_command_is_run_and_others_are_refused(connect: Connect) -> None:
    peer = connect()
    furnished(peer)
    session = (await peer.session())["id"]
    told = await peer.ok("commands/run", sessionId=session, name="/hi", arguments="Ada")
    assert told == {"command": "hi", "output": [], "result": "hello Ada"}
    for name in ("plan", "broken", "mute", "runs"):
        assert await peer.fails("commands/run", sessionId=session, name=name) == (
            -32602,
            f"Unknown plugin command: {name}",
        )
    assert await peer.ok("commands/run", sessionId=session, name="copy") == {
        "ok": False,
        "error": "unsupported",
        "reason": "clientClipboardOwnedByUi",
    }


async def test_a_skill_command_gives_the_model_the_skill(connect: Connect) -> None:
    provider = GatedProvider(text("done"))
    peer = connect(provider)
    furnished(peer)
    session = await peer.session()
    await peer.turn(session["id"], "/skill:reviewing this file")
    said = json.dumps(peer.records(session))
    assert "Look closely." in said
    assert "this file" in said


async def test_a_plugin_of_a_project_is_not_looked_at(connect: Connect) -> None:
    peer = connect()
    for place in (peer.work / "plugins", peer.work / ".kward" / "plugins"):
        place.mkdir(parents=True)
        (place / "evil.py").write_text("COMMANDS = {'evil': {}}\ndef run(c, a, x):\n    return 'run'\n")
    session = await peer.session()
    assert (await peer.ok("commands/list", sessionId=session["id"]))["commands"] == []


async def test_a_plugin_that_others_may_write_is_not_looked_at(connect: Connect) -> None:
    peer = connect()
    furnished(peer)
    Path(peer.where / "plugins" / "hi.py").chmod(0o666)
    session = await peer.session()
    told = (await peer.ok("commands/list", sessionId=session["id"]))["commands"]
    assert [c["source"] for c in told] == ["prompt", "skill"]
