"""What was typed, kept: private, masked, and never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.cli.chat.history import KEPT, LONGEST, History


def history(path: Path) -> History:
    return History(path, lambda text: text.replace("s3cret-value", "[redacted]"))


def test_entries_come_back_in_order_with_their_newlines_and_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "chat-history"
    for text in ("one", "two\nlines", "key s3cret-value"):
        history(path).add(text)
    assert history(path).entries() == ["one", "two\nlines", "key [redacted]"]
    assert b"s3cret" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "  ", " begins with a blank", "x" * (LONGEST + 1)])
def test_some_things_are_not_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "chat-history"
    assert history(path).add(text) == ""
    assert history(path).entries() == []


def test_a_wide_open_file_is_made_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "chat-history"
    path.write_text("")
    path.chmod(0o666)
    history(path).add("one")
    assert path.stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    path.unlink()
    path.symlink_to(other)
    kept = history(path)
    kept.add("two")
    assert not other.exists()
    assert "cannot be written" in kept.problem


def test_torn_lines_cost_only_themselves_and_an_unreadable_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "chat-history"
    path.write_bytes(b'"one"\n"tw\n[3]\n\xff\xfe\n"four"\n')
    assert history(path).entries() == ["one", "four"]
    path.unlink()
    path.mkdir()
    kept = history(path)
    assert kept.entries() == []
    assert "cannot be read" in kept.problem


def test_a_long_history_is_shortened(tmp_path: Path) -> None:
    path = tmp_path / "chat-history"
    path.write_text("".join(f'"{n}"\n' for n in range(2 * KEPT + 1)))
    assert history(path).entries()[-1] == str(2 * KEPT)
    assert len(path.read_text().splitlines()) == KEPT
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["chat-history"]
