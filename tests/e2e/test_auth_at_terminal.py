"""`quintet auth set` at a terminal: what is typed for a key is waited for, and the waiting can be ended."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.terminals import at_pty
from tests.faults.processes import QUINTET, write_home


def test_one_ctrl_c_ends_the_asking_for_a_key_and_nothing_is_stored(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with at_pty([QUINTET, "auth", "set", "openai", "--home", str(home)], tmp_path) as terminal:
        terminal.until("not shown): ")
        terminal.type("\x03")
        terminal.until("quintet: stopped; no key was stored.")
        assert terminal.ended() == 130
        assert terminal.settings() == terminal.before
    assert not (home / "credentials" / "openai").exists()
