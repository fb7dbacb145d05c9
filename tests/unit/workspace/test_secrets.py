from __future__ import annotations

import json
import os

import pytest

from quintet.workspace.credentials import Credentials
from quintet.workspace.environment import child_environment, find_program
from quintet.workspace.key_store import KeyStore
from quintet.workspace.secrets import KnownSecrets, names_secret


def known(environment: dict[str, str], **more) -> list[str]:
    return list(KnownSecrets(environment, **more).known_values())


def test_values_of_dropped_variables_with_telling_names_are_known():
    environment = {"GITHUB_TOKEN": "ghp_12345678", "MY_API_KEY": "abcdefgh", "DB_PASSWORD": "hunter2hunter2"}
    assert known(environment) == ["hunter2hunter2", "ghp_12345678", "abcdefgh"]


def test_ordinary_values_stay_readable():
    environment = {
        "EDITOR": "/usr/bin/vim",
        "PWD": "/home/somebody",
        "GIT_AUTHOR_NAME": "Somebody Else",
        "KEYBOARD_LAYOUT": "dvorak-intl",
        "AUTH": "disabled",
        "SHORT_TOKEN": "abc",
        "PATH": "/usr/bin:/bin",
        "LC_TOKEN": "passes-the-list",
        "SSH_AUTH_SOCK": "/tmp/agent.1",
    }
    assert known(environment) == []


def test_a_variable_that_names_a_file_is_no_secret(tmp_path):
    (tmp_path / "key.json").touch()
    assert known({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "key.json")}) == []
    assert known({"SOME_SECRET": "/base64/looks+like/a+path=="}) == ["/base64/looks+like/a+path=="]


def test_of_an_address_only_the_password_is_secret():
    assert known({"DATABASE_URL": "postgres://me:hunter2hunter2@db/x"}) == ["hunter2hunter2"]


def test_configured_keys_are_known_whatever_their_variable_is_called():
    found = known({"FAKE": "from-the-env"}, keys=["in-the-config", "short"], key_names=["FAKE", "ABSENT"])
    assert found == ["in-the-config", "from-the-env"]


def test_stored_credentials_are_known_and_read_again_when_they_change(tmp_path):
    store = tmp_path / "credentials"
    secrets = KnownSecrets({}, credentials=Credentials(str(tmp_path), KeyStore({})))
    assert list(secrets.known_values()) == []
    store.mkdir()
    (store / "openai").write_text("sk-plain-value\n")
    (store / "oauth.json").write_text(
        json.dumps({"accessToken": "at-12345678", "host": "example.org", "n": {"refresh_token": "rt-12345678"}})
    )
    (store / "env").write_text("# note\nNAME=somebody-else\nAPI_KEY='quoted-value'\n")
    os.utime(store, ns=(1, 1))
    assert set(secrets.known_values()) == {"sk-plain-value", "at-12345678", "rt-12345678", "quoted-value"}
    (store / "openai").unlink()
    os.utime(store, ns=(2, 2))
    assert "sk-plain-value" not in secrets.known_values()


@pytest.mark.parametrize(
    "name", ["API_KEY", "api-key", "GH_PAT", "MYTOKEN", "CLIENT_SECRET", "PGPASSWORD", "npm_token"]
)
def test_names_that_say_secret(name):
    assert names_secret(name)


@pytest.mark.parametrize("name", ["AUTHOR", "KEYBOARD", "MONKEY", "PATH", "TOKENIZER", "COMPASS", "PWD", "SECRETARY"])
def test_names_that_say_nothing(name):
    assert not names_secret(name)


def test_a_child_gets_an_allow_list_and_nothing_else():
    ours = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "AWS_PROFILE": "x",
        "BASH_ENV": "/evil",
        "LD_PRELOAD": "/evil",
        "TERM": "xterm",
    }
    ours |= {
        "https_proxy": "http://proxy:1",
        "HTTP_PROXY": "http://me:pw@proxy:1",
        "QUINTET_HOME": "/h",
        "QUINTET_CALL": "outer",
    }
    child = child_environment(ours, "mine")
    assert {name: child.get(name) for name in ours} == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "AWS_PROFILE": None,
        "BASH_ENV": None,
        "LD_PRELOAD": None,
        "TERM": "dumb",
        "https_proxy": "http://proxy:1",
        "HTTP_PROXY": None,
        "QUINTET_HOME": None,
        "QUINTET_CALL": "mine",
    }


def test_a_program_is_never_taken_from_a_relative_place(tmp_path, monkeypatch):
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert find_program("tool", {"PATH": ".:"}) is None
    monkeypatch.setattr("quintet.workspace.environment.SYSTEM", {str(tmp_path)})
    assert find_program("tool", {"PATH": f".:{tmp_path}"}) == str(tmp_path / "tool")


@pytest.mark.req("security:S20", "security:S28")
def test_a_program_is_never_taken_from_where_a_command_could_have_put_it(tmp_path):
    """An activated virtual environment lies in the workspace, and its directory comes first in PATH."""
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    found = find_program("git", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found is not None
    assert not found.startswith(str(tmp_path))
    assert find_program("git", {"PATH": str(tmp_path)}) is None
