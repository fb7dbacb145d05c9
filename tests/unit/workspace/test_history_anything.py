"""Whatever a script does to a tree, putting every `before` back gives the tree that was there."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.checkpoint import FileChange, FileKind
from quintet.workspace.history import WorkspaceHistory
from tests.fakes.clock import SettableClock
from tests.fakes.memory_disk import in_memory
from tests.unit.workspace.repositories import repository, sh, snapshot, write

NAMES = ("a.txt", "b", "src/c.py", "src/deep/d", "with space", "ü/é", "new\nline", "-dash", "q'uote", "e")
DIRECTORIES = ("src", "src/deep", "ü", "made")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """What is kept and brought back need not wait for a disk."""
    with in_memory() as place:
        yield place


def step(chance: random.Random, *, git: bool, plain_only: bool = False) -> str:
    """One thing a command might do. Each may fail, as in scripts that nobody wrote with care."""
    one, two = quoted(chance.choice(NAMES)), quoted(chance.choice(NAMES))
    directory, other = chance.choice(DIRECTORIES), chance.choice(DIRECTORIES)
    # Git tells other permissions than the execute bit only from one second to the next, and this all happens in one.
    modes = ("644", "755") if git else ("600", "644", "755", "400")
    plain = (
        f'mkdir -p "$(dirname -- ./{one})"; echo {chance.random()} > ./{one}',
        f"echo more >> ./{one}",
        f"rm -f ./{one}",
        f"mv -f ./{one} ./{two}",
        f"mv ./{directory} ./{other}.moved",
        f"rm -rf ./{directory}",
        f"chmod {chance.choice(modes)} ./{one}",
        f"ln -sfn {chance.choice(('nowhere', '/etc', 'a.txt'))} ./{one}",
        f"rm -rf ./{one}; mkdir -p ./{one}/inside; echo in > ./{one}/inside/f",
        f"cp -r ./{directory} ./{other}.copy",
        f"truncate -s {chance.randrange(3)} ./{one}",
        f"touch ./{one}",
        f"ln -f ./{one} ./{two}",
        f"mkdir -p {directory}/empty",
    )
    with_git = (
        "git add -A; git commit -qm more",
        "git stash -q -u",
        "git stash -q -u; git stash pop -q",
        "git checkout -q -f other",
        "git checkout -q main",
        "git reset -q --hard HEAD~1",
        "git reset -q",
        "git clean -fdq",
        f"git rm -q -f -- {one}",
        f"git rm -q --cached -- {one}",
        "git add -A",
        "git gc -q",
        "git update-index -q --refresh",
    )
    return chance.choice((*plain, *with_git) if git and not plain_only else plain)


def quoted(name: str) -> str:
    return "'" + name.replace("'", "'\\''") + "'"


def script(chance: random.Random, length: int, *, git: bool) -> str:
    return "\n".join(f"{{ {step(chance, git=git)}; }} 2>/dev/null" for _ in range(length)) + "\ntrue"


def start(place: Path, chance: random.Random, *, git: bool) -> None:
    files = {name: f"{name} {chance.random()}\n" for name in NAMES[:-1]}
    if not git:
        write(place, files)
        return
    repository(place, files)
    sh("git checkout -q -b other; echo o > o.txt; rm b; git add -A; git commit -qm other; git checkout -q main", place)
    sh("echo second > second.txt; chmod 755 second.txt; git add -A; git commit -qm second", place)
    own = [step(chance, git=True, plain_only=True) for _ in range(4)]
    sh("\n".join(own) + "\ntrue", place)  # the person's own uncommitted work


@pytest.mark.req("mechanisms:M8.identical")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("git", [True, False], ids=["git", "plain"])
async def test_putting_everything_back_gives_the_same_tree(tmp_path, seed, git):
    chance = random.Random(seed)
    place = tmp_path / "tree"
    (tmp_path / "home").mkdir()
    start(place, chance, git=git)
    history = WorkspaceHistory(str(tmp_path / "home"), os.environ, SettableClock())
    before = snapshot(place)
    secured = await history.secure(str(place))
    done = script(chance, 12, git=git)
    sh(done, place)
    compared = await history.compare(secured)
    assert (secured.partial, compared.partial) == ((), ())
    order = sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/")))
    failed = await history.put_all(str(place), [FileChange(c.path, c.after, c.before) for c in order])
    assert failed == [None] * len(order)
    assert snapshot(place) == before, done
