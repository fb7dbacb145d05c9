"""Identity: outside clients' names for threads, and which project a directory belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.errors import Conflict, Invalid
from quintet.domain.project import Profile
from quintet.domain.thread import Handle, ThreadSettings
from quintet.engine.profiles import Profiles
from quintet.engine.projects import Handles, Projects
from quintet.workspace.project_root import project_root
from tests.fakes.engine import ME, House, Process
from tests.fakes.waiting import soon

HERE = ThreadSettings("/project/here")


@pytest.mark.req("mechanisms:M7.handles")
async def test_a_clients_own_id_opens_the_same_thread_again_also_elsewhere(house: House) -> None:
    one, other = await house.process(), await house.process()
    handle = Handles.new("wire", "/scope", "s1")
    first = await one.threads.open(handle, HERE)
    again = await other.threads.open(handle, HERE)
    assert (first.created, again.created) == (True, False)
    assert first.thread.id == again.thread.id
    for elsewhere in (Handles.new("wire", "/other", "s1"), Handles.new("knp", "/scope", "s1")):
        assert (await one.threads.open(elsewhere, HERE)).thread.id != first.thread.id


@pytest.mark.req("mechanisms:M7.handles")
async def test_a_live_handle_is_unique(one: Process) -> None:
    handle = Handle("wire", "", "s1")
    await one.threads.create(HERE, handle=handle)
    with pytest.raises(Conflict):
        await one.threads.create(HERE, handle=handle)
    assert [e.kind for e in await one.events()] == ["project.added", "thread.created"]


@pytest.mark.req("mechanisms:M7.handles")
async def test_the_handle_of_a_deleted_thread_stays_known_and_can_be_used_anew(one: Process) -> None:
    handle = Handles.new("kaiak", "/w", "s1")
    first = (await one.threads.open(handle, HERE)).thread
    assert not await one.handles.was_deleted("kaiak", "/w", "s1")
    await soon(one.threads.delete(first.id, ME))
    assert await one.handles.find("kaiak", "/w", "s1") is None
    assert await one.handles.was_deleted("kaiak", "/w", "s1")
    anew = await one.threads.open(handle, HERE)
    assert anew.created
    assert anew.thread.id != first.id
    assert not await one.handles.was_deleted("kaiak", "/w", "s1")


@pytest.mark.req("mechanisms:M7.coreid")
async def test_a_core_id_is_accepted_where_a_clients_own_id_is(one: Process) -> None:
    thread = await one.thread()
    opened = await one.threads.open(Handles.new("wire", "/scope", thread), HERE)
    assert (opened.thread.id, opened.created) == (thread, False)
    assert await one.handles.find("knp", "", "thr_00000000000000000000000000") is None


def repository(path: Path) -> Path:
    (path / ".git").mkdir(parents=True)
    (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return path


@pytest.mark.req("mechanisms:M7.project")
async def test_a_project_is_the_top_of_the_repository_and_named_by_it(one: Process, tmp_path: Path) -> None:
    projects = Projects(one.journal, project_root)
    top = repository(tmp_path / "a" / "My App")
    (top / "src" / "deep").mkdir(parents=True)
    project = await projects.of(str(top / "src" / "deep"))
    assert (project.root, project.name) == (str(top.resolve()), "my-app")
    assert await projects.of(str(top)) == project
    twin = await projects.of(str(repository(tmp_path / "b" / "My App")))
    assert twin.name == "my-app-2"
    (tmp_path / "plain").mkdir()
    plain = await projects.of(str(tmp_path / "plain"))
    assert (plain.root, plain.name) == (str((tmp_path / "plain").resolve()), "plain")
    assert {p.id for p in await projects.all()} == {project.id, twin.id, plain.id}


@pytest.mark.req("mechanisms:M7.project")
async def test_a_thread_keeps_its_own_directory_within_its_project(one: Process) -> None:
    thread = await one.threads.create(ThreadSettings("/project/here"))
    (project,) = await one.projects.all()
    assert (thread.project, thread.settings.cwd) == (project.id, "/project/here")


@pytest.mark.req("mechanisms:M7.profile")
async def test_a_thread_belongs_to_a_profile(one: Process) -> None:
    assert (await one.threads.create(HERE)).profile == "default"
    mine = await one.threads.create(HERE, profile="mine")
    assert (await one.threads.fork(mine.id)).profile == "mine"


@pytest.mark.req("mechanisms:M7.profile")
def test_the_default_profile_is_a_directory_in_the_home_and_others_may_live_elsewhere() -> None:
    elsewhere = Profile("kward", "/somewhere/else")
    profiles = Profiles("/the/home", {"kward": elsewhere})
    assert profiles.named() == Profile("default", "/the/home/profiles/default")
    assert profiles.named("kward") is elsewhere


@pytest.mark.req("mechanisms:M7.profile")
@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a-", "x" * 49, "a\n", "é"])
async def test_what_could_lead_out_of_the_profiles_is_no_name(lone: Process, name: str) -> None:
    with pytest.raises(Invalid, match="profile"):
        await lone.threads.create(ThreadSettings("/work"), profile=name)
