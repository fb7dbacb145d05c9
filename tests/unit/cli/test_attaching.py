"""`quintet run --attach`: what reaches the thread, and what is refused before there is one."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from quintet.cli import exits, main
from tests.faults.processes import write_home

PNG = b"\x89PNG\r\n\x1a\n\0\1"
CONFIG = '[models."fake/scripted"]\nvision = %s\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ws/sub").mkdir(parents=True)
    (tmp_path / "ws/a.txt").write_text("one\n")
    (tmp_path / "ws/sub/b.txt").write_text("two\n")
    (tmp_path / "ws/p.txt").write_bytes(PNG)
    (tmp_path / "out.txt").write_text("canary")
    (tmp_path / "ws/link").symlink_to("../out.txt")
    write_home(tmp_path / "home", 'text: "seen"\n---\ntext: "seen"\n', CONFIG % "true")
    monkeypatch.chdir(tmp_path / "ws")
    return tmp_path


def run(place: Path, *words: str) -> int:
    return main(["--home", str(place / "home"), "run", "--json", *words])


def said(out: str) -> list[dict[str, str]]:
    (item,) = [line for line in map(json.loads, out.splitlines()) if line["kind"] == "item.added"][:1]
    return item["payload"]["item"]["body"]["parts"]


def test_files_come_behind_the_prompt_in_the_order_they_were_named(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = {"uri": "file:///sub/b.txt", "media_type": "text/plain", "name": "sub/b.txt"}
    image = {"uri": "file:///p.txt", "media_type": "image/png", "name": "p.txt"}
    assert run(place, "--attach", "sub/b.txt", "--attach", "p.txt", "look") == 0
    assert said(capfd.readouterr().out) == [
        {"type": "text", "text": "look"},
        {"type": "text", "text": '<attached-file path="sub/b.txt">\ntwo\n</attached-file>', "attached": text},
        {"type": "text", "text": '[attached image "p.txt": image/png, 10 bytes]', "attached": {"name": "p.txt"}},
        {"type": "image", "media_type": "image/png", "data": base64.b64encode(PNG).decode(), "attached": image},
    ]


def test_paths_begin_where_the_person_is_and_are_judged_by_where_the_thread_works(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(place, "--cwd", "sub", "--attach", "b.txt", "look") == 0
    assert said(capfd.readouterr().out)[1]["attached"]["name"] == "b.txt"
    monkeypatch.chdir(place)
    assert run(place, "--cwd", "ws/sub", "--attach", "../a.txt", "look") == exits.USAGE
    thread = json.loads(_threads(place, capfd)[0])["id"]
    monkeypatch.chdir(place / "ws")
    assert run(place, "--thread", thread, "--attach", "sub/b.txt", "look") == 0
    assert said(capfd.readouterr().out)[1]["attached"]["name"] == "b.txt"
    assert run(place, "--thread", thread, "--attach", "a.txt", "look") == exits.USAGE, "the thread works in sub"


def _threads(place: Path, capfd: pytest.CaptureFixture[str]) -> list[str]:
    capfd.readouterr()
    assert main(["--home", str(place / "home"), "threads", "list", "--json"]) == 0
    return capfd.readouterr().out.splitlines()


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("path", ["../out.txt", "link", "sub", "missing", "../home/config.toml", "/etc/passwd", ""])
def test_what_cannot_be_attached_is_told_before_a_thread_is_begun(
    place: Path, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(place, "--attach", "a.txt", "--attach", path, "look") == exits.USAGE
    told = capfd.readouterr().err
    assert "canary" not in told
    assert "Traceback" not in told
    assert _threads(place, capfd) == []


def test_a_model_that_takes_no_images_is_not_given_one_unseen(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = place / "home/config.toml"
    config.write_text(config.read_text().replace("vision = true", "vision = false"))
    assert run(place, "--attach", "p.txt", "look") == exits.USAGE
    assert "fake/scripted takes no images" in capfd.readouterr().err


def test_the_same_key_with_another_content_is_another_request(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--idempotency-key", "k", "--attach", "a.txt", "look")
    assert run(place, *words) == run(place, *words) == 0
    (place / "ws/a.txt").write_text("changed\n")
    assert run(place, *words) != 0
    assert "Traceback" not in capfd.readouterr().err
