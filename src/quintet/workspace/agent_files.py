"""Agents written as files: `NAME.md` with a few lines of front matter, the rest is their instructions. Blocking.

One that cannot be understood is named with what is wrong, and its name means nothing else meanwhile.
"""

from __future__ import annotations

import os
import re
import stat

from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.errors import Invalid
from quintet.domain.turn import Mode
from quintet.workspace.files import open_regular
from quintet.workspace.paths import PathGuard, contains
from quintet.workspace.skills import split_front

IN_PROJECT = os.path.join(".quintet", "agents")
BYTES_AT_MOST = 64 * 1024
FILES_AT_MOST = 100
KEYS = ("name", "description", "model", "tools", "mode")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class AgentFiles:
    def __init__(self, home: str) -> None:
        self._home = home
        self._guard = PathGuard(home)

    def own(self) -> AgentsFound:
        """The person's, in Quintet's home."""
        return self._in(os.path.join(self._home, "agents"), of_project=False)

    def of_project(self, cwd: str) -> AgentsFound:
        """Those that come with the project: their words, and nothing that would allow or cost more."""
        root = self._guard.workspace(cwd)
        directory = os.path.join(root, IN_PROJECT)
        if not contains(root, os.path.realpath(directory)):
            return AgentsFound()
        return self._in(directory, of_project=True)

    def _in(self, directory: str, *, of_project: bool) -> AgentsFound:
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith(".md"))
        except OSError:
            return AgentsFound()
        agents: dict[str, Agent] = {}
        problems: dict[str, str] = {}
        notes = [f"{directory}: only the first {FILES_AT_MOST} agents are read."] if names[FILES_AT_MOST:] else []
        for file in names[:FILES_AT_MOST]:
            path = os.path.join(directory, file)
            stem = file.removesuffix(".md")
            try:
                agent, remarks = _agent(stem, self._text(path, of_project=of_project), path, of_project=of_project)
                if agent.name in agents:
                    raise Invalid(f"another file is named {agent.name} too.")
            except Invalid as error:
                problems[stem] = f"{path}: {error.message}"
            except OSError as error:
                problems[stem] = f"{path}: {error.strerror or 'cannot be read'}."
            else:
                agents[agent.name] = agent
                notes += remarks
        return AgentsFound(tuple(agents.values()), tuple(problems.items()), tuple(notes))

    def _text(self, path: str, *, of_project: bool) -> str:
        if of_project:
            handle = open_regular(self._guard.reading(path, os.path.dirname(path)))
        else:  # a link in the home was made by the person: no tool reaches in there
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Invalid("it is not a regular file.")
            data = file.read(BYTES_AT_MOST + 1)
        if len(data) > BYTES_AT_MOST:
            raise Invalid(f"it is longer than {BYTES_AT_MOST // 1024} KiB.")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise Invalid("it is not UTF-8 text.") from error
        return "".join(c if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f") else "\ufffd" for c in _plain(text))


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _agent(stem: str, text: str, path: str, *, of_project: bool) -> tuple[Agent, list[str]]:
    front, body = split_front(text)
    name = front.get("name") or stem
    if not _NAME.fullmatch(name):
        raise Invalid("its name may hold letters, digits, dots, dashes and underscores only.")
    mode = front.get("mode", "")
    if mode and mode not in list(Mode):
        raise Invalid(f"its mode is none of {', '.join(Mode)}.")
    ignored = [key for key in front if key not in KEYS]
    if of_project and front.get("model"):
        ignored.append("model")  # what a turn costs, and who gets to read it, is not the project's to say
    notes = [f"{path}: {', '.join(ignored)} ignored."] if ignored else []
    agent = Agent(
        name,
        " ".join(front.get("description", "").split())[:300],
        body.strip(),
        "" if of_project else front.get("model", ""),
        _tools(front["tools"]) if "tools" in front else None,
        Mode(mode) if mode else None,
        path,
        of_project,
    )
    return agent, notes


def _tools(text: str) -> tuple[str, ...]:
    """`read, grep` or `[read, grep]`; nothing means none."""
    return tuple(word.strip("\"'") for word in re.split(r"[\s,]+", text.strip("[] ")) if word)
