"""Which protected places a command ran into, by its words."""

from __future__ import annotations

import pytest

from quintet.workspace.sandbox.named import protected_in

PLACES = ["/w/.git/config", "/w/.git/hooks", "/w/.bashrc", "/w/.vscode"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("error: could not write config file .git/config: Device or resource busy", [".git/config"]),
        ("error: could not write config file /w/.git/config: Device or resource busy", [".git/config"]),
        ("bash: line 1: .git/config: Read-only file system", [".git/config"]),
        ("bash: .bashrc: Is a directory", [".bashrc"]),
        ("mkdir: cannot create directory \u2018.vscode/x\u2019: Read-only file system", [".vscode"]),
        ("PermissionError: [Errno 13] Permission denied: '.git/hooks/pre-commit'", [".git/hooks"]),
        ("cp: cannot create './.bashrc': Is a directory, nor ../w/.vscode", [".bashrc", ".vscode"]),
        ("bash: sub/.bashrc: Is a directory", []),
        ("bash: /elsewhere/.bashrc: Permission denied", []),
        (".git/config.lock: Permission denied", []),
        ("cat: .bashrc: No such file or directory", []),
        ("Permission denied\n.bashrc", []),
    ],
)
def test_a_place_counts_where_a_refusal_stands_in_its_line(line: str, names: list[str]) -> None:
    assert protected_in(f"before\n{line}\nafter", "/w", "/w", PLACES) == names


def test_each_is_named_once_and_as_seen_from_the_root() -> None:
    text = "../.bashrc: Is a directory\n" * 3
    assert protected_in(text, "/w/sub", "/w", PLACES) == [".bashrc"]
