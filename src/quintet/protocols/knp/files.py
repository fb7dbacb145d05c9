"""Files of a namespace's project: list, read, find, search. Paths are written from its root: /src/index.ts."""

from __future__ import annotations

import base64

import msgspec
from msgspec import UNSET

from quintet.domain.errors import Invalid
from quintet.domain.ports import Entry
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.house import House
from quintet.protocols.knp.mime import mime_type
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import HOLDER, Routes

FILES = Routes("files", who=HOLDER, since="0.1")
READ_BYTES = 1024 * 1024
MOST = 1_000


class AtPath(msgspec.Struct, frozen=True):
    path: str = "/"
    namespace: str = ""


@FILES.get("/files", summary="a directory, directories first", params=AtPath, result=knp.Entries)
async def entries(call: HttpCall[House], params: AtPath, body: None) -> knp.Entries:
    house = call.state
    root = (await house.namespace(call, params.namespace)).rooted()
    found = await house.files.entries(root, params.path)
    return knp.Entries([_entry(entry) for entry in found])


def _entry(entry: Entry) -> knp.FileEntry:
    name = entry.path.rpartition("/")[2]
    return knp.FileEntry(name, f"/{entry.path}", _type(entry), entry.ignored, UNSET if entry.readable else False)


def _type(entry: Entry) -> str:
    return "directory" if entry.directory else "file"


@FILES.get("/files/content", summary="what is in a file", params=AtPath, result=knp.FileText)
async def content(call: HttpCall[House], params: AtPath, body: None) -> knp.FileText:
    house = call.state
    root = (await house.namespace(call, params.namespace)).rooted()
    found = await house.files.content(root, params.path, READ_BYTES)
    mime = mime_type(found.path, text=found.text)
    if found.text:
        # A character that the limit cut in two is left out; that there is more is said.
        return knp.FileText(f"/{found.path}", found.data.decode(errors="ignore"), mime, truncated=found.truncated)
    encoded = base64.b64encode(found.data).decode()
    return knp.FileText(f"/{found.path}", encoded, mime, "base64", found.truncated)


class FindFiles(msgspec.Struct, frozen=True):
    query: str = ""
    type: str = ""  # file or directory; both unless said
    limit: int = 50
    namespace: str = ""


@FILES.get("/files/search", summary="files and directories by their path", params=FindFiles, result=knp.FoundPaths)
async def search(call: HttpCall[House], params: FindFiles, body: None) -> knp.FoundPaths:
    house = call.state
    if params.type not in ("", "file", "directory"):
        raise Invalid("`type` is file or directory.")
    root = (await house.namespace(call, params.namespace)).rooted()
    found = await house.files.find(
        root,
        params.query,
        directories=params.type != "file",
        files=params.type != "directory",
        limit=_limited(params.limit),
    )
    shown = [knp.FoundPath(f"/{e.path}", _type(e), UNSET if e.readable else False) for e in found]
    return knp.FoundPaths(shown)


class Grep(msgspec.Struct, frozen=True):
    pattern: str = ""
    glob: str = ""
    limit: int = 100
    namespace: str = ""


@FILES.get("/files/grep", summary="lines that fit a regular expression", params=Grep, result=knp.FoundLines)
async def grep(call: HttpCall[House], params: Grep, body: None) -> knp.FoundLines:
    house = call.state
    root = (await house.namespace(call, params.namespace)).rooted()
    found, more = await house.files.grep(root, params.pattern, params.glob.lstrip("/"), _limited(params.limit))
    return knp.FoundLines([knp.FoundLine(f"/{m.path}", m.line, m.column, m.text) for m in found], more)


def _limited(limit: int) -> int:
    if limit < 1:
        raise Invalid("`limit` is at least 1.")
    return min(limit, MOST)
