"""Kward's tools: the names and arguments its models and clients know, one row for each tool of ours that has one.

Tools of ours without a row (searching, listing, plans, subagents, skills) keep their own names.
"""

from __future__ import annotations

from typing import Any

from quintet.engine.spelling import Spelling
from quintet.protocols.kward import tool_arguments as given
from quintet.protocols.kward import tool_results as came

PATH = {"type": "string", "description": "The file, from the working directory or absolute."}


def form(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def words(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


ROWS = (
    Spelling(
        "read_file",
        "read",
        "Read a text file, at most 2000 lines at once. For a longer one name the first line and how many you want. An "
        "image is shown to you.",
        form(
            ("path",),
            path=PATH,
            offset={"type": "integer", "minimum": 1, "description": "The first line, from 1."},
            limit={"type": "integer", "minimum": 1, "maximum": 2_000, "description": "How many lines."},
        ),
        given.read_inward,
        given.read_outward,
        came.read,
    ),
    Spelling(
        "edit_file",
        "edit",
        "Change a text file that was read before, by exact replacements, in order, all or none. `old_text` must occur "
        "exactly once, white space included, unless `all` is set.",
        form(
            ("path", "edits"),
            path=PATH,
            edits={
                "type": "array",
                "minItems": 1,
                "items": form(
                    ("old_text", "new_text"),
                    old_text=words("The text as it stands in the file."),
                    new_text=words("What shall stand there instead."),
                    all={"type": "boolean", "description": "Replace every occurrence."},
                ),
            },
        ),
        given.edit_inward,
        given.edit_outward,
    ),
    Spelling(
        "write_file",
        "write",
        "Write a text file as a whole; directories above it are made. To change a part of one use edit_file.",
        form(("path", "content"), path=PATH, content=words("Everything the file shall hold.")),
    ),
    Spelling(
        "run_shell_command",
        "shell",
        "Run a shell command in the working directory and return its output. Nobody can type into it. It is ended "
        "after timeout_seconds, with everything it started. What shall go on is started with `background`; look at it "
        "with shell_output, end it with shell_stop.",
        form(
            ("command",),
            command=words("The command line."),
            timeout_seconds={
                "type": "integer",
                "minimum": 1,
                "maximum": 86_400,
                "description": f"Seconds it may take; {given.SHELL_TIMEOUT_S} unless said.",
            },
            background={"type": "boolean", "description": "Return at once with an id; the command goes on."},
            network={"type": "boolean", "description": "It needs the network."},
        ),
        given.shell_inward,
        given.shell_outward,
    ),
    Spelling(
        "ask_user_question",
        "ask_user",
        "Ask the person one to four questions, each with two to four answers to choose from, one of which is chosen.",
        form(
            ("questions",),
            questions={
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": form(
                    ("question", "header", "options"),
                    question=words("The question."),
                    header=words("A word or two above it."),
                    options={
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 4,
                        "items": form(
                            ("label", "description"),
                            label=words("The answer."),
                            description=words("What it means."),
                        ),
                    },
                ),
            },
        ),
        given.ask_inward,
        given.ask_outward,
        came.answers,
    ),
)
