"""state.json, kimi.json and a subagent's meta.json: files of one object, of which others change the first two. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.event import Event, TodoUpdated
from quintet.domain.grant import Grant, Subject
from quintet.domain.thread import Thread
from quintet.domain.tool import Effect
from quintet.domain.turn import TurnState
from quintet.protocols.wire.kimi_arguments import agent_type
from quintet.protocols.wire.names import ACTIONS

_NEW_STATE: dict[str, Any] = {
    "version": 1,
    "approval": {"yolo": False, "afk": False, "auto_approve_actions": []},
    "additional_dirs": [],
    "custom_title": None,
    "title_generated": False,
    "title_generate_attempts": 0,
    "plan_mode": False,
    "plan_session_id": None,
    "plan_slug": None,
    "wire_mtime": None,
    "archived": False,
    "archived_at": None,
    "auto_archive_exempt": False,
    "todos": [],
}


def parsed(data: bytes | None, path: str) -> dict[str, Any]:
    """The object; Invalid where somebody has made something else of the file, which is then left as it is."""
    if data is None or not data.strip():
        return {}
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{path} cannot be read and is left as it is: {error}.") from None
    if not isinstance(found, dict):
        raise Invalid(f"{path} holds no object and is left as it is.")
    return found


def encoded(value: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def state(there: dict[str, Any], thread: Thread, grants: Iterable[Grant], since: Iterable[Event]) -> dict[str, Any]:
    """What is allowed is said by the journal alone: nobody gets a permission by writing it into a file."""
    made = {**_NEW_STATE, **there}
    approval = made["approval"] if isinstance(made["approval"], dict) else {}
    made["approval"] = {**_NEW_STATE["approval"], **approval, "auto_approve_actions": actions(grants)}
    made["plan_mode"] = thread.settings.plan_mode
    made["additional_dirs"] = list(thread.settings.directories)
    if thread.title_final or (thread.title and made["custom_title"] is None):
        made["custom_title"] = thread.title
    for event in since:
        if isinstance(event.payload, TodoUpdated) and event.thread == thread.id:
            made["todos"] = [{"title": todo.text, "status": todo.status} for todo in event.payload.todos]
    return made


_STATUS = {TurnState.DONE: "completed", TurnState.FAILED: "failed", None: "idle"}


def meta(thread: Thread, ended: TurnState | None) -> dict[str, Any]:
    """Of a subagent, whose last turn ended so."""
    begun, agent = thread.created_ms / 1000, agent_type(thread.settings.agent)
    return {
        "agent_id": thread.id,
        "subagent_type": agent,
        "status": _STATUS.get(ended, "killed"),
        "description": thread.title,
        "created_at": begun,
        "updated_at": thread.updated_ms / 1000,
        "last_task_id": None,
        "launch_spec": {
            "agent_id": thread.id,
            "subagent_type": agent,
            "model_override": thread.settings.model or None,
            "effective_model": thread.settings.model or None,
            "created_at": begun,
        },
    }


def actions(grants: Iterable[Grant]) -> list[str]:
    """What need not be asked in the thread any more."""
    effects = [Effect(g.pattern[0]) for g in grants if g.subject is Subject.EFFECT and g.protocol == "wire"]
    return sorted({ACTIONS.get(effect, effect.value) for effect in effects})


def used(there: dict[str, Any], work_dir: str, session: str) -> dict[str, Any]:
    """kimi.json, when this session was the last one used in that directory."""
    rows = there.get("work_dirs", [])
    if not isinstance(rows, list):
        raise Invalid("kimi.json has no list of directories and is left as it is.")
    known = [row for row in rows if _of(row, work_dir)]
    row = {"path": work_dir, "kaos": "local"} | (known[0] if known else {}) | {"last_session_id": session}
    return {**there, "work_dirs": [row if known and old is known[0] else old for old in rows] + [row] * (not known)}


def last_used(there: dict[str, Any], work_dir: str) -> str:
    rows = there.get("work_dirs")
    for row in rows if isinstance(rows, list) else ():
        if _of(row, work_dir) and isinstance(row.get("last_session_id"), str):
            return str(row["last_session_id"])
    return ""


def _of(row: Any, work_dir: str) -> bool:
    return isinstance(row, dict) and row.get("path") == work_dir and row.get("kaos", "local") == "local"
