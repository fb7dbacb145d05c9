"""Walking a flow: what the model is given next, and where its answer leads. A state and no more: whoever has the model
asked, in turns of their own, gives the inputs and tells the answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintet.domain.flow import Edge, Flow, Kind
from quintet.domain.item import AssistantMessage, Item, ToolResult, UserMessage
from quintet.domain.ports import Journal
from quintet.domain.turn import Turn
from quintet.engine.agreement import Agreement

INPUTS_AT_MOST = 1_000  # in one walk, those that ask again among them
ASKED_AT_MOST = 3  # for one decision, before the walk gives up
_OPEN, _CLOSE = "<choice>", "</choice>"
PAGE = 500


class FlowToRun(msgspec.Struct, frozen=True):
    """A flow somebody has called, and what it needs before the model hears of it."""

    name: str
    flow: Flow
    agreement: Agreement | None = None
    most: int = INPUTS_AT_MOST


class Walk:
    def __init__(self, flow: Flow, words: str = "", most: int = INPUTS_AT_MOST) -> None:
        """`words` of whoever called it go with the first input."""
        self._flow = flow
        self._words = words
        self._most = most
        self._here = flow.ways(flow.begin)[0].to
        self._asked = 0  # for the decision we stand at
        self.inputs = 0
        self.exhausted = False  # the limit was reached
        self.stopped = ""  # why it ended before END, in words for people

    def input(self) -> str | None:
        """What the model is given next; None when the walk is over."""
        node = self._flow.nodes[self._here]
        if self.stopped or node.kind is Kind.END:
            return None
        if self.inputs >= self._most:
            self.exhausted = True
            self.stopped = f"The flow was ended at {self._shown()}: it has given the model {self._most} inputs."
            return None
        self.inputs += 1
        said = node.text
        if node.kind is Kind.DECISION:
            said = _asking(said, self._flow.ways(node.id), again=self._asked > 0)
        words, self._words = self._words, ""
        return f"{said}\n\nUser request:\n{words}" if words else said

    def answered(self, answer: Answer) -> None:
        """What came of the last input."""
        ways = self._flow.ways(self._here)
        if answer.broken_off:
            self.stopped = f"The flow was ended at {self._shown()}: what the model wanted to do there was refused."
        elif self._flow.nodes[self._here].kind is not Kind.DECISION:
            self._here = ways[0].to
        elif (chosen := _chosen(answer.text, ways)) is not None:
            self._here, self._asked = chosen, 0
        else:
            self._asked += 1
            if self._asked == ASKED_AT_MOST:
                labels = ", ".join(edge.label for edge in ways)
                self.stopped = (
                    f"The flow was ended at {self._shown()}: the model was asked {ASKED_AT_MOST} times and chose none "
                    f"of {labels}. Run it again, or write more clearly in the chart what is to be chosen."
                )

    def _shown(self) -> str:
        text = " ".join(self._flow.nodes[self._here].text.split())
        return f"“{text if len(text) <= 60 else text[:59] + '…'}”"


def _asking(text: str, ways: Sequence[Edge], *, again: bool) -> str:
    missed = "Your last answer did not end with one of the choices below.\n\n" if again else ""
    labels = "\n".join(f"- {edge.label}" for edge in ways)
    return (
        f"{missed}{text}\n\nChoose one of these and end your answer with it, spelled as it stands here, "
        f"between {_OPEN} and {_CLOSE}:\n{labels}"
    )


def _chosen(answer: str, ways: Sequence[Edge]) -> str | None:
    """Where the last choice in the answer leads."""
    end = answer.rfind(_CLOSE)
    start = answer.rfind(_OPEN, 0, max(end, 0))
    said = answer[start + len(_OPEN) : end].strip() if start >= 0 else ""
    return next((edge.to for edge in ways if edge.label == said), None)


class Answer(msgspec.Struct, frozen=True):
    text: str
    broken_off: bool = False  # somebody's no was the last word, not the model's


async def answer_of(journal: Journal, turn: Turn) -> Answer:
    """What the model said last in a turn that has ended."""
    said: list[str] = []
    last: Item | None = None
    after = turn.input
    while page := await journal.items(turn.thread, after=after, limit=PAGE):
        after = page[-1].ordinal
        for last in (item for item in page if item.turn == turn.id):
            match last.body:
                case AssistantMessage(text=text):
                    said.append(text)
                case ToolResult() | UserMessage():
                    said.clear()
    return Answer("\n".join(said), broken_off=last is not None and isinstance(last.body, ToolResult))
