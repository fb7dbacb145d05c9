"""A prompt that runs a flow: told as turns within a turn, cancelled as a whole, ended by what ends a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from quintet.domain.errors import Invalid, ProviderFailed
from quintet.domain.event import ThreadUpdated
from quintet.domain.item import UserMessage, text_of
from quintet.domain.ports import Journal
from quintet.domain.tool import CallScope, Effect, Prepared
from quintet.domain.turn import Turn, TurnState
from quintet.engine.agreement import Agreement
from quintet.engine.commands import Commands, Deed, Named
from quintet.engine.flows import Answer, FlowToRun, answer_of
from quintet.protocols.wire import flowing
from quintet.workspace.flow_mermaid import read
from tests.fakes.engine import Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message, Peer
from tests.unit.protocols.wire.conftest import Connect
from tests.unit.protocols.wire.test_leaving import Stuck

FINISHED = {"status": "finished"}
STEP = ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"]
TWO = ("BEGIN --> A[first] --> B[second] --> END",)
DECIDES = ("BEGIN --> A[work] --> B{done?}", "B -->|yes| END", "B -->|no| A")


def house(*lines: str, **more: Any) -> dict[str, Any]:
    async def found() -> FlowToRun:
        return FlowToRun("mine", read(lines, 1), **more)

    return commands(found)


def commands(found: Callable[[], Awaitable[FlowToRun]]) -> dict[str, Any]:
    return {"commands": Commands(lambda: (Named("flow:mine", "Mine", Deed.FLOW, flow=found),))}


def inputs(heard: list[Message]) -> list[str]:
    return [p["user_input"] for p in payloads(heard, "TurnBegin")]


def given(provider: GatedProvider, call: int = -1) -> list[str]:
    return [text_of(item.body) for item in provider.requests[call].items if isinstance(item.body, UserMessage)]


def between(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Where a turn has ended, and what comes of its answer is just being looked up."""
    gate = Gate()

    async def slow(journal: Journal, turn: Turn) -> Answer:
        await gate.pass_through()
        return await answer_of(journal, turn)

    monkeypatch.setattr(flowing, "answer_of", slow)
    return gate


async def states(process: Process, peer: Peer) -> list[TurnState]:
    return [turn.state for turn in await process.journal.turns(peer.thread)]


@pytest.mark.req("wire:S115", "wire:S22")
async def test_each_node_is_told_as_a_turn_within_the_prompts_own(connect: Connect, process: Process) -> None:
    provider = GatedProvider(text("one"), text("two"))
    peer = connect(provider, house=house(*TWO))
    assert {"name": "flow:mine", "description": "Mine", "aliases": []} in (await peer.initialize())["result"][
        "slash_commands"
    ]
    heard = await peer.prompt("/flow:mine")
    assert kinds(heard) == ["TurnBegin", *STEP, *STEP, "TurnEnd", "reply"]
    assert inputs(heard) == ["/flow:mine", "first", "second"]
    assert payloads(heard, "StepBegin") == [{"n": 1}, {"n": 1}]
    assert heard[-1]["result"] == FINISHED
    assert given(provider) == ["first", "second"]
    assert await peer.quiet()
    assert await states(process, peer) == [TurnState.DONE] * 2
    told = await peer.call("replay")
    assert inputs(told) == ["first", "second"]  # what the journal holds: the inputs that were given


@pytest.mark.req("wire:S115")
async def test_a_client_of_1_2_which_ends_at_the_first_end_is_told_of_one_turn(connect: Connect) -> None:
    for gated, turns in ((True, 1), (False, 3)):
        peer = connect(GatedProvider(text("one"), text("two")), house=house(*TWO), gated=gated)
        await peer.call("initialize", protocol_version="1.2")
        heard = await peer.prompt("/flow:mine")
        assert kinds(heard).count("TurnBegin") == kinds(heard).count("TurnEnd") == turns
        assert (kinds(heard)[0], kinds(heard)[-2:]) == ("TurnBegin", ["TurnEnd", "reply"])
        assert spoken(heard) == "onetwo"
        assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S115")
async def test_a_missing_or_wrong_choice_is_asked_for_again_and_the_right_one_leads_on(connect: Connect) -> None:
    answers = ("work 1", "hm", "<choice>maybe</choice>", "<choice>no</choice>", "work 2", "<choice>yes</choice>")
    peer = connect(GatedProvider(*map(text, answers)), house=house(*DECIDES))
    heard = await peer.prompt("/flow:mine with care")
    asked = inputs(heard)
    assert asked[1] == "work\n\nUser request:\nwith care"
    assert asked[2].startswith("done?")
    assert asked[3] == asked[4]
    assert asked[3].startswith("Your last answer did not end")
    assert asked[5] == "work"
    assert len(asked) == 7
    assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S116")
async def test_a_decision_that_is_never_made_ends_the_flow_in_words(connect: Connect) -> None:
    heard = await connect(GatedProvider(*[text("hm")] * 4), house=house(*DECIDES)).prompt("/flow:mine")
    assert kinds(heard)[-3:] == ["ContentPart", "TurnEnd", "reply"]
    assert "chose none of yes, no" in payloads(heard, "ContentPart")[-1]["text"]
    assert len(inputs(heard)) == 5
    assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S116")
async def test_a_flow_without_end_ends_at_its_limit_with_the_steps_it_took(connect: Connect) -> None:
    answers = [text("<choice>no</choice>")] * 9
    heard = await connect(GatedProvider(*answers), house=house(*DECIDES, most=4)).prompt("/flow:mine")
    assert "it has given the model 4 inputs" in payloads(heard, "ContentPart")[-1]["text"]
    assert heard[-1]["result"] == {"status": "max_steps_reached", "steps": 4}


@pytest.mark.req("wire:S117", "wire:S33", "wire:S34")
async def test_a_cancel_in_a_node_ends_the_whole_prompt(connect: Connect, process: Process) -> None:
    provider = GatedProvider(text("one"), [*text("half"), Gate()], text("again"))
    peer = connect(provider, house=house(*TWO))
    await peer.begin("/flow:mine")
    await peer.until(lambda m: m.get("params", {}).get("payload", {}).get("text") == "half")
    await peer.send(id="x", method="cancel")
    heard = await peer.reply("p")
    assert [m.get("id") or m["params"]["type"] for m in heard] == ["x", "TurnEnd", "TurnEnd", "p"]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert provider.closed == 2
    assert await states(process, peer) == [TurnState.DONE, TurnState.CANCELLED]
    assert spoken(await peer.prompt("on")) == "again"


@pytest.mark.req("wire:S117")
async def test_a_cancel_between_two_nodes_keeps_the_next_from_being_given(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = between(monkeypatch)
    provider = GatedProvider(text("one"), text("two"))
    peer = connect(provider, house=house(*TWO))
    await peer.begin("/flow:mine")
    await gate.stopped()
    assert (await peer.call("cancel", "x"))[-1] == {"jsonrpc": "2.0", "id": "x", "result": {}}
    gate.open()
    heard = await peer.reply("p")
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert len(provider.requests) == 1
    assert await states(process, peer) == [TurnState.DONE]


@pytest.mark.req("wire:S117", "wire:S80")
async def test_a_steer_goes_to_the_node_that_is_under_way(connect: Connect) -> None:
    gate = Gate()
    provider = GatedProvider(text("one"), [*text("two"), gate], text("three"))
    peer = connect(provider, house=house(*TWO))
    await peer.initialize()
    await peer.begin("/flow:mine")
    await gate.stopped()
    steered = await peer.call("steer", "s", user_input="gently")
    assert steered[-1]["result"] == {"status": "steered"}
    gate.open()
    heard = steered + await peer.reply("p")
    assert payloads(heard, "SteerInput") == [{"user_input": "gently"}]
    assert given(provider) == ["first", "second", "gently"]
    assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S117", "wire:S80")
async def test_a_steer_between_two_nodes_waits_for_the_next(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, second = between(monkeypatch), Gate()
    provider = GatedProvider(text("one"), [*text("two"), second], text("three"))
    peer = connect(provider, house=house(*TWO))
    await peer.initialize()
    await peer.begin("/flow:mine")
    await gate.stopped()
    await peer.send(id="s", method="steer", params={"user_input": "gently"})
    await peer.ask("no such method", id="n")
    gate.open()
    assert (await peer.reply("s"))[-1].get("result") == {"status": "steered"}
    second.open()
    assert (await peer.reply("p"))[-1]["result"] == FINISHED
    assert given(provider) == ["first", "second", "gently"]


@pytest.mark.req("wire:S82")
async def test_plan_mode_changed_between_two_nodes_hides_no_later_change_from_the_client(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, second = between(monkeypatch), Gate()
    peer = connect(GatedProvider(text("one"), [*text("two"), second]), house=house(*TWO))
    await peer.initialize()
    await peer.begin("/flow:mine")
    await gate.stopped()
    assert (await peer.ask("set_plan_mode", enabled=True))["result"]["plan_mode"] is True
    gate.open()
    await second.stopped()
    await process.threads.configure(peer.thread, ThreadUpdated(plan_mode=False))
    second.open()
    told = [update["plan_mode"] for update in payloads(await peer.reply("p"), "StatusUpdate")]
    assert told == [False, False]  # the change itself, then the end of the step


@pytest.mark.req("wire:S115")
async def test_a_choice_the_model_spoke_of_before_it_used_a_tool_is_not_its_choice(connect: Connect) -> None:
    first = [*text("<choice>yes</choice>, or so"), *call("look")]
    peer = connect(
        GatedProvider(text("work"), first, text("hm"), text("<choice>yes</choice>")),
        [FakeTool("look")],
        house=house(*DECIDES),
    )
    heard = await peer.prompt("/flow:mine")
    assert len(inputs(heard)) == 4
    assert inputs(heard)[-1].startswith("Your last answer did not end")


@pytest.mark.req("wire:S116", "wire:S54")
async def test_a_rejected_approval_ends_the_flow_and_one_with_feedback_does_not(connect: Connect) -> None:
    shell = FakeTool("shell", effect=Effect.EXECUTE)
    provider = GatedProvider(call("shell", '{"command": "ls"}'), text("no matter"))
    peer = connect(provider, [shell], house=house(*TWO))
    heard = await peer.prompt("/flow:mine", answers=lambda _: {"response": "reject"})
    assert inputs(heard) == ["/flow:mine", "first"]
    assert spoken(heard) == "The flow was ended at “first”: what the model wanted to do there was refused."
    assert kinds(heard)[-4:] == ["TurnEnd", "ContentPart", "TurnEnd", "reply"]
    assert heard[-1]["result"] == FINISHED
    provider = GatedProvider(call("shell", '{"command": "ls"}'), text("one"), text("two"))
    peer = connect(provider, [shell], house=house(*TWO))
    heard = await peer.prompt("/flow:mine", answers=lambda _: {"response": "reject", "feedback": "not this"})
    assert spoken(heard) == "onetwo"
    assert shell.ran == []


@pytest.mark.req("wire:S116", "wire:S38", "wire:S41")
async def test_what_ends_a_turn_ends_the_flow(connect: Connect, process: Process) -> None:
    peer = connect(
        GatedProvider(text("one"), call("look", call_id="a"), call("look", call_id="b")),
        [FakeTool("look")],
        house=house(*TWO),
        max_steps=2,
    )
    heard = await peer.prompt("/flow:mine")
    assert kinds(heard)[-3:] == ["TurnEnd", "TurnEnd", "reply"]
    assert heard[-1]["result"] == {"status": "max_steps_reached", "steps": 2}
    peer = connect(GatedProvider(text("one"), [ProviderFailed("broken", reason="server")]), house=house(*TWO))
    heard = await peer.prompt("/flow:mine")
    assert kinds(heard)[-4:] == ["StepInterrupted", "TurnEnd", "TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32003
    assert await states(process, peer) == [TurnState.DONE, TurnState.FAILED]


@pytest.mark.req("wire:S114")
async def test_a_chart_that_cannot_be_read_is_told_and_no_model_is_asked(connect: Connect) -> None:
    async def broken() -> FlowToRun:
        raise Invalid("Line 7: END cannot be reached from BEGIN.", next_step="Correct it.")

    provider = GatedProvider()
    heard = await connect(provider, house=commands(broken)).prompt("/flow:mine")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    assert spoken(heard) == "Line 7: END cannot be reached from BEGIN. Correct it."
    assert provider.requests == []


@pytest.mark.req("wire:S117", "wire:S98")
async def test_a_client_that_leaves_in_a_flow_is_told_the_end_of_both_turns(connect: Connect) -> None:
    peer = connect(GatedProvider(text("one"), [*text("half"), Gate()]), house=house(*TWO))
    await peer.begin("/flow:mine")
    await peer.until(lambda m: m.get("params", {}).get("payload", {}).get("text") == "half")
    peer.hang_up()
    heard = await peer.rest()
    assert kinds(heard) == ["TurnEnd", "TurnEnd", "reply"]
    assert heard[-1]["result"] == {"status": "cancelled"}


@pytest.mark.req("wire:S117", "wire:S98")
async def test_both_turns_are_ended_also_where_the_inner_one_cannot_end_in_time(
    connect: Connect, process: Process
) -> None:
    process.feed.mirror = stuck = Stuck()
    peer = connect(GatedProvider([*text("half"), Gate()]), house=house(*TWO))
    await peer.begin("/flow:mine")
    await peer.hears("ContentPart")
    peer.hang_up()
    heard = await peer.rest()
    assert kinds(heard) == ["TurnEnd", "TurnEnd", "reply"]
    assert heard[-1]["result"] == {"status": "cancelled"}
    stuck.free.set()


@pytest.mark.req("wire:S117")
async def test_a_turn_of_somebody_else_in_between_is_waited_for(connect: Connect, process: Process) -> None:
    gate, other = Gate(), Gate()
    provider = GatedProvider([*text("one"), gate], [*text("theirs"), other], text("two"))
    peer = connect(provider, house=house(*TWO))
    await peer.begin("/flow:mine")
    await gate.stopped()
    starter = peer.connection.state.starter()
    await process.turns.start(peer.thread, (await process.journal.turns(peer.thread))[0].parts, starter)
    gate.open()
    await other.stopped()
    other.open()
    heard = await peer.reply("p")
    assert heard[-1]["result"] == FINISHED
    assert spoken(heard) == "onetwo"


# --- somebody else's words ----------------------------------------------------------------------------------------
class Skill(FakeTool):
    """As the tool that reads a project's skill: it is always asked about, and bound to its content."""

    def __init__(self, digest: str = "d1") -> None:
        super().__init__("read_skill")
        self._digest = digest

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        content = ("skill", arguments["name"], self._digest)
        return replace(await super().prepare(arguments, scope), always_ask="It is the project's.", content=content)


NEEDED = Agreement("read_skill", {"name": "mine"}, "run the flow of the skill mine", "d1")


@pytest.mark.req("wire:S118", "security:S23", "security:S21")
async def test_a_flow_that_is_somebody_elses_is_run_only_after_a_yes_to_its_content(connect: Connect) -> None:
    asked: list[Message] = []

    def yes(request: Message) -> Message:
        asked.append(request["params"]["payload"])
        assert provider.requests == []
        return {"response": "approve"}

    provider = GatedProvider(text("one"), text("two"))
    peer = connect(provider, [Skill()], house=house(*TWO, agreement=NEEDED))
    heard = await peer.prompt("/flow:mine now", answers=yes)
    assert [(a["sender"], a["description"], a["tool_call_id"]) for a in asked] == [
        ("read_skill", "Run the flow of the skill mine", "")
    ]
    request = ["ApprovalRequest", "ApprovalResponse"]
    assert kinds(heard) == ["TurnBegin", "TurnBegin", *request, *STEP[1:], *STEP, "TurnEnd", "reply"]
    assert given(provider) == ["/flow:mine now", "first\n\nUser request:\nnow", "second"]
    assert spoken(heard) == "onetwo"


@pytest.mark.req("wire:S118", "security:S23")
@pytest.mark.parametrize("answer", [{"response": "reject"}, {"response": "reject", "feedback": "not theirs"}])
async def test_without_a_yes_no_model_ever_reads_its_words(connect: Connect, answer: Message) -> None:
    provider = GatedProvider(text("fine"))
    peer = connect(provider, [Skill()], house=house(*TWO, agreement=NEEDED))
    heard = await peer.prompt("/flow:mine", answers=lambda _: answer)
    assert "Not agreed to: run the flow of the skill mine." in spoken(heard)
    assert inputs(heard) == ["/flow:mine", "first"]
    assert heard[-1]["result"] == FINISHED
    assert provider.requests == []
    await peer.prompt("hello")
    assert "first" not in str(provider.requests[0].items)


@pytest.mark.req("wire:S118", "security:S23")
async def test_while_it_is_asked_and_after_a_cancel_none_of_its_words_are_in_the_thread(
    connect: Connect, process: Process
) -> None:
    provider = GatedProvider(text("fine"))
    peer = connect(provider, [Skill()], house=house(*TWO, agreement=NEEDED))
    await peer.begin("/flow:mine")
    await peer.hears("ApprovalRequest")
    assert [text_of(item.body) for item in await process.journal.items(peer.thread)] == ["/flow:mine"]
    await peer.send(id="x", method="cancel")
    assert (await peer.reply("p"))[-1]["result"] == {"status": "cancelled"}
    await peer.prompt("hello")
    assert "first" not in str(provider.requests[0].items)


@pytest.mark.req("wire:S118", "security:S23")
async def test_a_content_that_changed_since_is_not_asked_about_and_not_run(connect: Connect) -> None:
    provider = GatedProvider()
    peer = connect(provider, [Skill("d2")], house=house(*TWO, agreement=NEEDED))
    heard = await peer.prompt("/flow:mine")
    assert "It has changed since it was called." in spoken(heard)
    assert payloads(heard, "ApprovalRequest") == []
    assert provider.requests == []


def choosing(word: str) -> Any:
    return text(f"so far <choice>{word}</choice>")


@pytest.mark.req("wire:S28")
async def test_a_client_that_wants_it_has_each_prompt_given_again_until_the_model_is_done(connect: Connect) -> None:
    provider = GatedProvider(text("one"), choosing("CONTINUE"), choosing("STOP"))
    peer = connect(provider, house={"repeats": -1})
    heard = await peer.prompt("build it")
    assert heard[-1]["result"] == FINISHED
    assert kinds(heard) == ["TurnBegin", *STEP * 3, "TurnEnd", "reply"]
    assert inputs(heard)[:2] == ["build it", "build it"]
    assert all(said.startswith("build it\n") and "STOP" in said for said in inputs(heard)[2:])
    assert kinds(await peer.prompt("/help")) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]


@pytest.mark.req("wire:S28", "wire:S38")
async def test_a_prompt_is_given_again_no_more_often_than_the_client_says(connect: Connect) -> None:
    provider = GatedProvider(text("one"), choosing("CONTINUE"), choosing("CONTINUE"))
    heard = await connect(provider, house={"repeats": 1}).prompt("build it")
    assert heard[-1]["result"] == {"status": "max_steps_reached", "steps": 2}
    assert len(provider.requests) == 2


async def test_what_is_no_text_in_a_prompt_is_given_the_first_time(connect: Connect) -> None:
    provider = GatedProvider(text("one"), choosing("STOP"))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    heard = await connect(provider, known={"vision": True}, house={"repeats": 2}).prompt(
        [{"type": "text", "text": "look"}, image]
    )
    assert heard[-1]["result"] == FINISHED
    first = provider.requests[0].items[-1].body
    assert isinstance(first, UserMessage)
    assert [type(part).__name__ for part in first.parts] == ["TextPart", "ImagePart"]
