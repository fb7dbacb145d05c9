"""Skills: directories with a SKILL.md, written instructions for a kind of task. Found and read here, never run.

The person's own lie in Quintet's home; those of a project come with its repository and are somebody else's words, so
each is known by a digest of everything in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec

from quintet.domain.errors import Invalid

FILE = "SKILL.md"
IN_PROJECT = (os.path.join(".quintet", "skills"), os.path.join(".agents", "skills"))
FILES_AT_MOST = 500
BYTES_AT_MOST = 10 * 1024 * 1024
HEAD = 8_192
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Skill(msgspec.Struct, frozen=True):
    name: str
    description: str
    directory: str  # absolute, resolved
    of_project: bool
    is_flow: bool = False  # it holds a chart that can be run step by step


def find_skills(home: str, root: str, given: Sequence[str] = ()) -> list[Skill]:
    """Every skill there is, by name. The person's own hides a project's of the same name, never the other way round;
    those in directories `given` for this run hide both."""
    found: dict[str, Skill] = {}
    for place in IN_PROJECT:
        found.update({s.name: s for s in _skills_in(os.path.join(root, place), within=root, of_project=True)})
    if home:
        own = os.path.join(home, "skills")
        found.update({s.name: s for s in _skills_in(own, within=own, of_project=False)})
    found.update({s.name: s for s in given_skills(given)})
    return sorted(found.values(), key=lambda skill: skill.name)


def given_skills(directories: Sequence[str]) -> list[Skill]:
    """Those in directories a person named for this run: the person's own, under the names they give themselves."""
    found: dict[str, Skill] = {}
    for directory in directories:
        for skill in _skills_in(directory, within=directory, of_project=False):
            name = split_front(text_of(skill, HEAD))[0].get("name", "")
            named = msgspec.structs.replace(skill, name=name if _NAME.fullmatch(name) else skill.name)
            found[named.name] = named
    return sorted(found.values(), key=lambda skill: skill.name)


def text_of(skill: Skill, most: int = BYTES_AT_MOST) -> str:
    """Its instructions as they are written, what stands at their head included."""
    with _opened(os.path.join(skill.directory, FILE)) as file:
        return file.read(most).decode("utf-8", "replace")


def files_of(skill: Skill) -> list[str]:
    """The regular files of a skill, relative, sorted. Links are left out: they could lead anywhere."""
    found: list[str] = []
    for path in _walk(skill.directory):
        found.append(os.path.relpath(path, skill.directory))
        if len(found) > FILES_AT_MOST:
            raise Invalid(f"The skill {skill.name} has more than {FILES_AT_MOST} files.")
    return sorted(found)


def digest_of(skill: Skill) -> str:
    """One digest of all names and contents: whatever changes in the skill changes it."""
    total, whole = 0, hashlib.sha256()
    for name in files_of(skill):
        with _opened(os.path.join(skill.directory, name)) as file:
            data = file.read(BYTES_AT_MOST + 1)
        total += len(data)
        if total > BYTES_AT_MOST:
            raise Invalid(f"The skill {skill.name} is larger than {BYTES_AT_MOST // 1024 // 1024} MiB.")
        whole.update(name.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(data).digest())
    return whole.hexdigest()


def _skills_in(directory: str, *, within: str, of_project: bool) -> Iterator[Skill]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        place = os.path.realpath(os.path.join(directory, name))
        inside = place.startswith(os.path.realpath(within) + os.sep)
        if _NAME.fullmatch(name) and inside and os.path.isfile(os.path.join(place, FILE)):
            front, body = _head(os.path.join(place, FILE))
            is_flow = front.get("type", "").lower() == "flow"
            yield Skill(name, _description(front, body), place, of_project, is_flow)


def _head(path: str) -> tuple[dict[str, str], str]:
    try:
        with _opened(path) as file:
            return split_front(file.read(HEAD).decode("utf-8", "replace"))
    except (OSError, Invalid):
        return {}, ""


def _description(front: dict[str, str], body: str) -> str:
    """The `description` of the front matter, else the first line of text. One line."""
    said = front.get("description") or next((line.strip("# ") for line in body.splitlines() if line.strip("# ")), "")
    return " ".join(said.split())[:300]


def split_front(text: str) -> tuple[dict[str, str], str]:
    """The plain `name: value` lines between the two dashed ones at the top, and the rest."""
    found = re.match(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", text, re.DOTALL)
    if found is None:
        return {}, text
    pairs = (line.partition(":") for line in found[1].splitlines() if not line.startswith((" ", "\t", "#")))
    return {name.strip(): value.strip().strip("\"'") for name, colon, value in pairs if colon}, text[found.end() :]


def _walk(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def _opened(path: str) -> BinaryIO:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Invalid(f"{os.path.basename(path)} is not a regular file.")
    return os.fdopen(handle, "rb")
