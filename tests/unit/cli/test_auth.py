"""`quintet auth`: keys are tried, stored, listed by name and forgotten, and shown nowhere."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest

from quintet.cli import exits, main
from quintet.workspace.environment import MARKER
from tests.unit.cli.test_models import home, served

__all__ = ["home"]
KEY = "sk-quite-a-secret-0123456789"
LIST = {"data": [{"id": "m9"}, {"id": "m1"}]}


def far(home: Path, port: int) -> None:
    (home / "config.toml").write_text(
        f'[providers.far]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:{port}/v1"\napi_key_env = "FAR_KEY"\n'
        '[models."far/m1"]\ninput_price = 2\noutput_price = 8\n'
    )


def auth(home: Path, monkeypatch: pytest.MonkeyPatch, *words: str, typed: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return main(["--home", str(home), "auth", *words])


@pytest.mark.req("models:K6")
def test_a_key_from_stdin_is_tried_and_stored_and_the_model_and_its_price_are_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served({"/v1/models": LIST}) as port:
        far(home, port)
        assert auth(home, monkeypatch, "set", "far", typed=f"{KEY}\n") == 0
    said = capfd.readouterr()
    assert "The key works." in said.out
    assert "quintet run -m far/m1" in said.out
    assert "$2 in, $8 out" in said.out
    assert KEY not in said.out + said.err
    stored = home / "credentials" / "far"
    assert stat.S_IMODE(os.stat(stored).st_mode) == 0o600
    assert main(["--home", str(home), "models", "--json"]) == 0
    [row] = [r for r in map(json.loads, capfd.readouterr().out.splitlines()) if r["model"] == "far/m1"]
    assert (row["works"], row["key"]) == (True, "stored")


@pytest.mark.req("models:K6")
@pytest.mark.parametrize(("answer", "why"), [((401, {"error": KEY}), "refuses the key"), ((500, b""), "status 500")])
def test_a_key_that_is_not_good_is_not_stored_and_why_is_one_line(
    answer: object, why: str, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served({"/v1/models": answer, "/v1/chat/completions": answer}) as port:
        far(home, port)
        config = (
            (home / "config.toml").read_text().replace('[models."far/m1"]\ninput_price = 2\noutput_price = 8\n', "")
        )
        (home / "config.toml").write_text(config)
        assert auth(home, monkeypatch, "set", "far", typed=KEY) == exits.PROVIDER
    err = capfd.readouterr().err
    assert why in err
    assert KEY not in err
    assert len(err.splitlines()) == 1
    assert not (home / "credentials" / "far").exists()


@pytest.mark.req("models:K6")
def test_on_a_terminal_the_key_is_asked_for_without_showing_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[str] = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: asked.append(prompt) or KEY)
    monkeypatch.setattr("sys.stdin", Terminal("never read"))
    assert main(["--home", str(home), "auth", "set", "anthropic", "--no-test"]) == 0
    assert (home / "credentials" / "anthropic").read_text() == KEY
    assert asked == ["Key for anthropic (not shown): "]
    assert "not tried" in capfd.readouterr().out


@pytest.mark.req("models:K6")
def test_a_key_is_never_an_argument(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(home), "auth", "set", "anthropic", KEY])
    assert ended.value.code == exits.USAGE


@pytest.mark.parametrize(
    ("provider", "typed", "says"),
    [
        ("nobody", KEY, "[providers.NAME]"),
        ("offline", KEY, "needs no key"),
        ("anthropic", " \n", "No key was given"),
        ("anthropic", "two\nlines", "no key holds"),
        ("anthropic", "sk-schlüssel", "no key holds"),
        ("anthropic", "x" * 20_000, "no key holds"),
    ],
)
def test_what_cannot_be_a_key_or_a_provider_is_one_line(
    provider: str,
    typed: str,
    says: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert auth(home, monkeypatch, "set", provider, "--no-test", typed=typed) in (exits.USAGE, exits.FAILED)
    err = capfd.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
    assert not (home / "credentials").exists()


@pytest.mark.req("models:K7")
def test_the_list_tells_names_and_places_and_remove_forgets(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text('[providers.far]\nkind = "anthropic"\napi_key = "sk-written-0123456789"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment-0123456789")
    for name in ("openai", "deepseek"):
        assert auth(home, monkeypatch, "set", name, "--no-test", typed=KEY) == 0
    (home / "credentials" / "other").write_text(KEY)
    capfd.readouterr()
    assert auth(home, monkeypatch, "list", "--json") == 0
    said = capfd.readouterr()
    rows = {row["provider"]: row for row in map(json.loads, said.out.splitlines())}
    assert {name: row["keys"] for name, row in rows.items()} == {
        "openai": ["environment", "stored"],
        "deepseek": ["stored"],
        "far": ["config"],
        "other": ["stored"],
    }
    assert (rows["openai"]["sealed"], rows["far"]["sealed"], rows["other"]["known"]) == (False, None, False)
    assert auth(home, monkeypatch, "list") == 0
    people = capfd.readouterr()
    assert "environment; then stored, not encrypted" in people.out
    assert "(no provider of this name)" in people.out
    assert not any(secret in said.out + people.out for secret in (KEY, "sk-written", "sk-environment"))
    assert auth(home, monkeypatch, "remove", "deepseek") == 0
    assert auth(home, monkeypatch, "remove", "deepseek") == exits.FAILED
    assert "quintet auth list" in capfd.readouterr().err


def test_that_another_key_goes_before_the_stored_one_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment-0123456789")
    assert auth(home, monkeypatch, "set", "openai", "--no-test", typed=KEY) == 0
    assert "goes before the stored one" in capfd.readouterr().err


def test_a_program_the_agent_started_changes_no_keys(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(MARKER, "1")
    assert auth(home, monkeypatch, "set", "openai", "--no-test", typed=KEY) == exits.DENIED
    assert auth(home, monkeypatch, "remove", "openai") == exits.DENIED
    assert auth(home, monkeypatch, "list") == 0


def test_the_credential_for_searching_the_web_is_stored_untried(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text('[web_search]\nprovider = "brave"\ncredential = "brave"\n')
    assert auth(home, monkeypatch, "set", "brave", typed=KEY) == 0
    assert "not tried" in capfd.readouterr().out
    assert (home / "credentials" / "brave").read_text() == KEY
