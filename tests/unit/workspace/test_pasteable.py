"""Words fit to be pasted: keys, names and the person's directory are gone, everything else stays."""

from __future__ import annotations

import pytest

from quintet.workspace.pasteable import Pasteable

ALICE = {"HOME": "/home/alice", "USER": "alice", "LOGNAME": "alice"}


def pasteable(words: str, environment: dict[str, str] = ALICE) -> str:
    return Pasteable(environment, lambda text: text.replace("canary-1234", "[redacted]")).text(words)


@pytest.mark.req("first_minutes:F10")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("/home/alice/.local/share/quintet, yours alone", "~/.local/share/quintet, yours alone"),
        ("Edit '/home/alice': x", "Edit '~': x"),
        ("/home/alicent/x", "/home/USER/x"),
        ("/home/bob/x", "/home/USER/x"),
        ("/srv/alice/quintet is there", "/srv/USER/quintet is there"),
        ("alice in words stays, malice too", "alice in words stays, malice too"),
        ("the key canary-1234 is bad", "the key [redacted] is bad"),
        ("sk-Ab3dEf6hIj9lMn2pQr5tUv8xYz1 is bad", "[redacted] is bad"),
        ("git version 2.39.5 (/usr/bin/git)", "git version 2.39.5 (/usr/bin/git)"),
    ],
)
def test_what_is_shown_of_words(words: str, shown: str) -> None:
    assert pasteable(words) == shown


@pytest.mark.req("first_minutes:F10")
def test_an_environment_without_home_or_with_a_bare_root_changes_nothing_else() -> None:
    assert pasteable("/tmp/x", {}) == "/tmp/x"
    assert pasteable("/tmp/x", {"HOME": "/", "USER": "root"}) == "/tmp/x"


@pytest.mark.req("first_minutes:F10")
def test_a_directory_with_a_space_in_its_name_is_taken_out_whole() -> None:
    assert pasteable("/Users/Bob Smith/x", {"HOME": "/Users/Bob Smith"}) == "~/x"
