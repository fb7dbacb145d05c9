"""The small project that the demo works in: a function that is wrong, a test that says so, a repository where git is
there. All of it lies in a directory that is gone afterwards.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from quintet.workspace.environment import find_program

FILE = "prices.py"
WRONG, RIGHT = "price * count - discount", "(price - discount) * count"
CODE = f'''"""What a customer pays."""


def total(price, count, discount=0):
    """The discount is given on each piece."""
    return {WRONG}
'''
TEST = """import unittest

from prices import total


class TotalTest(unittest.TestCase):
    def test_the_discount_is_given_on_each_piece(self):
        self.assertEqual(total(10, 3, discount=1), 27)


if __name__ == "__main__":
    unittest.main()
"""
CONFIG = f"""# Of the demo alone: the edit of its one file is allowed by a rule, everything else is asked about.
[policy.rules]
"edit: {FILE}" = "allow"
"""
WITHIN_S = 10.0
_GIT = ("-c", "user.name=Quintet demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")


class DemoProject:
    """`place` is an empty directory of the demo's own."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.directory = place / "project"
        self.file = self.directory / FILE
        self.in_git = False

    def make(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(CONFIG, encoding="utf-8")
        self.directory.mkdir(mode=0o700)
        self.file.write_text(CODE, encoding="utf-8")
        (self.directory / "test_prices.py").write_text(TEST, encoding="utf-8")
        self.in_git = self._commit()

    def test_command(self) -> str:
        """With the interpreter that runs us: it is there in any case, and seen inside the sandbox."""
        python = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
        return f"{shlex.quote(python)} -B -m unittest test_prices"

    def _commit(self) -> bool:
        """With no settings of the person: neither hooks nor signing keys belong into a demo."""
        git = find_program("git", os.environ)
        if git is None:
            return False
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.directory)}
        try:
            for words in (("init", "--quiet"), ("add", "."), (*_GIT, "commit", "--quiet", "-m", "A project to try")):
                subprocess.run(
                    [git, *words], cwd=self.directory, env=clean, capture_output=True, timeout=WITHIN_S, check=True
                )
        except (OSError, subprocess.SubprocessError):
            return False
        return True
