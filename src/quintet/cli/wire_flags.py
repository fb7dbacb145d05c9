"""The flags of Kimi's own command line, as `quintet wire` takes them: their names, short forms and which go together.

Knows nothing of how they are carried out, but for those that do not hold here: it says so.
"""

from __future__ import annotations

import argparse
import os

from quintet.cli.invoke import positive
from quintet.domain.errors import Invalid

# Flags of Kimi's other faces, and what does the same here.
RUN = "One turn without a client is run by `quintet run PROMPT`."
ACP = "Quintet does not speak ACP. Programs start `quintet-kimi --wire`, people use `quintet chat`."
OTHER_FACES = {
    **dict.fromkeys(("--print", "--quiet", "--input-format", "--output-format", "--final-message-only"), RUN),
    "--acp": ACP,
}
_TOGETHER = (("go_on", "--continue", "session", "--session"), ("config", "--config", "config_file", "--config-file"))
# An empty path would mean the directory that the client happened to be started in.
_NEVER_EMPTY = ("--config", "--config-file", "--add-dir", "--skills-dir")
OKABE = "wire: --agent okabe: its one tool more, SendDMail, is not here; the default agent works."


def add_kimi_flags(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False  # else --agent would be the beginning of --agent-file, and --yes that of nothing
    add = parser.add_argument
    add("--wire", action="store_true", help="accepted, since Kimi's clients say it")
    add("--work-dir", "-w", default="", metavar="DIR", help="working directory (else the current one)")
    add("--add-dir", action="append", default=[], metavar="DIR", help="to be worked in beside it; may be repeated")
    _where_to_go_on(parser)
    _how_to_answer(parser)
    _which_model(parser)
    add("--agent", choices=("default", "okabe"), help="an agent of Kimi's own; okabe works as default does")
    add("--agent-file", default="", metavar="FILE", help="an agent in Kimi's own form")
    add("--skills-dir", action="append", default=[], metavar="DIR", help="skills of yours; may be repeated")
    for name in ("--mcp-config-file", "--mcp-config"):
        add(name, action="append", default=[], help="accepted; MCP servers are not started yet")
    add("--max-steps-per-turn", type=positive, metavar="N", help="model calls at most")
    add("--max-retries-per-step", type=positive, metavar="N", help="attempts at a model call, the first one included")
    add(
        "--max-ralph-iterations",
        type=_iterations,
        metavar="N",
        help="give each prompt again until the model is done; -1: no number",
    )
    for name in ("--verbose", "--debug"):
        add(name, action="store_true", help="more in the log; nothing on stderr")
    add("--every-event", action="store_true", help="also events newer than the version the client declares")
    _of_other_faces(parser)


def _where_to_go_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--session", "--resume", "-S", "-r"),
        nargs="?",
        const="",
        metavar="ID",
        help="the thread of this name; a new one if none is",
    )
    parser.add_argument(
        "--continue", "-C", dest="go_on", action="store_true", help="the thread used last in that directory"
    )


def _how_to_answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--yolo", "--yes", "--auto-approve", "-y"), dest="yolo", action="store_true", help="ask for nothing"
    )
    parser.add_argument("--plan", action="store_true", help="begin in plan mode")
    parser.add_argument("--afk", action="store_true", help="nobody is there: as --yolo, and questions are dismissed")


def _which_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", default="", help="one of Kimi's configuration, or provider/model")
    parser.add_argument("--config-file", metavar="FILE", help="Kimi's configuration, JSON or TOML")
    parser.add_argument("--config", metavar="TEXT", help="the same, as a text")
    parser.add_argument(
        "--thinking", action=argparse.BooleanOptionalAction, help="whether a model that can think shall"
    )


def _of_other_faces(parser: argparse.ArgumentParser) -> None:
    """Known, so that what is said of them is more than that they are not."""
    hidden = argparse.SUPPRESS
    parser.add_argument("--prompt", "--command", "-p", "-c", dest="prompt", metavar="TEXT", help=hidden)
    for name in ("--input-format", "--output-format"):
        parser.add_argument(name, help=hidden)
    for name in ("--print", "--quiet", "--final-message-only", "--acp"):
        parser.add_argument(name, action="store_true", help=hidden)


def _iterations(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -2
    if number < -1:
        raise argparse.ArgumentTypeError("must be a whole number, -1 or more")
    return number


def refuse_unfit(flags: argparse.Namespace) -> None:
    """Invalid for what cannot be meant together, or not by a client that speaks Wire."""
    for flag, instead in OTHER_FACES.items():
        if getattr(flags, flag[2:].replace("-", "_")):
            raise Invalid(f"{flag} cannot go with Wire.", next_step=instead)
    for one, its_flag, other, others_flag in (*_TOGETHER, ("agent", "--agent", "agent_file", "--agent-file")):
        if getattr(flags, one) and getattr(flags, other) is not None and getattr(flags, other) != "":
            raise Invalid(f"{its_flag} and {others_flag} cannot go together.", next_step="Give one of them.")
    if flags.session is not None and not flags.session.strip():
        raise Invalid("--session without an id lets a person choose, and here is none.", next_step="Give it an id.")
    for flag in _NEVER_EMPTY:
        given = getattr(flags, flag[2:].replace("-", "_"))
        if any(not value.strip() for value in (given if isinstance(given, list) else [given]) if value is not None):
            raise Invalid(f"{flag} is empty.", next_step="Give it a value, or leave it out.")


def notes(flags: argparse.Namespace) -> list[str]:
    """What was asked for and does not hold here, for the log."""
    said = [f"wire: --skills-dir {path} is not there." for path in flags.skills_dir if not os.path.isdir(path)]
    if flags.agent == "okabe":
        said.append(OKABE)
    if flags.prompt is not None:
        said.append("wire: --prompt is not heard: the client sends its prompts itself.")
    if flags.mcp_config_file or flags.mcp_config:
        said.append("wire: MCP servers were named, and this version starts none.")
    return said
