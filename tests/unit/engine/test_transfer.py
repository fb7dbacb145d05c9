"""Transfer: a thread as a file and back, losing nothing; a damaged file changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import (
    AssistantMessage,
    ImagePart,
    MediaKind,
    MediaPart,
    Summary,
    TextPart,
    UserMessage,
    user_text,
)
from quintet.domain.thread import ThreadQuery
from quintet.engine.transfer import export_thread, import_thread
from tests.fakes.engine import Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool

CLIP = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAAA", label="v")
SAMPLE = (
    UserMessage((TextPart("look\n\u2028 ü"), ImagePart("image/png", "AAAA", label="i"), CLIP)),
    AssistantMessage("half", partial=True, sent=CLIP),
    Summary("short"),
    user_text("end"),
)


async def exported(process: Process, *bodies: object) -> list[bytes]:
    made = await process.put("", *(bodies or SAMPLE))  # type: ignore[arg-type]
    return list(await export_thread(process.threads, made.id))


async def test_what_is_exported_comes_back_whole(one: Process) -> None:
    thread = await one.thread(model="a/b")
    await one.run(thread, GatedProvider(call("read", '{"a":1}'), text("x")), [FakeTool("read")], say="first")
    await one.run(thread, GatedProvider(text("y")), say="second")
    await one.threads.rename(thread, "kept")
    await one.threads.revert(thread, 4)
    await one.run(thread, GatedProvider(text("z")), say="third")
    await one.threads.clear(thread)
    lines = list(await export_thread(one.threads, thread))
    made = await import_thread(one.threads, lines, cwd="/project/here")
    source = await one.journal.thread(thread)
    assert made.id != thread
    assert (made.title, made.title_final, made.settings, made.view) == (
        "kept",
        True,
        source.settings,
        source.view,
    )
    before, after = await one.threads.items(thread), await one.threads.items(made.id)
    assert [(i.ordinal, i.body, i.at_ms) for i in after] == [(i.ordinal, i.body, i.at_ms) for i in before]
    assert [i.origin for i in after] == [i.id for i in before]
    again = list(await export_thread(one.threads, made.id))
    assert len(again) == len(lines)


async def test_an_imported_thread_may_live_elsewhere_and_goes_on(one: Process) -> None:
    made = await import_thread(one.threads, await exported(one), cwd="/elsewhere")
    assert made.settings.cwd == "/elsewhere"
    provider = GatedProvider(text("x"))
    await one.run(made.id, provider, say="go on")
    assert [i.body for i in provider.requests[0].items] == [*SAMPLE, user_text("go on")]


async def test_a_fork_with_gaps_in_its_ordinals_survives_the_journey(one: Process) -> None:
    made = await one.put("", *[user_text(w) for w in "abcd"])
    await one.threads.revert(made.id, 1)
    await one.run(made.id)
    fork = await one.threads.fork(made.id)
    copy = await import_thread(one.threads, await export_thread(one.threads, fork.id), cwd="/project/here")
    assert [i.ordinal for i in await one.threads.items(copy.id)] == [1, 5, 6]


def _with(line: bytes, **changes: object) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(line) | changes) + b"\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [],
        lambda lines: [b"\n"],
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], lines[1][:-9], *lines[2:]],
        lambda lines: [lines[0], b"\xff\xfe{}\n", *lines[2:]],
        lambda lines: [lines[0], b'{"id": 1}\n', *lines[2:]],
        lambda lines: [lines[0], b"null\n", *lines[2:]],
        lambda lines: [_with(lines[0], format="zip"), *lines[1:]],
        lambda lines: [_with(lines[0], version=99), *lines[1:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], lines[1], lines[1], *lines[3:]],
        lambda lines: [*lines[:-1], _with(lines[-1], ordinal=0)],
        lambda lines: [*lines[:-1], _with(lines[-1], ordinal=-3)],
        lambda lines: [*lines[:-1], _with(lines[-1], ordinal=10**15)],
        lambda lines: [*lines[:-1], _with(lines[-1], at_ms=10**18)],
        lambda lines: [_with(lines[0], items=-1), *lines[1:]],
        lambda lines: [_with(lines[0], items=10**12), *lines[1:]],
    ],
    ids=[
        "empty", "blank", "short", "long", "torn", "bytes", "fields", "null", "format", "newer", "order", "twice",
        "zero", "negative", "huge", "time", "minus", "announced",
    ],
)  # fmt: skip
async def test_a_damaged_file_is_refused_whole(one: Process, damage: object) -> None:
    lines = await exported(one)
    before = len(await one.events())
    with pytest.raises(Invalid):
        await import_thread(one.threads, damage(lines), cwd="/project/here")  # type: ignore[operator]
    assert len(await one.events()) == before
    assert len(await one.threads.page(ThreadQuery())) == 1


@pytest.mark.parametrize(
    "view",
    [
        {"hidden": [[1, 2, 3]]},
        {"hidden": [[0, 2]]},
        {"hidden": [[3, 2]]},
        {"hidden": [[1, 5]]},
        {"hidden": [[-(10**9), 2]]},
        {"hidden": [[1, 1]] * 1_001},
        {"reverted": [2, 10**15]},
        {"marks": [{"at": 0, "first": -300_000_000}]},
        {"marks": [{"at": 0, "first": 0}]},
        {"marks": [{"at": 5, "first": 1}]},
        {"marks": [{"at": -1, "first": 1}]},
        {"marks": [{"at": 4, "first": 6}]},
        {"marks": [{"at": 4, "first": 1, "summary": 5}]},
        {"marks": [{"at": 4, "first": 1, "summary": -1}]},
        {"marks": [{"at": 4, "first": 1}] * 1_001},
    ],
    ids=lambda view: str(view)[:40],
)
async def test_a_view_that_goes_beyond_the_items_is_refused(one: Process, view: dict[str, object]) -> None:
    lines = await exported(one)
    before = len(await one.events())
    with pytest.raises(Invalid):
        await import_thread(one.threads, [_with(lines[0], view=view), *lines[1:]], cwd="/project/here")
    assert len(await one.events()) == before


async def test_a_view_that_stays_within_the_items_is_taken_as_it_is(one: Process) -> None:
    lines = await exported(one)
    view = {"hidden": [[1, 2]], "reverted": [4, 4], "marks": [{"at": 0, "first": 1}, {"at": 4, "first": 5}]}
    made = await import_thread(one.threads, [_with(lines[0], view=view), *lines[1:]], cwd="/project/here")
    assert msgspec.to_builtins(made.view) == msgspec.to_builtins(msgspec.convert(view, type(made.view)))


async def test_the_file_does_not_choose_the_workspace(one: Process) -> None:
    lines = await exported(one)
    beside = ["/home/of/somebody/else"]
    chosen = _with(lines[0], settings={"cwd": "/home/of/somebody", "model": "a/b", "directories": beside})
    made = await import_thread(one.threads, [chosen, *lines[1:]], cwd="/project/mine")
    assert (made.settings.cwd, made.settings.model, made.settings.directories) == ("/project/mine", "a/b", ())


async def test_an_endless_file_is_refused_as_soon_as_it_says_more_than_it_announced(one: Process) -> None:
    lines = await exported(one)

    def endless() -> Iterator[bytes]:
        yield from lines
        ordinal = len(lines)
        while True:
            yield _with(lines[-1], ordinal=ordinal)
            ordinal += 1

    with pytest.raises(Invalid, match="holds more"):
        await import_thread(one.threads, endless(), cwd="/project/here")
