"""Where secrets lie and which sockets can be reached."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import pytest

from quintet.workspace.sandbox.hidden import credential_places, listening_sockets, socket_directories

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def test_credentials_are_looked_for_in_the_users_directory_whatever_home_says(tmp_path: Path) -> None:
    places = credential_places({"HOME": str(tmp_path)})
    real = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    for home in (str(tmp_path), real):
        for name in (
            ".ssh",
            ".gnupg",
            ".aws",
            ".netrc",
            ".git-credentials",
            ".config/gh",
            ".local/share/keyrings",
            ".codex",
        ):
            assert f"{home}/{name}" in places


def test_variables_that_move_a_secret_are_followed(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "KUBECONFIG": "/k/one:/k/two", "XDG_RUNTIME_DIR": "/run/user/7"}
    places = credential_places(environment | {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "relative"})
    assert {"/k/one", "/k/two", "/run/user/7", "/x/gh"} <= set(places)
    assert "relative" not in places


def test_a_variable_that_names_everything_hides_nothing(tmp_path: Path) -> None:
    places = credential_places({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": "/", "GNUPGHOME": str(tmp_path)})
    assert "/" not in places
    assert "" not in places
    assert str(tmp_path) not in places


def test_patterns_give_what_is_there(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo" / "credentials.toml").touch()
    assert f"{tmp_path}/.cargo/credentials.toml" in credential_places({"HOME": str(tmp_path)})


def test_named_sockets_are_found_and_their_links_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with socket.socket(socket.AF_UNIX) as named:
        named.bind(str(tmp_path / "link" / "a b.sock"))
        assert str(tmp_path / "real" / "a b.sock") in listening_sockets()


def test_names_without_a_socket_and_abstract_ones_are_left_out(tmp_path: Path) -> None:
    table = tmp_path / "unix"
    (tmp_path / "file").touch()
    rows = [
        f"0: 2 0 0 1 1 77 {tmp_path}/file",
        f"0: 2 0 0 1 1 78 {tmp_path}/gone",
        "0: 2 0 0 1 1 79 @abstract",
        "0: 3 0 0 1 3 80",
    ]
    table.write_text(HEAD + "\n".join(rows))
    assert listening_sockets(str(table)) == ()
    assert listening_sockets(str(tmp_path / "absent")) == ()


@pytest.mark.req("security:S27b")
@pytest.mark.parametrize(
    ("beside", "hidden"),
    [
        ([], True),
        (["server.pid", "a.lock"], True),
        (["notes.txt"], False),
        (["below/"], False),
        ([f"{number}.pid" for number in range(70)], False),
    ],
)
def test_a_directory_that_is_there_for_sockets_alone_is_hidden_whole(
    tmp_path: Path, beside: list[str], hidden: bool
) -> None:
    for name in beside:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    with socket.socket(socket.AF_UNIX) as named:
        named.bind(str(tmp_path / "s.sock"))
        assert (str(tmp_path) in socket_directories([str(tmp_path / "s.sock")])) is hidden
    assert str(tmp_path / "gone") not in socket_directories([str(tmp_path / "gone" / "s.sock")])
