"""How a command's end is told: to the model as text, to people as one line."""

from __future__ import annotations

import signal

from quintet.domain.item import ResultStatus
from quintet.domain.tool import ToolOutcome
from quintet.workspace.processes import Cause, Child, Ended
from quintet.workspace.sandbox.limits import MIB, usual_caps

OUTPUT_SHOWN = 30_000  # characters a model reads of an output at once; the whole is kept for it


def outcome(command: str, child: Child, ended: Ended, text: str, *, say_end: bool = False) -> ToolOutcome:
    """The result of a command that is over. `say_end`: also a good end needs words, since it could still be running."""
    good = ended.cause is Cause.EXITED and not ended.code
    words = end_in_words(child, ended)
    notes = [] if good and not say_end else [words]
    if ended.left_behind:
        plural = "es it had" if ended.left_behind > 1 else " it had"
        notes.append(
            f"{ended.left_behind} process{plural} left running in the background ended with it; "
            "what shall go on is started with background: true"
        )
    if ended.put_back:
        notes.append(f"it may not change {', '.join(ended.put_back)}, which was put back as it had been")
    text = text or "(no output)"
    if notes:
        text = f"{text.removesuffix(chr(10))}\n[{'; '.join(notes)}]"
    status = ResultStatus.OK if good else ResultStatus.ERROR
    return ToolOutcome(text, status, words, display=(block(command, ended.code),), limit=OUTPUT_SHOWN)


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
        case Cause.MEMORY:
            return f"ended because it held more than {caps.memory // MIB} MiB of memory"
        case Cause.NO_WALL:
            return f"nothing was run: the sandbox could not be built for it: {ended.wall_words}"
        case Cause.EXITED:
            return f"exit code {ended.code}" if ended.code >= 0 else _killed(-ended.code, caps.file)


def _killed(number: int, file_limit: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"killed by signal {number}"
    if number == signal.SIGXFSZ:
        return f"killed by {name}: a file it wrote grew beyond {file_limit // MIB} MiB"
    return f"killed by {name}"
