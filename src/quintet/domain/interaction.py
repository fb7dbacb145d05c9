"""Interaction: something the engine waits for a person or client to answer, as durable state."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.grant import GrantOffer
from quintet.domain.hook import HookEvent
from quintet.domain.item import Media, ResultStatus, named
from quintet.domain.principal import Principal
from quintet.domain.tool import Effect


class Verdict(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"


class Approval(msgspec.Struct, frozen=True, tag="approval", omit_defaults=True):
    """May this call run? Carries everything that will happen, whole; a grant binds to what is shown here."""

    tool: str
    title: str
    command: str = ""
    cwd: str = ""
    paths: tuple[str, ...] = ()
    diff: str = ""
    digest: str = ""
    reason: str = ""  # which rule asks
    notes: tuple[str, ...] = ()  # e.g. NOT SANDBOXED
    offers: tuple[GrantOffer, ...] = ()  # what "always" would remember
    host: str = ""  # the machine it would run on
    plan: str = ""  # what would be begun with once plan mode is left
    effect: Effect = Effect.NONE
    broad: bool = False  # a yes could be remembered for every call of this effect in the thread


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    label: str
    description: str = ""


class QuestionItem(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    options: tuple[Option, ...] = ()
    header: str = ""
    multiple: bool = False


class Question(msgspec.Struct, frozen=True, tag="question"):
    items: tuple[QuestionItem, ...]


class ExternalCall(msgspec.Struct, frozen=True, tag="external_call"):
    """A tool that lives in the client; the answer is its result."""

    tool: str
    input: str


class HookRequest(msgspec.Struct, frozen=True, tag="hook_request", omit_defaults=True):
    """A client's hook is asked: allow lets it happen, deny blocks it with the reason. Silence allows: a hook is a
    client's chance to object, not somebody's yes."""

    subscription: str
    event: HookEvent
    target: str = ""
    input: dict[str, Any] = {}


Request = Approval | Question | ExternalCall | HookRequest


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    verdict: Verdict
    by: Principal
    at_ms: int
    reason: str = ""  # person's words, or timeout / cancelled / interrupted / shutdown / fail
    answers: tuple[tuple[str, ...], ...] = ()  # one tuple of chosen labels per question
    result: dict[str, Any] = {}  # of an external call: {"text": …, "is_error": …, "media": …}
    grant: str = ""  # the grant made together with this decision
    ends_turn: bool = False  # a no to more than this call: the turn rests, and the person speaks next


class Interaction(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    thread: str
    root: str
    turn: str
    call_id: str
    request: Request
    created_ms: int
    expires_ms: int = 0  # 0 = never by itself
    holds: bool = True  # its call waits for it; deferred ones outlive their turn
    decision: Decision | None = None
    subagent: str = ""  # the agent's name, where one that works for another asks


UNTRUSTED_RESULT_LIMIT = 200_000  # characters a client's own tool may return
UNTRUSTED_MEDIA_LIMIT = 28_000_000  # and of pictures, sound and videos in base64: some 20 MiB


def client_result(decision: Decision) -> tuple[ResultStatus, str, tuple[Media, ...]]:
    """What an answered ExternalCall means to the model; the same whether the asker lived to hear it or not."""
    if decision.verdict is not Verdict.ANSWER:
        return ResultStatus.ERROR, f"The client did not run this tool ({decision.reason}).", ()
    text = str(decision.result.get("text", ""))
    if len(text) > UNTRUSTED_RESULT_LIMIT:
        text = f"{text[:UNTRUSTED_RESULT_LIMIT]}\n[cut: the client returned {len(text)} characters]"
    media = msgspec.convert(decision.result.get("media", ()), tuple[Media, ...])
    if sum(len(part.data) for part in media) > UNTRUSTED_MEDIA_LIMIT:
        words = [text, *map(named, media), "[left out: together they are larger than 20 MiB]"]
        text = "\n".join(filter(None, words))
        media = ()
    return ResultStatus.ERROR if decision.result.get("is_error") else ResultStatus.OK, text, media
