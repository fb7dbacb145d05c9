"""What is said of an event in one line, to whoever watches a turn at a terminal."""

from __future__ import annotations

from quintet.domain.event import (
    AnyPayload,
    CompactionFinished,
    CompactionStarted,
    EffectUnknown,
    HookResolved,
    NoticePosted,
    StepFellBack,
    StepRetried,
    ThreadUpdated,
)
from quintet.domain.hook import HookAction
from quintet.domain.interaction import Decision, Verdict
from quintet.domain.principal import ENGINE
from quintet.domain.shown import shown_line
from quintet.domain.turn import TurnState
from quintet.engine.interactions import OnAsk

_SILENCES = {
    "timeout": "nobody answered in time",
    "cancelled": "the turn was cancelled",
    "interrupted": "the turn was interrupted",
    f"on-ask {OnAsk.DENY}": "nobody can be asked here",
    f"on-ask {OnAsk.FAIL}": "nobody can be asked here",
}


def noted(payload: AnyPayload | None) -> list[str]:
    """Nothing for what has a form of its own, or is not worth a line."""
    match payload:
        case StepRetried(attempt=attempt, reason=reason):
            return [f"trying again ({attempt}): {reason}"]
        case CompactionStarted():
            return ["making room: the older part of this thread gives way"]
        case CompactionFinished():
            return [compaction_words(payload)]
        case StepFellBack(model=model, next_model=following, reason=reason):
            return [f"{model} cannot answer ({reason}); asking {following}"]
        case ThreadUpdated(plan_mode=bool(on)):
            return [f"plan mode is {'on' if on else 'off'}"]
        case EffectUnknown(title=title):
            return [f"UNKNOWN EFFECT: {shown_line(title)}"]
        case NoticePosted(notice=notice):
            return [shown_line(notice.title)]
        case HookResolved():
            return hook_lines(payload)
    return []


def hook_lines(resolved: HookResolved) -> list[str]:
    """What hooks held back, and which could not say anything. Those that let a thing pass are no news."""
    at = f"hook {resolved.event}{f' {shown_line(resolved.target)}' if resolved.target else ''}"
    lines = [f"{at}: {shown_line(problem)}" for problem in resolved.problems]
    if resolved.action is HookAction.BLOCK:
        lines.append(f"{at}: blocked by {shown_line(resolved.by)}: {shown_line(resolved.reason)}")
    return lines


def compaction_words(finished: CompactionFinished) -> str:
    """What came of it, in a line."""
    if finished.error is not None:
        return f"compaction failed: {finished.error.message}"
    size = f"about {finished.tokens_before:,} tokens are {finished.tokens_after:,} now"
    return f"compacted: {size}" if finished.summary_item else f"old results left out of the model's view: {size}"


def ended(state: TurnState, why: str, turn: str = "The turn") -> str:
    """How a turn ended. `why` may begin with just that, and is not said twice."""
    if why.startswith(f"The turn was {state}"):
        return f"{turn}{why.removeprefix('The turn')}"
    return f"{turn} ended as {state}: {why}" if why else f"{turn} ended as {state}."


def decided(decision: Decision) -> str:
    if decision.by == ENGINE:
        return f"denied: {_SILENCES.get(decision.reason, f'the turn ended ({decision.reason})')}"
    word = {Verdict.ALLOW: "allowed", Verdict.DENY: "denied", Verdict.ANSWER: "answered"}[decision.verdict]
    why = f": {decision.reason}" if decision.reason else ""
    return f"{word} by {decision.by.name} through {decision.by.protocol}{why}"
