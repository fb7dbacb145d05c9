"""Names: Kimi's words for Quintet's tools, their arguments, results and approvals. The default says what is there.

Everything that depends on which tool it is stands here, so that events.py and requests.py need not know any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from quintet.domain.interaction import Approval
from quintet.domain.item import ImagePart, ResultStatus, ToolResult
from quintet.domain.ports import Tool
from quintet.domain.tool import Effect
from quintet.protocols.wire import display
from quintet.protocols.wire.models import ContentPart, ImageURLPart, TextPart, ToolReturnValue, Url
from quintet.protocols.wire.questions import AskUserQuestion

REJECTED = "Rejected by user"
# A client's `approve_for_session` holds for its action, so an action is what a grant can be about: an effect.
ACTIONS = {Effect.EXECUTE: "run command", Effect.WRITE: "edit file", Effect.NETWORK: "access network"}


class Shown(Struct, frozen=True):
    """What a person is asked to agree to."""

    sender: str
    action: str
    description: str
    display: list[dict[str, Any]]


class Names:
    def tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """What the model is offered: ours, and questions as Kimi's clients show them."""
        return [AskUserQuestion() if tool.spec.name == "ask_user" else tool for tool in tools]

    def reserved(self, tools: Sequence[Tool]) -> frozenset[str]:
        """Names a client's own tool may not have."""
        return frozenset(tool.spec.name for tool in (*tools, *self.tools(tools)))

    def call(self, name: str, arguments: str) -> tuple[str, str]:
        return name, arguments

    def approval(self, asked: Approval) -> Shown:
        blocks = display.diffs(asked.diff)
        if asked.command:
            blocks = [display.shell(asked.command), *blocks]
            description = f"Run command `{asked.command}`"
        else:
            description = asked.title[:1].upper() + asked.title[1:]
        if not blocks:
            blocks = [display.brief(asked.plan or asked.title)]
        if asked.notes:
            blocks.append(display.brief("; ".join(asked.notes)))
        return Shown(asked.tool, ACTIONS.get(asked.effect, asked.tool), description, blocks)

    def result(self, body: ToolResult, *, rejected: bool) -> ToolReturnValue:
        """`rejected`: somebody was asked and said no."""
        is_error = body.status is not ResultStatus.OK
        blocks = [*map(display.known, body.display), *display.diffs(body.diff)]
        if not blocks and (rejected or body.message):
            blocks = [display.brief(REJECTED if rejected else body.message)]
        return ToolReturnValue(is_error, output(body), body.message, blocks)


def output(body: ToolResult) -> str | list[ContentPart]:
    if not body.images:
        return body.text
    return [TextPart(body.text), *map(image, body.images)]


def image(part: ImagePart) -> ImageURLPart:
    return ImageURLPart(Url(f"data:{part.media_type};base64,{part.data}"))
