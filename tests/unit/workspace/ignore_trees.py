"""Generated trees with ignore files at every level, for comparing two readers of them."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

NAMES = ["a", "b", "c.py", "d.log", "build", "keep", "x y", "ä.txt", "we:ird", "{z}", "[q]", "a.tar.gz", ".hidden"]
_PLAIN_LINES = """
a
b/
/a
/build/
build
*.log
!keep
!d.log
!*.log
*.py
a/b
/a/b/
a/**
!a/keep
**/b
**/keep/
a/**/b
b/*
*
!*/
!/keep
/*
?
[ab]
[!a]
[^b]
*.{py,log}
{a,b}
{a,{b,c.py}}
{z
[z-a]
[a
c.py\\
\\{z\\}
\\[q\\]
x\\ y
x y
# a
\\#a
\\!a
ä.txt
*ä*
a*
*.tar.*
.*
!.hidden
a**
**b
**
**/
/**
/
//a
build/**/
*.gz
we:*
"""
LINES = [*_PLAIN_LINES.strip("\n").split("\n"), "x y   ", "a\r"]
FILES = [".gitignore", ".gitignore", ".gitignore", ".ignore", ".rgignore"]


def plant(root: Path, random: Random, *, depth: int = 0) -> None:
    """Files, directories, links and rules. Contents do not matter here, only which entries are left."""
    root.mkdir(exist_ok=True)
    for name in random.sample(NAMES, random.randint(2, 6)):
        if depth < 3 and random.random() < 0.45:
            plant(root / name, random, depth=depth + 1)
        elif random.random() < 0.1:
            (root / name).symlink_to(random.choice([".", "..", "nowhere", "/etc"]))
        else:
            (root / name).write_text("some text\n")
    for name in random.sample(FILES, random.randint(0, 2)):
        (root / name).write_text("\n".join(random.choices(LINES, k=random.randint(1, 5))) + "\n")
    if random.random() < (0.5 if depth == 0 else 0.08):
        (root / ".git" / "info").mkdir(parents=True)
        (root / ".git" / "a").write_text("never seen\n")
        if random.random() < 0.5:
            (root / ".git" / "info" / "exclude").write_text(random.choice(LINES) + "\n")


def directories(root: Path) -> list[str]:
    """From the root; what may be given as a start."""
    found = [os.path.relpath(here, root) for here, _, _ in os.walk(root)]
    return sorted(path for path in found if ".git" not in path.split(os.sep))
