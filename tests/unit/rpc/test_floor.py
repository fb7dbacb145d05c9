import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quintet.rpc

ROOMS = sorted(Path(quintet.rpc.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.stem)
def test_a_room_imports_only_the_standard_library_msgspec_and_its_own_floor(room: Path) -> None:
    for node in ast.walk(ast.parse(room.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            known = top in sys.stdlib_module_names or top == "msgspec" or name.startswith("quintet.rpc")
            assert known or (top, room.stem) == ("uvicorn", "http"), name  # imported when a server starts


def test_the_floor_adds_nothing_heavy_to_asyncio_and_msgspec() -> None:
    rooms = ", ".join(f"quintet.rpc.{room.stem}" for room in ROOMS if room.stem != "__init__")
    script = (
        "import sys, asyncio, msgspec, pathlib; before = set(sys.modules)\n"
        f"import {rooms}\n"
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('quintet')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    allowed = {
        "_queue",
        "queue",
        "array",
        "_struct",
        "struct",
        "fcntl",
        "pathlib",
        "fnmatch",
        "ntpath",
        "ipaddress",
    }
    assert {name.partition(".")[0] for name in done.stdout.split()} <= allowed
