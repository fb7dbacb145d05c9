from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from quintet.domain.errors import StorageDamaged, StorageFull, StorageReadOnly
from quintet.workspace.blobs import _PIECE, Blobs, digest_of
from tests.fakes.clock import SettableClock

HOUR = 3600


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def blobs(tmp_path, clock):
    return Blobs(str(tmp_path), clock)


def place(tmp_path, digest):
    return tmp_path / "blobs" / digest[:2] / digest


@pytest.mark.req("mechanisms:M8.blobs")
def test_what_is_put_comes_back_and_equal_contents_are_kept_once(blobs, tmp_path):
    first, second, again = blobs.put_all([b"one", b"two" * 1000, b"one"])
    assert (blobs.get(first), blobs.get(second), again) == (b"one", b"two" * 1000, first)
    kept = {p for p in (tmp_path / "blobs").rglob("*") if p.is_file() and p.name != ".lock"}
    assert kept == {place(tmp_path, first), place(tmp_path, second)}
    assert place(tmp_path, second).stat().st_size < 300


@pytest.mark.req("mechanisms:M8.blobs")
@pytest.mark.parametrize("many", [1, 40])
def test_a_batch_of_any_size_is_kept_whole(blobs, many):
    contents = [f"content {n}".encode() for n in range(many)]
    assert [blobs.get(digest) for digest in blobs.put_all(contents)] == contents


@pytest.mark.req("mechanisms:M8.blobs", "security:S19")
def test_blobs_are_readable_by_nobody_else(blobs, tmp_path):
    old = os.umask(0)
    try:
        digest = blobs.put(b"private")
    finally:
        os.umask(old)
    path = place(tmp_path, digest)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


@pytest.mark.req("mechanisms:M8.blobs")
@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_blob_is_told_and_never_served(blobs, tmp_path, damage):
    digest = blobs.put(b"x" * 5000)
    path = place(tmp_path, digest)
    other = place(tmp_path, blobs.put(b"y" * 5000)).read_bytes()
    path.write_bytes(other if damage is None else damage)
    with pytest.raises(StorageDamaged):
        blobs.get(digest)


def test_what_was_never_put_is_none(blobs):
    assert blobs.get(digest_of(b"never")) is None


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_only_a_digest_names_a_blob(blobs, name):
    with pytest.raises(ValueError, match="digest"):
        blobs.get(name)


@pytest.mark.req("mechanisms:M8.sweep")
def test_a_sweep_takes_only_what_nobody_keeps_and_is_older_than_an_hour(blobs, clock):
    kept, loose = blobs.put(b"kept"), blobs.put(b"loose")
    clock.step(HOUR - 1)
    young = blobs.put(b"young")
    assert blobs.sweep({kept}) == (0, 0)
    clock.step(2)
    count, size = blobs.sweep({kept})
    assert count == 1
    assert size > 0
    assert [blobs.get(d) for d in (kept, loose, young)] == [b"kept", None, b"young"]


@pytest.mark.req("mechanisms:M8.sweep")
def test_what_is_put_again_is_young_again(blobs, tmp_path, clock):
    digest = blobs.put(b"again")
    clock.step(2 * HOUR)
    assert Blobs(str(tmp_path), clock).put(b"again") == digest  # another process
    assert blobs.sweep(set()) == (0, 0)
    clock.step(HOUR + 1)
    assert blobs.sweep(set())[0] == 1


@pytest.mark.req("mechanisms:M8.sweep")
def test_nothing_put_while_another_sweeps_is_lost(blobs, tmp_path, clock):
    contents = [f"blob {n}".encode() for n in range(60)]
    blobs.put_all(contents)
    clock.step(2 * HOUR)  # all are old enough to go
    other = Blobs(str(tmp_path), clock)
    stop = threading.Event()

    def sweeping() -> None:
        while not stop.is_set():
            other.sweep(set())

    thread = threading.Thread(target=sweeping)
    thread.start()
    try:
        for _ in range(5):
            for digest, data in zip(blobs.put_all(contents), contents, strict=True):
                assert blobs.get(digest) == data
    finally:
        stop.set()
        thread.join(30)


@pytest.mark.req("mechanisms:M8.sweep")
def test_what_is_put_again_after_a_sweep_has_listed_it_stays(blobs, tmp_path, clock, monkeypatch):
    digest = blobs.put(b"again")
    clock.step(2 * HOUR)
    sweeping = Blobs(str(tmp_path), clock)
    listed = sweeping._old

    def listed_then_put() -> list[str]:
        found = list(listed())
        blobs.put(b"again")
        return found

    monkeypatch.setattr(sweeping, "_old", listed_then_put)
    assert sweeping.sweep(set()) == (0, 0)
    assert blobs.get(digest) == b"again"


@pytest.mark.req("mechanisms:M8.sweep")
def test_what_a_dead_process_left_half_written_is_swept(blobs, tmp_path, clock):
    digest = blobs.put(b"whole")
    left = place(tmp_path, digest).parent / ".passing-dead"
    left.write_bytes(b"half")
    os.utime(left, (clock.ms / 1000, clock.ms / 1000))
    assert blobs.sweep({digest}) == (0, 0)
    clock.step(HOUR + 1)
    assert blobs.sweep({digest}) == (1, 4)
    assert not left.exists()


@pytest.mark.parametrize(("number", "told"), [(errno.ENOSPC, StorageFull), (errno.EROFS, StorageReadOnly)])
def test_a_disk_that_takes_nothing_more_is_told_and_nothing_half_written_stays(
    blobs, tmp_path, monkeypatch, number, told
):
    def refused(descriptor: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(told):
        blobs.put(b"too much")
    assert blobs.get(digest_of(b"too much")) is None
    assert [p.name for p in (tmp_path / "blobs").rglob("*") if p.is_file()] == [".lock"]


@pytest.mark.req("mechanisms:M8.blobs")
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_blob_packed_piece_by_piece_comes_back_whole(blobs, packed, beyond):
    data = os.urandom(1024) * (2 * _PIECE // 1024) + b"x" * (beyond + 1)
    contents = [b"", data, data[: _PIECE + beyond]]
    digests = blobs.put_all(contents, packed=packed)
    assert [blobs.get(digest) for digest in digests] == contents
