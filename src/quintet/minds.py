"""Minds: each profile's memory, wired to its files when it is first needed. Part of the composition root."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quintet.domain.errors import Invalid
from quintet.domain.memory import MemorySwitch
from quintet.domain.ports import Clock
from quintet.engine.profiles import DEFAULT, Profiles
from quintet.workspace.project_root import project_root
from quintet.workspace.settings_file import SettingsFile

if TYPE_CHECKING:
    from quintet.engine.memory import Mind
    from quintet.workspace.mirror_files import DiskMirrorFiles

PATIENCE_S = 10.0  # for the lock on a file that several processes write


class Minds:
    def __init__(
        self, home: Path, profiles: Profiles, clock: Clock, mask: Callable[[str], str], usual: MemorySwitch
    ) -> None:
        self._profiles = profiles
        self._clock = clock
        self._mask = mask
        self._usual = usual
        self._run = str(home / "run")
        self._made: dict[str, Mind] = {}
        self._settings: dict[str, SettingsFile] = {}

    @cached_property
    def _files(self) -> DiskMirrorFiles:
        from quintet.workspace.mirror_files import DiskMirrorFiles

        return DiskMirrorFiles(self._run, patience_s=PATIENCE_S)

    def of(self, profile: str = DEFAULT) -> Mind:
        if profile not in self._made:
            from quintet.engine.memory import Mind
            from quintet.workspace.memory_files import MemoryFiles

            found = self._profiles.named(profile)
            store = MemoryFiles(found.directory, self._files)
            settings = self.settings(profile)
            self._made[profile] = Mind(store, settings, self._clock, self._mask, self._usual)
        return self._made[profile]

    def enabled(self, profile: str = DEFAULT) -> bool:
        """Whether anything is remembered there; not where its settings cannot be read."""
        try:
            said = self.settings(profile).now().get("memory")
        except (Invalid, OSError):
            return False
        found = said.get("enabled") if isinstance(said, dict) else None
        return found if isinstance(found, bool) else self._usual.enabled

    def settings(self, profile: str = DEFAULT) -> SettingsFile:
        """The profile's own file of settings."""
        if profile not in self._settings:
            found = self._profiles.named(profile)
            path = os.path.join(found.directory, found.settings)
            self._settings[profile] = SettingsFile(path, self._files)
        return self._settings[profile]


def roots_of(cwd: str) -> tuple[str, ...]:
    """The workspaces a directory counts as: itself, and the project around it."""
    return tuple(dict.fromkeys((os.path.realpath(cwd), project_root(cwd))))
