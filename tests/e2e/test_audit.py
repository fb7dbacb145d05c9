"""The real `quintet audit`: a whole chain, a broken one, and what a person is told of each."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.faults.processes import no_traceback, one_line, quintet, write_home


def test_a_chain_that_has_only_begun_is_said_to_be_so(tmp_path: Path) -> None:
    done = quintet("audit", "verify", home=write_home(tmp_path / "home"))
    assert (done.code, done.err) == (0, "")
    assert "nothing that belongs into it has happened yet" in done.out


@pytest.mark.req("security:S53")
def test_audit_verify_tells_a_whole_chain_from_one_that_was_changed(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo alpha", home=home).code == 0
    whole = quintet("audit", "verify", home=home)
    assert (whole.code, whole.err) == (0, ""), whole
    assert "whole" in whole.out
    (said,) = quintet("audit", "verify", "--json", home=home).lines
    assert said["head"] in whole.out
    assert quintet("audit", "verify", "--expect", said["head"], home=home).code == 0
    listed = quintet("audit", "list", "--json", home=home).lines
    told = ["thread.created", "turn.queued", "thread.updated", "turn.finished"]
    assert [line["kind"] for line in listed] == ["chain.begun", *told]
    with_words = quintet("audit", "list", home=home)
    assert "alpha" in with_words.out
    raw = apsw.Connection(str(home / "quintet.db"))
    raw.execute("DELETE FROM audit WHERE number = 2")
    raw.close()
    broken = quintet("audit", "verify", home=home)
    no_traceback(broken)
    assert broken.code == 6, broken
    assert "row 2 is missing before row 3" in broken.out
    (said,) = quintet("audit", "verify", "--json", home=home).lines
    assert said["whole"] is False


@pytest.mark.req("security:S53")
def test_a_deleted_thread_is_listed_without_its_words(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo zanzibar", home=home).code == 0
    (thread,) = quintet("threads", "list", "--json", home=home).lines
    assert quintet("threads", "delete", thread["id"], home=home).code == 0
    listed = quintet("audit", "list", home=home)
    assert "zanzibar" not in listed.out
    assert "thread.deleted" in listed.out
    assert [line["erased"] for line in quintet("audit", "list", "--json", home=home).lines] == [
        False,
        *(True for _ in range(4)),
        False,
    ]
    assert quintet("audit", "verify", home=home).code == 0
    of_it = quintet("audit", "list", "--json", "--thread", thread["id"], home=home).lines
    told = ["thread.created", "turn.queued", "thread.updated", "turn.finished"]
    assert [line["kind"] for line in of_it] == [*told, "thread.deleted"]
    assert "no such row" in one_line(quintet("audit", "list", "--thread", f"{thread['id'][:-1]}x", home=home), 1)


def test_the_beginning_of_a_chain_is_nothing_that_was_erased(tmp_path: Path) -> None:
    """Also where it lies behind events: a home of an older format was brought up to date."""
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo alpha", home=home).code == 0
    raw = apsw.Connection(str(home / "quintet.db"))
    raw.execute("DROP TABLE audit; PRAGMA user_version = 2")
    raw.close()
    (begun,) = quintet("audit", "list", "--json", home=home).lines
    assert (begun["kind"], begun["erased"]) == ("chain.begun", False)
