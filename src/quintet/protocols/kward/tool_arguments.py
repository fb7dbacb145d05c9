"""Arguments of Kward's tools as those of ours, and back. Pure. What cannot be carried over is refused, not dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quintet.domain.errors import Invalid

Given = dict[str, Any]
SHELL_TIMEOUT_S = 30  # where the model says nothing
_READ = {"offset": "from_line", "limit": "lines"}
_EDIT = {"old_text": "old", "oldText": "old", "new_text": "new", "newText": "new"}
_SHELL = {"timeout_seconds": "timeout_s"}
_UNSUPPORTED = ("multiSelect", "multi_select", "preview")


def renamed(given: Given, names: Mapping[str, str]) -> Given:
    return {names.get(name, name): value for name, value in given.items() if value is not None}


def _back(names: Mapping[str, str]) -> dict[str, str]:
    """Of two words for one thing the first is written."""
    made: dict[str, str] = {}
    for theirs, ours in names.items():
        made.setdefault(ours, theirs)
    return made


def read_inward(given: Given) -> Given:
    return renamed(given, _READ)


def read_outward(given: Given) -> Given:
    return renamed(given, _back(_READ))


def edit_inward(given: Given) -> Given:
    """One replacement may be given without a list around it."""
    if "edits" not in given and _EDIT.keys() & given.keys():
        alone = {name: value for name, value in given.items() if name != "path"}
        given = {"path": given.get("path"), "edits": [alone]}
    return _each(given, "edits", lambda edit: renamed(edit, _EDIT))


def edit_outward(given: Given) -> Given:
    return _each(given, "edits", lambda edit: renamed(edit, _back(_EDIT)))


def shell_inward(given: Given) -> Given:
    made = renamed(given, _SHELL)
    if not made.get("background"):
        made.setdefault("timeout_s", SHELL_TIMEOUT_S)
    return made


def shell_outward(given: Given) -> Given:
    return renamed(given, _back(_SHELL))


def ask_inward(given: Given) -> Given:
    """Only what the client can show: whatever it could not is refused before anybody is asked."""
    questions = given.get("questions")
    if not isinstance(questions, list) or not 1 <= len(questions) <= 4:
        raise Invalid("questions must contain 1-4 questions.")
    return {"questions": [_question(asked) for asked in questions]}


def ask_outward(given: Given) -> Given:
    return _each(given, "questions", lambda asked: {k: v for k, v in asked.items() if k != "multiple"})


def _question(asked: Any) -> Given:
    if not isinstance(asked, dict):
        raise Invalid("each question must be an object.")
    _supported(asked)
    options = asked.get("options")
    if not isinstance(options, list) or not 2 <= len(options) <= 4:
        raise Invalid("each question needs 2-4 options.")
    return {
        "question": _words(asked, "question"),
        "header": _words(asked, "header"),
        "options": [_option(option) for option in options],
    }


def _option(option: Any) -> Given:
    if not isinstance(option, dict):
        raise Invalid("each option must be an object.")
    _supported(option)
    return {"label": _words(option, "label"), "description": _words(option, "description")}


def _supported(given: Given) -> None:
    for name in _UNSUPPORTED:
        if name in given:
            raise Invalid(f"{name} is not supported.")


def _words(given: Given, name: str) -> str:
    words = given.get(name)
    if not isinstance(words, str) or not words.strip():
        raise Invalid(f"{name} must be a non-empty string.")
    return words.strip()


def _each(given: Given, name: str, change: Any) -> Given:
    rows = given.get(name)
    if not isinstance(rows, list):
        return dict(given)
    return given | {name: [change(row) if isinstance(row, dict) else row for row in rows]}
