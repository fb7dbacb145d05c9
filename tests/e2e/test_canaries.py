"""Canaries: secret values of every origin, sent through a real process by every way it has, are found nowhere."""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest

from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from tests.faults.processes import Done, no_traceback, quintet, quintet_running, wait_until, write_home

IN_ENVIRONMENT = "canary-env-5f0c1d2e3a4b"
STORED = "canary-stored-9a8b7c6d5e"
CONFIGURED = "canary-config-1029384756"
CANARIES = (IN_ENVIRONMENT, STORED, CONFIGURED)


def forms(secret: str) -> list[bytes]:
    raw = secret.encode()
    return [raw, base64.b64encode(raw).rstrip(b"="), quote(secret, safe="").encode()]


def held(found: bytes) -> list[bytes]:
    return [form for secret in CANARIES for form in forms(secret) if form in found]


def script() -> str:
    lines = ["scope: turn"]
    for secret in CANARIES:
        cuts = (1, 3, 7, len(secret) - 1)
        pieces = [secret[a:b] for a, b in zip((0, *cuts), (*cuts, len(secret)), strict=True)]
        lines += [f"text: {json.dumps(piece)}" for piece in ("say ", *pieces, " end. ")]
        lines += [f"think: {json.dumps(piece)}" for piece in pieces]
    shell = " ; ".join(f"printf %s {secret[:9]}; printf %s {secret[9:]}; echo" for secret in CANARIES)
    encoded = " ; ".join(f"printf %s {secret} | base64" for secret in CANARIES)
    lines.append(f"tool_call: shell {json.dumps({'command': f'{shell} ; {encoded} ; cat notes.txt ; env'})}")
    lines += ["---", 'tool_call: read {"path": "notes.txt"}']
    lines.append(f"tool_call: todo {json.dumps({'todos': [{'text': STORED, 'status': 'pending'}]})}")
    lines.append(f"tool_call: nothing_like_it {json.dumps({'given': CONFIGURED})}")
    lines += ["---", f'text: "bye {IN_ENVIRONMENT}"', f"error: 500 upstream said {STORED}"]
    return "\n".join(lines) + "\n"


def set_up(tmp_path: Path) -> tuple[Path, Path]:
    home = write_home(tmp_path / "home", script())
    with (home / "config.toml").open("a") as file:
        file.write(f'\n[providers.other]\nkind = "offline"\napi_key = "{CONFIGURED}"\n\n[sandbox]\nrequired = false\n')
    Credentials(str(home), KeyStore({})).set("stored", STORED)
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("\n".join(CANARIES) + "\n")
    return home, work


def journal_texts(home: Path) -> bytes:
    """Every stored row, unpacked by the product itself as well as raw."""
    events = quintet("events", "--json", home=home)
    assert events.code == 0, events
    with sqlite3.connect(f"file:{home / 'quintet.db'}?mode=ro", uri=True) as database:
        raw = b"".join(bytes(body) for (body,) in database.execute("SELECT body FROM events"))
    return events.out.encode() + raw


def files(home: Path) -> bytes:
    """All of the home but what holds the secrets by its nature: the person's own settings and credentials, and the
    user's own bytes in the blob store."""
    own = {"config.toml", "credentials", "blobs", "model.script"}
    kept = [p for p in sorted(home.rglob("*")) if p.is_file() and p.relative_to(home).parts[0] not in own]
    return b"".join(p.read_bytes() for p in kept)


@pytest.mark.req("security:S44")
def test_no_canary_is_left_in_journal_log_output_or_export(tmp_path: Path) -> None:
    home, work = set_up(tmp_path)
    done = quintet("run", "--json", "--mode", "allow", f"use {STORED} and {CONFIGURED}", home=home, cwd=work,
                   MY_SERVICE_TOKEN=IN_ENVIRONMENT)  # fmt: skip
    no_traceback(done)
    finished = [line for line in done.lines if line["kind"] == "tool.finished"]
    assert {line["payload"]["name"] for line in finished} >= {"shell", "read"}, "the tools have really run"
    assert "[redacted]" in done.out
    thread = done.lines[0]["thread"]
    ways: dict[str, Done] = {
        "run": done,
        "show": quintet("threads", "show", thread, home=home),
        "export": quintet("threads", "export", thread, home=home),
        "list": quintet("threads", "list", "--json", home=home),
        "search": quintet("threads", "search", "canary", home=home),
    }
    left = {way: held((told.out + told.err).encode()) for way, told in ways.items()}
    assert left == {way: [] for way in ways}
    assert held(journal_texts(home)) == []
    assert held(files(home)) == []


@pytest.mark.req("security:S46")
def test_a_quintet_that_crashes_hard_leaves_no_core_file(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "scope: turn\nuntil: never\n")
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("core dumps are off for the whole machine")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        with quintet_running("run", "--json", "prompt", home=home, cwd=tmp_path) as process:
            process.event("turn.started")
            limits = Path(f"/proc/{process.pid}/limits").read_text()
            os.kill(process.pid, signal.SIGABRT)
            process.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    assert not any(tmp_path.rglob("core*"))


@pytest.mark.req("security:S46", "security:S45")
def test_no_key_is_in_an_argument_of_quintet_or_in_anything_of_its_children(tmp_path: Path) -> None:
    home, work = set_up(tmp_path)
    command = "touch begun; while [ ! -e go ]; do sleep 0.02; done"
    (home / "model.script").write_text(
        f"scope: turn\ntool_call: shell {json.dumps({'command': command})}\n---\ntext: x\n"
    )
    with quintet_running(
        "run", "--json", "--mode", "allow", "go", home=home, cwd=work, MY_SERVICE_TOKEN=IN_ENVIRONMENT
    ) as process:
        wait_until((work / "begun").exists, 15.0)
        family = [process.pid, *below(process.pid)]
        arguments = b"".join(told(pid, "cmdline") for pid in family)
        environments = b"".join(told(pid, "environ") for pid in family[1:])
        (work / "go").touch()
        process.wait()
    assert b"touch begun" in arguments
    assert b"PATH=" in environments
    assert held(arguments + environments) == []


def told(pid: int, what: str) -> bytes:
    """What the kernel tells of a process; nothing once it is gone, as the short ones of the loop soon are."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def below(pid: int) -> list[int]:
    """Every process under this one."""
    children = [int(child) for child in told(pid, f"task/{pid}/children").split()]
    return [*children, *(deeper for child in children for deeper in below(child))]
