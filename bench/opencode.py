"""The server that KNP's ask is measured against: found, or installed once beside the results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

VERSION = "1.18.33"
INSTALL_S = 600.0
PLACE = Path(__file__).parent / "results" / f"opencode-{VERSION}"


def reference() -> Path | str:
    """Its program, or why there is none. QUINTET_BENCH_OPENCODE names one that is there already."""
    if named := os.environ.get("QUINTET_BENCH_OPENCODE"):
        return Path(named)
    npm = shutil.which("npm")
    if found := _program():
        return found
    if npm is None:
        return "there is no npm here to install it with"
    PLACE.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(PLACE), f"opencode-ai@{VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        return f"it could not be installed: {error}"
    return _program() or "its package has no program for this machine"


def _program() -> Path | None:
    # The launcher of its package starts this one, through a second process.
    return next(iter(sorted(PLACE.glob("node_modules/opencode-*/bin/opencode"))), None)


def environment(home: Path) -> dict[str, str]:
    """A home of its own, and nothing fetched from anywhere."""
    places = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    switches = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **places, **switches}


def configure(work: Path, model_url: str) -> None:
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "model": "fake/stamping",
        "small_model": "fake/stamping",
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": model_url, "apiKey": "none"},
                "models": {"stamping": {"name": "stamping", "tool_call": True}},
            }
        },
    }
    (work / "opencode.json").write_text(json.dumps(settings))
