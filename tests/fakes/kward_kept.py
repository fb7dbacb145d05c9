"""What Kward keeps for its user, beside an engine of a test: real files in a directory, nobody else's environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quintet.domain.memory import MemorySwitch
from quintet.engine.memory import Mind
from quintet.engine.telemetry import Telemetry, enabled_categories
from quintet.protocols.kward.keeping import Keeping
from quintet.serving.kward_accounts import KwardAccounts
from quintet.workspace.memory_files import MemoryFiles
from quintet.workspace.mirror_files import DiskMirrorFiles
from quintet.workspace.settings_file import SettingsFile
from quintet.workspace.telemetry_files import TelemetryFiles
from tests.fakes.engine import Process

PORT = {"KWARD_OAUTH_PORT": "0"}


def kept(process: Process, directory: Path, choice: Any) -> Keeping:
    files = DiskMirrorFiles(str(directory / "run"))
    settings = SettingsFile(str(directory / "config.json"), files)
    log = TelemetryFiles(str(directory / "logs"))
    mind = Mind(MemoryFiles(str(directory), files), settings, process.clock, process.feed.mask, MemorySwitch())
    return Keeping(
        settings=settings,
        mind=lambda: mind,
        models=choice,
        telemetry=Telemetry(process.feed, log, lambda: enabled_categories(settings.now(), {}, "KWARD_LOGGING")),
        accounts=KwardAccounts(settings, SettingsFile(str(directory / "auth.json"), files), PORT, process.clock),
        roots=lambda cwd: (cwd,),
    )
