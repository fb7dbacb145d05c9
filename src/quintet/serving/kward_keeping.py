"""What Kward keeps for its user, put together for one process. Part of the composition root."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from quintet.app import App
from quintet.config.kward import Addresses, KwardFiles, kward_files
from quintet.domain.errors import Invalid
from quintet.domain.project import Profile
from quintet.engine.profiles import DEFAULT
from quintet.engine.telemetry import Telemetry, enabled_categories
from quintet.minds import roots_of
from quintet.protocols.kward.keeping import Keeping
from quintet.serving.kward_accounts import KwardAccounts
from quintet.serving.kward_models import KwardModels
from quintet.workspace.mirror_files import DiskMirrorFiles
from quintet.workspace.settings_file import SettingsFile
from quintet.workspace.telemetry_files import TelemetryFiles

if TYPE_CHECKING:
    from quintet.providers.oauth import OAuthClient

LOGGING = "KWARD_LOGGING"


def opening(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What the app is opened with: Kward's directory as the profile, its files that hold secrets, its skills."""
    files = kward_files(environment)
    profile = Profile(DEFAULT, files.directory, settings=os.path.basename(files.config))
    skills = os.path.join(files.directory, "skills")
    return {"profile": profile, "secret_files": (files.config, files.auth), "skills_dirs": (skills,)}


@asynccontextmanager
async def kward_keeping(
    app: App,
    environment: Mapping[str, str] = os.environ,
    *,
    at: Addresses | None = None,
    oauth: OAuthClient | None = None,
) -> AsyncIterator[Keeping]:
    """`at` and `oauth` say where providers are; nobody's file does."""
    files = kward_files(environment)
    settings = app.minds.settings()
    auth = SettingsFile(files.auth, DiskMirrorFiles(str(app.home / "run")))
    accounts = KwardAccounts(settings, auth, environment, app.clock, oauth)
    telemetry = _telemetry(app, settings, files, environment)
    try:
        yield Keeping(
            settings=settings,
            mind=app.minds.of,
            models=KwardModels(app, settings, auth, environment, at),
            telemetry=telemetry,
            accounts=accounts,
            roots=roots_of,
        )
    finally:
        await accounts.close()
        await telemetry.close()


def _telemetry(app: App, settings: SettingsFile, files: KwardFiles, environment: Mapping[str, str]) -> Telemetry:
    def categories() -> tuple[str, ...]:
        try:
            said = settings.now()
        except (Invalid, OSError):
            said = {}
        return enabled_categories(said, environment, LOGGING)

    return Telemetry(app.feed, TelemetryFiles(os.path.join(files.directory, "logs")), categories, app.log.line)
