from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap

import pytest

from quintet.domain.errors import Invalid, NotFound
from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from quintet.workspace.secrets import KnownSecrets

SECRET = "canary-0123456789-canary"


@pytest.fixture
def plain(tmp_path) -> Credentials:
    """Where the system has no key store."""
    return Credentials(str(tmp_path), KeyStore({}))


@pytest.mark.req("security:S46", "security:S19")
def test_a_credential_is_kept_in_a_private_file_and_read_back(plain, tmp_path):
    assert plain.set("openai", SECRET) is False
    assert plain.get("openai") == SECRET
    assert plain.names() == ["openai"]
    path = tmp_path / "credentials" / "openai"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    plain.set("openai", SECRET + "2")
    assert plain.get("openai") == SECRET + "2"
    assert os.listdir(path.parent) == ["openai"]
    plain.remove("openai")
    with pytest.raises(NotFound):
        plain.get("openai")


@pytest.mark.req("security:S19")
def test_a_credential_is_private_from_its_first_moment_whatever_the_umask(plain, tmp_path, monkeypatch):
    modes = []
    real = os.replace

    def seen(source, target):
        modes.append(stat.S_IMODE(os.stat(source).st_mode))
        real(source, target)

    monkeypatch.setattr(os, "replace", seen)
    before = os.umask(0)
    try:
        plain.set("a", SECRET)
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0b", "x" * 65, "ä"])
def test_a_name_cannot_lead_out_of_the_directory(plain, name):
    for use in (plain.get, plain.remove, lambda n: plain.set(n, SECRET)):
        with pytest.raises(Invalid):
            use(name)


def test_a_link_among_the_credentials_is_not_followed(plain, tmp_path):
    plain.set("a", SECRET)
    (tmp_path / "outside").write_text("not yours")
    (tmp_path / "credentials" / "b").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="b"):
        plain.get("b")
    assert list(plain.texts()) == [SECRET]


_IN_A_SESSION = """
    import os, subprocess, sys
    from quintet.workspace.credentials import Credentials
    from quintet.workspace.key_store import KeyStore
    from quintet.workspace.secrets import KnownSecrets

    home, secret = sys.argv[1], sys.stdin.read()
    unlock = ["gnome-keyring-daemon", "--unlock", "--components=secrets"]
    subprocess.run(unlock, input=b"pw", check=True, stdout=subprocess.DEVNULL, timeout=20)
    first = Credentials(home, KeyStore(os.environ))
    assert first.set("openai", secret) is True, "not encrypted"
    again = Credentials(home, KeyStore(os.environ))
    assert again.get("openai") == secret
    assert secret in KnownSecrets({}, credentials=again).known_values()
    os.rename(home + "/credentials/openai", home + "/credentials/other")
    try:
        Credentials(home, KeyStore(os.environ)).get("other")
    except Exception as error:
        assert "damaged" in str(error), error
    else:
        raise AssertionError("a file under another name was opened")
    os.rename(home + "/credentials/other", home + "/credentials/openai")
"""


@pytest.mark.req("security:S46")
def test_with_a_key_store_the_file_is_encrypted_and_opens_only_with_the_stored_key(tmp_path):
    """A real Secret Service on a session bus of its own."""
    for program in ("dbus-run-session", "gnome-keyring-daemon", "secret-tool"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    home, user = tmp_path / "home", tmp_path / "user"
    home.mkdir()
    user.mkdir()
    environment = {**os.environ, "HOME": str(user), "XDG_RUNTIME_DIR": str(user), "XDG_DATA_HOME": str(user / "d")}
    done = subprocess.run(
        ["dbus-run-session", "--", sys.executable, "-c", textwrap.dedent(_IN_A_SESSION), str(home)],
        input=SECRET,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    path = home / "credentials" / "openai"
    assert SECRET.encode() not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    without = Credentials(str(home), KeyStore({}))
    with pytest.raises(Invalid, match="key is not in this system's key store"):
        without.get("openai")
    assert list(KnownSecrets({}, credentials=without).known_values()) == []


def _fake_store(tmp_path, lookup: str) -> KeyStore:
    program = tmp_path / "secret-tool"
    program.write_text(f"#!/bin/sh\ncase $1 in store) cat > {tmp_path}/kept;; *) {lookup};; esac\n")
    program.chmod(0o755)
    return KeyStore({"PATH": os.environ["PATH"], "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}, str(program))


@pytest.mark.parametrize("locked", ["echo 'it is locked' >&2; exit 1", "exit 3", "kill -9 $$"])
def test_a_key_that_cannot_be_had_now_is_never_replaced(tmp_path, locked):
    """Everything it had sealed would be lost."""
    there = f"test -e {tmp_path}/kept && cat {tmp_path}/kept"
    Credentials(str(tmp_path / "home"), _fake_store(tmp_path, there)).set("one", SECRET)
    kept = (tmp_path / "kept").read_text()
    later = Credentials(str(tmp_path / "home"), _fake_store(tmp_path, locked))
    with pytest.raises(Invalid, match="cannot be asked"):
        later.set("two", SECRET)
    assert (tmp_path / "kept").read_text() == kept
    assert Credentials(str(tmp_path / "home"), _fake_store(tmp_path, there)).get("one") == SECRET


@pytest.mark.req("security:S44")
def test_a_credential_written_over_in_place_is_known_at_once(plain, tmp_path):
    plain.set("a", SECRET)
    secrets = KnownSecrets({}, credentials=plain)
    assert list(secrets.known_values()) == [SECRET]
    with open(tmp_path / "credentials" / "a", "r+") as file:
        file.write("another-0123456789-value")
    assert list(secrets.known_values()) == ["another-0123456789-value"]


@pytest.mark.req("security:S46")
def test_the_key_store_is_given_nothing_secret_as_an_argument(tmp_path):
    """Arguments are readable for every process of the machine."""
    program = tmp_path / "secret-tool"
    kept = tmp_path / "kept"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {tmp_path}/argv\n"
        f"case $1 in store) cat > {kept};; *) test -e {kept} && cat {kept};; esac\n"
    )
    program.chmod(0o755)
    store = KeyStore({"PATH": os.environ["PATH"], "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}, str(program))
    credentials = Credentials(str(tmp_path / "home"), store)
    assert credentials.set("a", SECRET) is True
    assert credentials.get("a") == SECRET
    said = (tmp_path / "argv").read_text()
    assert "store" in said
    assert SECRET not in said
    assert kept.read_text() not in said
