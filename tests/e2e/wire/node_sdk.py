"""The Node SDK as npm publishes it, installed once outside the tracked files, and its scenes played."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire_client import KIMI
from tests.faults.processes import ROOT, environment

HERE = Path(__file__).parent / "node"
CACHE = ROOT / "build" / "wire-node"
NPM_S = 60.0
SCENE_S = 45.0


def installed() -> Path:
    """The directory with the SDK in it. Where it cannot be had, the test is skipped and says why."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"the Node SDK is not tried: there is no {program} here")
    CACHE.mkdir(parents=True, exist_ok=True)
    lock_file = (HERE / "package-lock.json").read_bytes()
    place = CACHE / hashlib.sha256(lock_file).hexdigest()[:12]
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers, one installation
        if not (place / "ready").exists():
            _install(place)
    if said := (place / "ready").read_text():
        pytest.skip(f"the Node SDK could not be installed (remove {place} to try again): {said}")
    return place


def _install(place: Path) -> None:
    """What went wrong is remembered, so that a machine without a network waits for it once."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place)
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=10000"]
    try:
        done = subprocess.run(["npm", "ci", *flags], cwd=place, capture_output=True, text=True, timeout=NPM_S)
        said = "" if done.returncode == 0 else done.stderr[-500:] or f"npm ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        said = f"npm took more than {NPM_S:.0f} s"
    (place / "ready").write_text(said)


class Sdk:
    """Plays scenes for one home and one working directory."""

    def __init__(self, tmp_path: Path, home: Path) -> None:
        self.work = tmp_path / "work"
        self.work.mkdir(exist_ok=True)
        self.share = tmp_path / "share"
        self.home = home
        self._place = installed()

    def play(self, scene: str, **given: Any) -> dict[str, Any]:
        """What came of it. An event that the SDK could not read fails every scene."""
        given |= {"sdk": str(self._place), "work": str(self.work), "share": str(self.share), "executable": KIMI}
        done = subprocess.run(
            ["node", str(HERE / "scenes.mjs"), scene, json.dumps(given)],
            capture_output=True,
            text=True,
            timeout=SCENE_S,
            env=environment(QUINTET_HOME=str(self.home), KIMI_SHARE_DIR=str(self.share)),
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stderr == ""
        came: dict[str, Any] = json.loads(done.stdout)
        for turn in came.get("turns", []):
            unread = [e for e in _inside(turn["events"]) if e["type"] in ("error", "ParseError")]
            assert unread == []
        return came


def _inside(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With those of subagents, which the SDK reads by itself."""
    return events + [e["payload"]["event"] for e in events if e["type"] == "SubagentEvent"]


def types(turn: dict[str, Any]) -> list[str]:
    return [event["type"] for event in turn["events"]]


def all_of(turn: dict[str, Any], kind: str) -> list[Any]:
    return [event["payload"] for event in turn["events"] if event["type"] == kind]


def said(turn: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in all_of(turn, "ContentPart"))
