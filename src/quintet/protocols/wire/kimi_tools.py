"""Kimi's tools: the names and arguments its models and clients know, one row for each tool of ours that has one.

Tools of ours without a row (reading a skill, the rest of a long result, a directory) keep their own names.
"""

from __future__ import annotations

from typing import Any

from quintet.engine.spelling import Spelling
from quintet.protocols.wire import kimi_arguments as given
from quintet.protocols.wire import kimi_results as came
from quintet.protocols.wire import kimi_searches as sought

RETIRED = frozenset({"Task"})  # a name that clients still know; nobody else's tool may have it

PATH = {"type": "string", "description": "The file, from the working directory or absolute."}
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}


def form(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def words(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


_PATH = given.renamed({"path": "path"})
_FETCH = given.renamed({"url": "url"})
_SEARCH = given.renamed({"query": "query", "limit": "count"})
_STOP = given.renamed({"task_id": "id"})
_EDIT = form(
    ("old", "new"),
    old=words("The text as it stands in the file."),
    new=words("What shall stand there instead."),
    replace_all=flag("Replace every occurrence."),
)

ROWS = (
    Spelling(
        "Shell",
        "shell",
        "Run a shell command in the working directory and return its output. Nobody can type into it. It is ended "
        "after the timeout, with everything it started: 60 seconds unless you say otherwise, 300 at most. What shall "
        "go on longer is started with run_in_background and a description; look at it with TaskOutput, end it with "
        "TaskStop.",
        form(
            ("command",),
            command=words("The command line."),
            timeout={"type": "integer", "minimum": 1, "maximum": 86_400, "description": "Seconds it may take."},
            run_in_background=flag("Return at once with an id; the command goes on."),
            description=words("A few words about a command in the background."),
            network=flag("It needs the network; the person is told."),
        ),
        given.shell_inward,
        given.shell_outward,
        came.shell,
    ),
    Spelling(
        "ReadFile",
        "read",
        "Read a text file, at most 1000 lines at once, each with its number in front. For a longer one name the first "
        "line and how many you want; the end of a file is read with a line_offset below 0. An image is shown to you.",
        form(
            ("path",),
            path=PATH,
            line_offset={"type": "integer", "description": "The first line, from 1; -100 for the last hundred."},
            n_lines={"type": "integer", "minimum": 1, "description": "How many lines, 1000 at most."},
        ),
        given.lines_inward,
        given.lines_outward,
        came.read,
    ),
    Spelling(
        "ReadMediaFile",
        "read",
        "Look at an image (PNG, JPEG, GIF or WebP), or watch a video (MP4, WebM, MOV, MKV, AVI) where you can take it.",
        form(("path",), path=PATH),
        *_PATH,
        came.media,
    ),
    Spelling(
        "WriteFile",
        "write",
        "Write a text file as a whole, or add to its end. To change a part of one use StrReplaceFile.",
        form(
            ("path", "content"),
            path=PATH,
            content=words("What the file shall hold, or get added."),
            mode={"type": "string", "enum": ["overwrite", "append"], "description": "overwrite unless said."},
        ),
        given.write_inward,
        given.write_outward,
        came.write,
    ),
    Spelling(
        "StrReplaceFile",
        "edit",
        "Change a text file by exact replacements, in order, all or none. `old` must occur exactly once, white space "
        "included, unless replace_all is set.",
        form(("path", "edit"), path=PATH, edit={"anyOf": [_EDIT, {"type": "array", "items": _EDIT, "minItems": 1}]}),
        given.edit_inward,
        given.edit_outward,
        came.edit,
    ),
    Spelling(
        "Glob",
        "glob",
        "Find files and directories by a glob, such as *.md or src/**/*.py, read from the directory on. With ** at its "
        "beginning it looks everywhere and leaves out ignored files.",
        form(
            ("pattern",),
            pattern=words("The glob."),
            directory=words("Where to search; the working directory."),
            include_dirs=flag("Find directories, too; yes unless said."),
        ),
        sought.glob_inward,
        sought.glob_outward,
        came.found,
    ),
    Spelling(
        "Grep",
        "grep",
        "Search files for a regular expression in ripgrep's syntax. Ignored files are left out unless you say "
        "otherwise, binary ones always.",
        form(
            ("pattern",),
            pattern=words("The regular expression."),
            path=words("The file or directory to search; the working directory."),
            glob=words("Only files that fit, such as *.py."),
            output_mode={
                "type": "string",
                "enum": list(sought.GREP_OUTPUT),
                "description": "The lines, the files that have them, or how many; files_with_matches unless said.",
            },
            **{
                "-A": {**NUMBER, "description": "Lines to show after each match."},
                "-B": {**NUMBER, "description": "Lines to show before each match."},
                "-C": {**NUMBER, "description": "Lines to show before and after each match."},
                "-i": flag("Upper and lower case are the same."),
                "-n": flag("Lines are numbered; yes unless said."),
            },
            type=words("Only files of a type, such as py, rust, ts."),
            head_limit={**NUMBER, "description": "The most matches or files to show; 250 unless said, 0 for 1000."},
            offset={**NUMBER, "description": "Matches or files to leave out at the beginning."},
            multiline=flag("The expression may go over several lines, . standing for their ends, too."),
            include_ignored=flag("Search ignored files, too."),
        ),
        sought.grep_inward,
        sought.grep_outward,
        came.grep,
    ),
    Spelling(
        "SetTodoList",
        "todo",
        "Write down the steps of the work and where each stands, as a whole list each time. Without todos it tells "
        "what is on the list.",
        form(
            todos={
                "type": "array",
                "items": form(
                    ("title", "status"),
                    title=words("The step."),
                    status={"type": "string", "enum": ["pending", "in_progress", "done"]},
                ),
            },
        ),
        given.todo_inward,
        given.todo_outward,
        came.todo,
    ),
    Spelling(
        "AskUserQuestion",
        "ask_user",
        "Ask the person one to four questions, each with two to four answers to choose from.",
        form(
            ("questions",),
            questions={
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": form(
                    ("question", "options"),
                    question=words("The question."),
                    header=words("A word or two above it."),
                    options={
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 4,
                        "items": form(("label",), label=words("The answer."), description=words("What it means.")),
                    },
                    multi_select=flag("Several may be chosen."),
                ),
            },
        ),
        given.ask_inward,
        given.ask_outward,
        came.answers,
    ),
    Spelling(
        "Agent",
        "task",
        "Give a piece of work to a subagent and wait for its report. It sees nothing of this thread, so its prompt "
        "must hold everything it needs to know, and what to report. Several calls at once work side by side. With "
        "run_in_background you go on while it works and are told of its end; look at it with TaskOutput, end it with "
        "TaskStop; your turn ends after it.",
        form(
            ("description", "prompt"),
            description=words("The work in three to five words."),
            prompt=words("The whole task."),
            subagent_type=words(
                "Which agent does it: `coder`, `explore` (finds things out and changes nothing), `plan` (makes a plan "
                "and changes nothing) or another one that is named above; coder if left out."
            ),
            resume=words("The id of a subagent that worked for you before."),
            run_in_background=flag("Return at once; it works on beside you."),
        ),
        given.task_inward,
        given.task_outward,
        came.agent,
    ),
    Spelling(
        "TaskOutput",
        "shell_output",
        "What a command in the background has written since you last asked, and whether it still runs; or how a "
        "subagent in the background stands, and what it says.",
        form(
            ("task_id",),
            task_id=words("As Shell or Agent gave it."),
            block=flag("Wait for its end first."),
            timeout={**NUMBER, "maximum": 60, "description": "Seconds to wait at most."},
        ),
        given.output_inward,
        given.output_outward,
    ),
    Spelling(
        "TaskStop",
        "shell_stop",
        "End a command in the background, with everything it started, or a subagent in the background.",
        form(("task_id",), task_id=words("As Shell or Agent gave it.")),
        *_STOP,
    ),
    Spelling(
        "TaskList",
        "background_list",
        "List the commands and subagents that go on in the background, by the ids that TaskOutput and TaskStop take.",
        form(active_only=flag("Only what still goes on; true unless said.")),
        given.tasks_inward,
        given.tasks_outward,
    ),
    Spelling("FetchURL", "web_fetch", "Fetch a public web page as text.", form(("url",), url=words("https.")), *_FETCH),
    Spelling(
        "SearchWeb",
        "web_search",
        "Search the web. Returns titles, addresses and excerpts; read a page with FetchURL.",
        form(
            ("query",),
            query=words("What to search for."),
            limit={"type": "integer", "minimum": 1, "maximum": 20, "description": "How many results."},
        ),
        *_SEARCH,
    ),
    Spelling(
        "EnterPlanMode",
        "enter_plan_mode",
        "Enter plan mode, where nothing is changed: for work that is large, unclear or hard to undo. It ends when the "
        "person agrees to the plan you put forward with ExitPlanMode.",
        form(),
        *given.renamed({}),
        came.plan,
    ),
    Spelling(
        "ExitPlanMode",
        "exit_plan_mode",
        "In plan mode, show the person your plan and ask them to agree.",
        form(("plan",), plan=words("The whole plan, as Markdown.")),
        *given.renamed({"plan": "plan"}),
        came.planned,
    ),
)
