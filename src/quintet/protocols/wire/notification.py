"""A notice of the engine in the words of Wire's Notification. Pure."""

from __future__ import annotations

from quintet.domain.notice import End, Notice
from quintet.protocols.wire import models as wire

_KINDS = {"command": "bash", "subagent": "agent"}
_STATUS = {End.TIMED_OUT.value: End.FAILED.value}  # the others are called what they are


def notification(notice: Notice) -> wire.Notification:
    return wire.Notification(
        notice.id,
        notice.category,
        notice.type,
        notice.source_kind,
        notice.source,
        notice.title,
        notice.body,
        notice.severity.value,
        notice.at_ms / 1000,
        _payload(notice),
    )


def _payload(notice: Notice) -> dict[str, object]:
    told = dict(notice.payload)
    if "task_kind" in told:
        told["task_kind"] = _KINDS.get(told["task_kind"], told["task_kind"])
    if (reason := told.get("terminal_reason")) is not None:
        told |= {"status": _STATUS.get(reason, reason), "finished_at": notice.at_ms / 1000}
    return told
