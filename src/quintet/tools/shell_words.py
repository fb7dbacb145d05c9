"""How a command's end is told: to the model as text, to people as one line."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from quintet.domain.item import ResultStatus
from quintet.domain.tool import ToolOutcome
from quintet.tools.shell_profile import missing_note
from quintet.workspace.child import Cause, Child, Ended, died_of
from quintet.workspace.protected import protected_places
from quintet.workspace.sandbox.limits import MIB, TASKS, usual_caps
from quintet.workspace.sandbox.named import protected_in, runs_into_something
from quintet.workspace.sandbox.plan import TEMPORARY
from quintet.workspace.sandbox.scratch import ALL, MOST
from quintet.workspace.sandbox.watched import PutBack

REFUSED = 10  # told by name
NAMED = 5  # protected places, in one note
NOT_FOUND = 127  # what shells end with when there is no such program

OUTPUT_SHOWN = 30_000  # characters a model reads of an output at once; the whole is kept for it


def outcome(
    command: str,
    child: Child,
    ended: Ended,
    text: str,
    *,
    say_end: bool = False,
    root: str = "",
    missing: Sequence[str] = (),
) -> ToolOutcome:
    """The result of a command that is over. `say_end`: also a good end needs words, since it could still be running.
    `root`: of the workspace in which a wall kept protected names from it; `missing`: directories it would have been
    given if they were there."""
    good = ended.cause is Cause.EXITED and not ended.code
    words = end_in_words(child, ended)
    notes = [] if good and not say_end else [words]
    if ended.left_behind:
        plural = "es it had" if ended.left_behind > 1 else " it had"
        notes.append(
            f"{ended.left_behind} process{plural} left running in the background ended with it; "
            "what shall go on is started with background: true"
        )
    if ended.refused:
        more = len(ended.refused) - REFUSED
        told = [line.removesuffix(".") for line in ended.refused[:REFUSED]] + ([f"{more} more"] if more > 0 else [])
        notes.append(f"the network refused it: {', '.join(told)}")
    if ended.emptied:
        notes.append(
            f"{TEMPORARY} was emptied before it ran: temporary files took {ended.emptied // MIB} MiB here, more than "
            f"{MOST // MIB} MiB in one thread or {ALL // MIB} MiB in all may"
        )
    notes += [_put_back(one) for one in ended.put_back]
    if not good:
        notes += [*_no_programs(child, ended.code), *_ran_into(text, child.cwd, root)]
        notes += [missing_note(place) for place in missing if os.path.expanduser(place) in text]
    text = text or "(no output)"
    if notes:
        text = f"{text.removesuffix(chr(10))}\n[{'; '.join(notes)}]"
    status = ResultStatus.OK if good else ResultStatus.ERROR
    return ToolOutcome(text, status, words, display=(block(command, ended.code),), limit=OUTPUT_SHOWN)


def _put_back(one: PutBack) -> str:
    if one.left:
        return f"it left {one.place}: whoever lets git go on with that runs what it says, so look at it before you do"
    if one.failure:
        return f"no command may change {one.place}, which could not be put back ({one.failure}): look at it"
    # Somebody else may have made it meanwhile, so nobody is blamed and nothing is lost.
    now = f"; what came there while it ran is {one.aside} now" if one.aside else ""
    return f"no command may change {one.place}, which is as it had been{now}"


def _ran_into(text: str, cwd: str, root: str) -> list[str]:
    if not root or not runs_into_something(text):
        return []
    names = protected_in(text, cwd, root, protected_places(root))
    if not names:
        return []
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    if len(names) > NAMED:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    told = f"{', '.join(names)} {are} protected: no command may write {them}, only the person may"
    return [f"{told}; see docs/howto/sandbox.md"]


def _no_programs(child: Child, code: int) -> list[str]:
    """A command was not found, and none could have been."""
    path = child.environment.get("PATH", os.defpath)
    if code != NOT_FOUND or any(os.path.isdir(place) for place in path.split(os.pathsep) if place):
        return []
    return [f"PATH is {path!r}, and no such directory is there: start Quintet with a PATH that names your programs"]


def block(command: str, code: int | None) -> dict[str, object]:
    """What people see of it; death by a signal has the number that shells give it."""
    made: dict[str, object] = {"type": "shell", "command": command}
    return made if code is None else made | {"exit_code": code if code >= 0 else 128 - code}


def end_in_words(child: Child, ended: Ended) -> str:
    caps = child.caps or usual_caps()
    match ended.cause:
        case Cause.TIMEOUT:
            return f"ended after its limit of {child.timeout_s:g} s"
        case Cause.FLOOD:
            return f"ended because it wrote more than {child.output_limit // MIB} MiB"
        case Cause.PROCESSES:
            return f"ended because it had more than {caps.processes} processes at a time"
        case Cause.TASKS:
            return f"ended because it had more than {TASKS * caps.processes} processes and threads at a time"
        case Cause.MEMORY:
            return f"ended because it held more than {caps.memory // MIB} MiB of memory"
        case Cause.NO_WALL:
            return f"nothing was run: the sandbox could not be built for it: {ended.wall_words}"
        case Cause.EXITED:
            return _exited(ended.code, caps.file)


def _exited(code: int, file_limit: int) -> str:
    words = died_of(code)
    return f"{words}: a file it wrote grew beyond {file_limit // MIB} MiB" if code == -signal.SIGXFSZ else words
