"""Which threads have files of Kimi's: those its clients named, those opened by their own id, all if wanted; and what
lies there of their subagents."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.thread import Thread, ThreadSettings
from quintet.engine.mirrors import Mirrors
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.names import Names
from quintet.protocols.wire.place import Place, name_of
from quintet.protocols.wire.session_files import SessionFiles
from quintet.workspace.mirror_files import DiskMirrorFiles
from tests.fakes.engine import ME, House, Process
from tests.fakes.family import Family, task
from tests.fakes.family import process as make_process
from tests.fakes.providers import GatedProvider, text
from tests.fakes.wire_client import spoken
from tests.fakes.wire_peer import Peer

WORK = "/project/here"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Share:
    """Kimi's share directory, and whoever writes there."""

    def __init__(self, process: Process, tmp_path: Path, *, everybody: bool = False) -> None:
        self.process = process
        self.path = tmp_path / "share"
        self.notes: list[str] = []
        files = DiskMirrorFiles(str(tmp_path / "run"))
        self.files = SessionFiles(process.journal, process.threads, files, Options(Names()), self.notes.append)
        names = {"wire": self.named} if everybody else {}
        mirrors = Mirrors(process.journal, {"wire": lambda: self.files}, self.notes.append, names)
        process.feed.mirror, process.feed.unmirror = mirrors.bring_up, mirrors.remove

    def named(self, thread: Thread) -> Any:
        return name_of(thread, str(self.path))

    def sessions(self) -> list[Path]:
        return sorted(self.path.glob("sessions/*/*"))

    async def open(self, session: str, work: str = WORK) -> Thread:
        return await self.files.open(Place(str(self.path), work, session), ThreadSettings(work))


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path / "home")
    yield await make_process(house, "helper")
    await house.close()


@pytest.mark.req("mechanisms:M6.all")
async def test_only_threads_with_a_name_of_kimis_have_files(process: Process, tmp_path: Path) -> None:
    share = Share(process, tmp_path)
    await process.run(await process.thread(), GatedProvider(text("one")))
    assert share.sessions() == []


@pytest.mark.req("mechanisms:M6.all", "wire:S94")
async def test_where_all_are_wanted_every_thread_has_files_under_a_name_the_sdk_lists(
    process: Process, tmp_path: Path
) -> None:
    share = Share(process, tmp_path, everybody=True)
    thread = await process.thread()
    for words in ("one", "two"):
        await process.run(thread, GatedProvider(text(words)))
    (session,) = share.sessions()
    assert UUID.fullmatch(session.name)
    assert sorted(p.name for p in session.iterdir()) == ["context.jsonl", "state.json", "wire.jsonl"]
    assert [row["message"]["type"] for row in lines(session / "wire.jsonl")[1:]].count("TurnBegin") == 2
    used = json.loads((share.path / "kimi.json").read_text())["work_dirs"]
    assert used == [{"path": WORK, "kaos": "local", "last_session_id": session.name}]
    assert (await share.open(session.name)).id == thread
    await process.threads.delete(thread, ME)
    assert share.sessions() == []
    assert share.notes == []


@pytest.mark.req("wire:S93", "wire:S113")
async def test_a_thread_begun_elsewhere_is_opened_by_its_own_id_and_has_files_from_then_on(
    process: Process, tmp_path: Path
) -> None:
    share = Share(process, tmp_path)
    thread = await process.thread()
    await process.run(thread, GatedProvider(text("one")), say="before")
    assert (await share.open(thread)).id == thread
    await process.run(thread, GatedProvider(text("two")), say="after")
    (session,) = share.sessions()
    assert session.name == thread
    begun = [row["message"]["payload"] for row in lines(session / "wire.jsonl")[1:] if "TurnBegin" in str(row)]
    assert begun == [{"user_input": "before"}, {"user_input": "after"}]
    assert (await share.open(thread)).id == thread


@pytest.mark.req("wire:S113")
async def test_an_id_of_another_directorys_thread_names_a_new_one(process: Process, tmp_path: Path) -> None:
    share = Share(process, tmp_path)
    elsewhere = await process.thread("/project/elsewhere")
    opened = await share.open(elsewhere)
    assert opened.id != elsewhere
    assert "no thread of /project/here" in share.notes[0]
    unknown = await share.open("thr_unknown")
    assert unknown.id not in (elsewhere, opened.id)


@pytest.mark.req("wire:S113")
async def test_a_thread_deleted_under_its_client_is_begun_anew_under_its_name(process: Process, tmp_path: Path) -> None:
    share = Share(process, tmp_path)
    peer = Peer(process, GatedProvider(text("one"), text("two")), house={"open_thread": lambda: share.open("s1")})
    assert spoken(await peer.prompt("first")) == "one"
    (before,) = await process.journal.handles((await share.open("s1")).id)
    await process.threads.delete(before.thread, ME)
    assert spoken(await peer.prompt("second")) == "two"
    after = await share.open("s1")
    assert after.id != before.thread
    begun = [
        row["message"]["payload"] for row in lines(share.sessions()[0] / "wire.jsonl")[1:] if "TurnBegin" in str(row)
    ]
    assert begun == [{"user_input": "second"}]
    await peer.close()


async def test_a_subagent_has_files_of_its_own_below_its_callers(process: Process, tmp_path: Path) -> None:
    share = Share(process, tmp_path)
    thread = await share.open("s1")
    family = Family(task("helper", call_id="t1") + "---\ntext: above\n", helper="text: below")
    await family.run(process, thread.id)
    (child,) = await process.threads.children(thread.id)
    (session,) = share.sessions()
    place = session / "subagents" / child.id
    assert sorted(p.name for p in place.iterdir()) == ["context.jsonl", "meta.json", "wire.jsonl"]
    told = [row["message"]["type"] for row in lines(place / "wire.jsonl")[1:]]
    assert told == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"]
    roles = [row["role"] for row in lines(place / "context.jsonl")]
    assert roles == ["_system_prompt", "_checkpoint", "user", "_checkpoint", "assistant"]
    meta = json.loads((place / "meta.json").read_text())
    assert (meta["agent_id"], meta["subagent_type"], meta["status"]) == (child.id, "helper", "completed")
    await process.run(thread.id, GatedProvider(text("again")))
    assert len(lines(place / "wire.jsonl")) == 6
    await process.threads.delete(thread.id, ME)
    assert share.sessions() == []
    assert share.notes == []
