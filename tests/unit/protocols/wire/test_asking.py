"""Questions, steering, plan mode and hooks of the client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.event import InteractionResolved
from quintet.domain.item import ToolResult, UserMessage, text_of
from quintet.domain.tool import Effect
from quintet.tools.ask_user import AskUserTool
from quintet.tools.plan_mode import EnterPlanModeTool, ExitPlanModeTool
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message
from tests.unit.protocols.wire.conftest import Connect

QUESTIONS = {
    "questions": [
        {
            "question": "Which?",
            "header": "colour",
            "options": [{"label": "red"}, {"label": "blue", "description": "b"}],
        },
        {"question": "Also?", "multi_select": True, "options": [{"label": "a"}, {"label": "b"}, {"label": "c, d"}]},
    ]
}
CAN_ASK = {"supports_question": True}
CAN_PLAN = {"supports_plan_mode": True}


def asks() -> list[Any]:
    return call("AskUserQuestion", json.dumps(QUESTIONS))


# --- questions --------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S75")
@pytest.mark.parametrize(
    ("capabilities", "offered"),
    [
        (None, []),
        (CAN_ASK, ["AskUserQuestion"]),
        (CAN_PLAN, ["EnterPlanMode", "ExitPlanMode"]),
        (CAN_ASK | CAN_PLAN, ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"]),
    ],
)
async def test_only_what_the_client_can_do_is_offered(
    connect: Connect, capabilities: dict[str, bool] | None, offered: list[str]
) -> None:
    model = GatedProvider()
    peer = connect(model, [AskUserTool(), EnterPlanModeTool(), ExitPlanModeTool()])
    await peer.initialize(capabilities=capabilities)
    await peer.prompt()
    assert [spec.name for spec in model.requests[0].tools] == offered


@pytest.mark.req("wire:S75")
async def test_called_anyway_it_is_an_error_that_says_so_and_nobody_is_asked(connect: Connect) -> None:
    peer = connect(
        GatedProvider(asks(), call("enter_plan_mode", call_id="c2"), text("end")), [AskUserTool(), EnterPlanModeTool()]
    )
    heard = await peer.prompt()
    assert not [m for m in heard if m.get("method") == "request"]
    question, plan = (p["return_value"] for p in payloads(heard, "ToolResult"))
    assert question["is_error"] is True
    assert "does not support interactive questions" in question["message"]
    assert "Do NOT call this tool again" in question["message"]
    assert plan["is_error"] is True
    assert heard[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S76", "wire:S51")
async def test_answers_are_the_tools_output_as_json(connect: Connect) -> None:
    model = GatedProvider(asks(), text("end"))
    peer = connect(model, [AskUserTool()])
    await peer.initialize(capabilities=CAN_ASK)
    heard = await peer.prompt(answers=lambda request: {"answers": {"Which?": "something else", "Also?": "a,b"}})
    (asked,) = [m for m in heard if m.get("method") == "request"]
    payload = asked["params"]["payload"]
    assert asked["params"]["type"] == "QuestionRequest"
    assert asked["id"] == payload["id"]
    assert payload["tool_call_id"] == "c1"
    assert payload["questions"][0] == {
        "question": "Which?",
        "header": "colour",
        "options": [{"label": "red", "description": ""}, {"label": "blue", "description": "b"}],
        "multi_select": False,
        "body": "",
        "other_label": "",
        "other_description": "",
    }
    assert [question["multi_select"] for question in payload["questions"]] == [False, True]
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is False
    told = {"answers": {"Which?": "something else", "Also?": "a, b"}}
    assert json.loads(result["return_value"]["output"]) == told
    body = model.requests[1].items[-1].body
    assert isinstance(body, ToolResult)
    assert json.loads(body.text) == told


@pytest.mark.req("wire:S76")
@pytest.mark.parametrize("given", ["c, d", "b, a", "a", "a, nothing of these"])
async def test_a_comma_joins_labels_and_may_be_part_of_one(connect: Connect, given: str) -> None:
    peer = connect(GatedProvider(asks(), text("end")), [AskUserTool()])
    await peer.initialize(capabilities=CAN_ASK)
    heard = await peer.prompt(answers=lambda request: {"answers": {"Also?": given}})
    (asked,) = await peer.process.payloads(peer.thread, InteractionResolved)
    chosen = ("b", "a") if given == "b, a" else (given,)
    assert asked.decision.answers == ((), chosen)
    (result,) = payloads(heard, "ToolResult")
    assert json.loads(result["return_value"]["output"]) == {"answers": {"Also?": given}}


@pytest.mark.req("wire:S77")
@pytest.mark.parametrize(
    "answer", [{"error": {"code": 1, "message": "closed"}}, {"result": {"answers": {}}}, {"result": 5}]
)
async def test_a_question_without_an_answer_is_a_note_and_no_error(connect: Connect, answer: dict[str, Any]) -> None:
    peer = connect(GatedProvider(asks(), text("end")), [AskUserTool()])
    await peer.initialize(capabilities=CAN_ASK)
    await peer.begin()
    (*_, asked) = await peer.hears("QuestionRequest")
    await peer.send(id=asked["id"], **answer)
    heard = await peer.reply("p")
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is False
    output = json.loads(result["return_value"]["output"])
    assert output["answers"] == {}
    assert output["note"]
    assert heard[-1]["result"] == {"status": "finished"}


# --- steering ---------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S80")
async def test_a_steer_is_answered_at_once_and_reaches_the_model_behind_the_results(connect: Connect) -> None:
    tool, model = SlowTool("slow"), GatedProvider(call("slow"), text("end"))
    peer = connect(model, [tool])
    await peer.begin()
    await tool.started()
    assert (await peer.ask("steer", user_input="look left"))["result"] == {"status": "steered"}
    tool.go.set()
    heard = await peer.reply("p")
    told = [k for k in kinds(heard) if k in ("ToolResult", "SteerInput", "StepBegin")]
    assert told == ["ToolResult", "SteerInput", "StepBegin"]
    assert payloads(heard, "SteerInput") == [{"user_input": "look left"}]
    last = model.requests[1].items[-1].body
    assert isinstance(last, UserMessage)
    assert text_of(last) == "look left"


@pytest.mark.req("wire:S81")
async def test_a_steer_during_the_last_step_makes_another(connect: Connect) -> None:
    gate = Gate()
    model = GatedProvider([*text("one"), gate], text("two"))
    peer = connect(model)
    await peer.begin()
    await gate.stopped()
    await peer.ask("steer", user_input=[{"type": "text", "text": "more"}])
    gate.open()
    heard = await peer.reply("p")
    assert [p["n"] for p in payloads(heard, "StepBegin")] == [2]
    assert spoken(heard) == "two"
    assert (await peer.ask("steer", user_input="late"))["error"]["code"] == -32000


@pytest.mark.req("wire:S81")
async def test_a_steer_that_comes_while_the_turn_ends_is_refused_and_not_promised(
    connect: Connect, process: Process
) -> None:
    closing, free = asyncio.Event(), asyncio.Event()

    async def slowly(thread: str) -> None:
        closing.set()
        await free.wait()

    process.feed.mirror = slowly  # the last thing before the end is told
    model = GatedProvider(text("one"), text("two"))
    peer = connect(model)
    await peer.begin()
    await soon(closing.wait())
    await peer.send(id="s", method="steer", params={"user_input": "late"})
    assert await peer.until(lambda m: "ContentPart" in str(m))
    free.set()
    heard = [*await peer.reply("p")]
    heard += [] if any(m.get("id") == "s" for m in heard) else await peer.reply("s")
    (refused,) = [m for m in heard if m.get("id") == "s"]
    assert refused["error"] == {"code": -32000, "message": "No agent turn is in progress", "data": None}
    assert "SteerInput" not in kinds(heard)
    assert len(model.requests) == 1


@pytest.mark.req("wire:S48", "wire:S80")
async def test_a_steer_the_model_cannot_take_is_refused_by_name_and_the_turn_goes_on(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate]))
    await peer.begin()
    await gate.stopped()
    far = {"type": "image_url", "image_url": {"url": "https://example.com/image.png"}}
    refused = await peer.ask("steer", user_input=[far])
    assert refused["error"]["code"] == -32002
    assert "image_in" in refused["error"]["message"]
    gate.open()
    heard = await peer.reply("p")
    assert heard[-1]["result"] == {"status": "finished"}
    assert not {"StepBegin", "SteerInput"} & set(kinds(heard))


@pytest.mark.req("wire:S80")
async def test_a_steer_sent_together_with_the_prompt_is_not_too_early(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([gate, *text("one")], text("two")))
    await peer.begin()
    assert (await peer.ask("steer", user_input="more"))["result"] == {"status": "steered"}
    gate.open()
    assert "SteerInput" in kinds(await peer.reply("p"))


@pytest.mark.req("wire:S110")
@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_a_steer_of_a_turn_that_was_stopped_or_failed_is_not_given_to_the_next(
    connect: Connect, how: str
) -> None:
    gate = Gate()
    model = GatedProvider([*text("one"), gate, ProviderFailed("broken")], text("two"))
    peer = connect(model)
    await peer.begin("first")
    await gate.stopped()
    assert (await peer.ask("steer", user_input="never mind"))["result"] == {"status": "steered"}
    if how == "cancelled":
        await peer.send(id="x", method="cancel")
    else:
        gate.open()
    ended = await peer.reply("p")
    assert "SteerInput" not in kinds(ended)
    assert ended[-1].get("result") == ({"status": "cancelled"} if how == "cancelled" else None)
    heard = await peer.prompt("second")
    assert "SteerInput" not in kinds(heard)
    said = [text_of(item.body) for item in model.requests[1].items if isinstance(item.body, UserMessage)]
    assert said == ["first", "second"]
    assert "never mind" not in str(await peer.call("replay"))


async def test_an_old_client_hears_of_its_own_steers_only(connect: Connect) -> None:
    for own in (False, True):
        tool = SlowTool("slow")
        peer = connect(GatedProvider(call("slow"), text("end")), [tool])
        await peer.initialize("1.2")
        await peer.begin()
        await tool.started()
        if own:
            await peer.ask("steer", user_input="mine")
        else:
            await peer.process.turns.steer(peer.thread, parts("theirs"), ME)
        tool.go.set()
        assert ("SteerInput" in kinds(await peer.reply("p"))) is own


# --- plan mode --------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S82")
async def test_plan_mode_is_told_before_it_is_answered_idle_and_in_a_turn(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate]))
    for enabled, running in ((True, False), (False, True)):
        if running:
            await peer.begin()
            await peer.hears("ContentPart")
        event, answer = await peer.call("set_plan_mode", enabled=enabled)
        assert event["params"]["type"] == "StatusUpdate"
        nothing = dict.fromkeys(event["params"]["payload"])
        assert event["params"]["payload"] == nothing | {"plan_mode": enabled}
        assert answer["result"] == {"status": "ok", "plan_mode": enabled}
        thread = await peer.process.journal.thread(peer.thread)
        assert thread.settings.plan_mode is enabled
    gate.open()
    heard = await peer.reply("p")
    assert [p["plan_mode"] for p in payloads(heard, "StatusUpdate")] == [False]  # of the step: the change was told once


@pytest.mark.req("wire:S25", "wire:S82")
async def test_each_step_says_whether_plan_mode_is_on_and_a_replay_does_too(connect: Connect) -> None:
    peer = connect(GatedProvider(text("one"), text("two")))
    await peer.call("set_plan_mode", enabled=True)
    heard = await peer.prompt()
    await peer.call("set_plan_mode", enabled=False)
    heard += await peer.prompt()
    assert [p["plan_mode"] for p in payloads(heard, "StatusUpdate")] == [True, False]
    told = await peer.call("replay")
    assert [p["plan_mode"] for p in payloads(told, "StatusUpdate")] == [True, True, False, False]
    turn = ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"]
    assert kinds(told) == ["StatusUpdate", *turn, "StatusUpdate", *turn, "reply"]
    assert told[-1]["result"] == {"status": "finished", "events": 12, "requests": 0}


@pytest.mark.req("wire:S82")
async def test_a_plan_is_shown_and_agreed_to(connect: Connect) -> None:
    steps = [call("enter_plan_mode", call_id="c1"), call("exit_plan_mode", '{"plan": "1. do it"}', "c2"), text("end")]
    peer = connect(GatedProvider(*steps), [EnterPlanModeTool(), ExitPlanModeTool()])
    await peer.initialize(capabilities=CAN_PLAN)
    heard = await peer.prompt(answers=lambda request: {"response": "approve"})
    assert payloads(heard, "PlanDisplay") == [{"content": "1. do it", "file_path": ""}]
    assert [p["plan_mode"] for p in payloads(heard, "StatusUpdate")] == [False, True, True, False, False]


# --- hooks ------------------------------------------------------------------------------------------------------------
def hook(event: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {"id": f"h-{event}", "event": event, "matcher": matcher, **more}


def block(request: Message) -> Message:
    return {"action": "block", "reason": "not today"}


def allow(request: Message) -> Message:
    return {"action": "allow"}


@pytest.mark.req("wire:S83", "wire:S84", "wire:S51")
async def test_a_hook_that_blocks_keeps_the_tool_from_running(connect: Connect) -> None:
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    peer = connect(
        GatedProvider(call("shell", '{"command": "ls"}'), call("look", call_id="c2"), text("end")),
        [tool, FakeTool("look")],
    )
    await peer.initialize(hooks=[hook("PreToolUse", "h(e)ll|write")])
    heard = await peer.prompt(answers=block)
    (asked,) = [m for m in heard if m.get("method") == "request"]
    payload = asked["params"]["payload"]
    assert asked["params"]["type"] == "HookRequest"
    assert asked["id"] == payload["id"]
    assert len(payload["id"]) == 12
    assert int(payload["id"], 16) >= 0
    assert (payload["subscription_id"], payload["event"], payload["target"]) == ("h-PreToolUse", "PreToolUse", "shell")
    assert payload["input_data"]["tool_input"] == {"command": "ls"}
    order = [k for k in kinds(heard) if "Hook" in k or k == "ToolResult"]
    assert order == ["HookTriggered", "HookRequest", "HookResolved", "ToolResult", "ToolResult"]
    assert payloads(heard, "HookTriggered") == [{"event": "PreToolUse", "target": "shell", "hook_count": 1}]
    (resolved,) = payloads(heard, "HookResolved")
    assert (resolved["action"], resolved["reason"]) == ("block", "not today")
    assert isinstance(resolved["duration_ms"], int)
    result = payloads(heard, "ToolResult")[0]["return_value"]
    assert result["is_error"] is True
    assert "not today" in result["message"]
    assert tool.count == 0


@pytest.mark.req("wire:S85")
async def test_an_input_that_is_blocked_is_told_as_a_turn_behind_its_hooks(connect: Connect) -> None:
    model = GatedProvider()
    peer = connect(model)
    await peer.initialize(hooks=[hook("UserPromptSubmit")])
    heard = await peer.prompt(answers=block)
    assert kinds(heard) == [
        *("HookTriggered", "HookRequest", "HookResolved"),
        *("TurnBegin", "ContentPart", "TurnEnd", "reply"),
    ]
    assert spoken(heard) == "not today"
    assert heard[-1]["result"] == {"status": "finished"}
    assert model.requests == []
    assert kinds(await peer.prompt(answers=allow))[:5] == [
        *("HookTriggered", "HookRequest", "HookResolved"),
        *("TurnBegin", "StepBegin"),
    ]


@pytest.mark.req("wire:S111")
@pytest.mark.parametrize("how", ["silence", "error", "malformed"])
async def test_a_hook_that_does_not_answer_allows(connect: Connect, how: str) -> None:
    tool = FakeTool("look")
    peer = connect(GatedProvider(call("look"), text("end")), [tool])
    await peer.initialize(hooks=[hook("PreToolUse", timeout=0.05 if how == "silence" else 30)])
    await peer.begin()
    (*_, asked) = await peer.hears("HookRequest")
    if how == "error":
        await peer.send(id=asked["id"], error={"code": 1, "message": "broken"})
    elif how == "malformed":
        await peer.send(id=asked["id"], result={"action": "perhaps"})
    heard = await peer.reply("p")
    assert payloads(heard, "HookResolved")[0]["action"] == "allow"
    assert tool.count == 1


@pytest.mark.req("wire:S111")
async def test_a_stop_hook_that_blocks_makes_one_more_pass(connect: Connect) -> None:
    model = GatedProvider(text("one"), text("two"), text("three"))
    peer = connect(model)
    await peer.initialize(hooks=[hook("Stop")])
    heard = await peer.prompt(answers=block)
    assert spoken(heard) == "onetwo"
    assert "not today" in text_of(model.requests[1].items[-1].body)
    assert heard[-1]["result"] == {"status": "finished"}


async def test_a_client_that_declares_an_older_version_is_asked_but_not_told_of_hooks(connect: Connect) -> None:
    peer = connect(GatedProvider(call("look"), text("end")), [FakeTool("look")])
    await peer.initialize("1.2", hooks=[hook("PreToolUse")])
    heard = kinds(await peer.prompt(answers=allow))
    assert [k for k in heard if "Hook" in k] == ["HookRequest"]


@pytest.mark.req("wire:S109")
async def test_a_hook_that_waits_when_the_input_closes_is_settled(connect: Connect) -> None:
    peer = connect(GatedProvider(text("one")))
    await peer.initialize(hooks=[hook("UserPromptSubmit")])
    await peer.begin()
    await peer.hears("HookRequest")
    peer.hang_up()
    heard = await peer.rest()
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert kinds(heard)[-3:] == ["TurnBegin", "TurnEnd", "reply"]
    assert await peer.process.interactions.pending() == []
    await asyncio.wait([peer.serving], timeout=10)
