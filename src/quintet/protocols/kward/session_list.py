"""sessions/list: the newest sessions of a workspace, whoever began them, as a tree. Looking changes nothing.

From the journal, and from files that nobody has opened here yet; what those say is kept beside the journal while they
stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quintet.domain.thread import Thread, ThreadQuery
from quintet.protocols.kward.house import FileSeen, House
from quintet.protocols.kward.messages import Message
from quintet.protocols.kward.models import Listed
from quintet.protocols.kward.places import KIND, directory_of, named_in
from quintet.protocols.kward.session_import import Read, read
from quintet.protocols.kward.times import iso
from quintet.protocols.kward.transcript import whole

DEFAULT_LIMIT = 20
PAGE = 100
EXCERPT = 120
INDEXED = 5_000  # files that are remembered at most


class Indexed(Struct, frozen=True):
    """A file of somebody else's, as it was when it was last read; without a row it is no session."""

    size: int
    modified_ms: int
    row: Listed | None


async def listed(house: House, root: str, limit: int) -> list[Listed]:
    rows = await _threads(house, root, limit)
    rows += await _strangers(house, root, rows, limit)
    rows.sort(key=lambda row: row.modified_at, reverse=True)
    return tree(rows[:limit])


def excerpt(text: str, most: int = EXCERPT) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1] + "…"


def first_words(told: Iterable[Message]) -> str | None:
    return next((excerpt(m.text()) for m in told if m.role == "user" and m.text().strip()), None)


async def _threads(house: House, root: str, limit: int) -> list[Listed]:
    project = await house.projects.known(root)
    found: list[Listed] = []
    before: tuple[int, str] | None = None
    while project is not None and len(found) < limit:
        page = await house.threads.page(ThreadQuery(project.id, before=before, limit=PAGE))
        for thread in page:
            if thread.settings.cwd == root and not unused(thread) and len(found) < limit:
                found.append(await row_of(house, thread))
        if len(page) < PAGE:
            break
        before = (page[-1].updated_ms, page[-1].id)
    return found


def unused(thread: Thread) -> bool:
    """Nobody has said anything in it or given it a name; a copy of another one counts as used."""
    return thread.last_ordinal == 0 and not thread.title_final and not thread.forked_from


async def row_of(house: House, thread: Thread) -> Listed:
    place = await house.files.place(thread, house.config_dir)
    above = await house.files.ancestry(place, thread)
    told = whole(thread, await house.threads.items(thread.id))
    modified = await house.disk.modified_ms(place.path)
    return Listed(
        place.id,
        place.path,
        thread.settings.cwd,
        thread.settings.cwd,
        iso(thread.created_ms),
        iso(thread.updated_ms if modified is None else modified),
        thread.title if thread.title_final and thread.title else None,
        first_words(told),
        len(told),
        above.parent_id or None,
        above.parent_path or None,
    )


# --- files of others --------------------------------------------------------------------------------------------------
async def _strangers(house: House, root: str, known: list[Listed], limit: int) -> list[Listed]:
    """Those that are new enough to be among the newest, beside what is known."""
    paths = {row.path for row in known}
    times = sorted((row.modified_at for row in known), reverse=True)
    oldest = times[limit - 1] if len(times) >= limit else ""
    seen = await house.disk.files(directory_of(house.config_dir, root))
    newest = sorted((f for f in seen if f.path.endswith(".jsonl")), key=lambda f: f.modified_ms, reverse=True)
    index = await _index(house)
    fresh: dict[str, Indexed] = {}
    found: list[Listed] = []
    for file in newest:
        if len(found) == limit or iso(file.modified_ms) < oldest:
            break
        if file.path in paths or await _ours(house, file.path):
            continue
        entry = index.get(file.path)
        if entry is None or (entry.size, entry.modified_ms) != (file.size, file.modified_ms):
            entry = fresh[file.path] = await _looked_at(house, file)
        if entry.row is not None and entry.row.cwd == root:
            found.append(entry.row)
    if fresh:
        kept = {**index, **fresh}
        await house.files.write_index(msgspec.json.encode(dict(list(kept.items())[-INDEXED:])))
    return found


async def _ours(house: House, path: str) -> bool:
    handle = await house.feed.journal.find_handle(KIND, path, named_in(path))
    return handle is not None and not handle.deleted_ms


async def _index(house: House) -> dict[str, Indexed]:
    try:
        return msgspec.json.decode(await house.files.read_index(), type=dict[str, Indexed])
    except msgspec.DecodeError:
        return {}


async def _looked_at(house: House, file: FileSeen) -> Indexed:
    data = await house.files.read(file.path)
    found = read(data) if data else None
    return Indexed(file.size, file.modified_ms, _row(found, file) if found else None)


def _row(found: Read, file: FileSeen) -> Listed:
    told = found.messages()
    return Listed(
        found.id,
        file.path,
        found.cwd,
        found.cwd,
        iso(found.created_ms),
        iso(file.modified_ms),
        found.name or None,
        first_words(told),
        len(told),
        found.parent_id or None,
        found.parent_path or None,
    )


# --- the tree ---------------------------------------------------------------------------------------------------------
def tree(rows: list[Listed]) -> list[Listed]:
    """Children under their parents, each group in the order given; whose parent is not among them stands by itself."""
    here = {row.id for row in rows}
    below: dict[str | None, list[Listed]] = {}
    for row in rows:
        below.setdefault(row.parent_id if row.parent_id in here and row.parent_id != row.id else None, []).append(row)
    out: list[Listed] = []

    def lay(group: list[Listed]) -> None:
        """Without recursion: copies of copies may be any number of generations."""
        waiting = _level(group, 0, ())
        while waiting:
            row = waiting.pop()
            out.append(row)
            on = (*row.ancestor_continues, not row.is_last) if row.depth else ()
            waiting += _level(below.pop(row.id, []), row.depth + 1, on)

    lay(below.pop(None, []))
    for circle in list(below.values()):  # files may say anything of each other
        laid = {row.path for row in out}
        lay([row for row in circle if row.path not in laid])
    return out


def _level(group: list[Listed], depth: int, continues: tuple[bool, ...]) -> list[Listed]:
    """Last first, as they are taken from the end."""
    made = [replace(row, depth=depth, is_last=False, ancestor_continues=continues) for row in group]
    made[-1:] = [replace(row, is_last=True) for row in made[-1:]]
    return made[::-1]


def limit_of(given: int | None) -> int:
    return given if given and given > 0 else DEFAULT_LIMIT


def resolved(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))
