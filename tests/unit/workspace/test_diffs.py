from __future__ import annotations

import subprocess
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from quintet.workspace.diffs import hunks, unified_diff
from quintet.workspace.output import Kept

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d\r", "e\x0cf"]), max_size=30)


@given(LINES, LINES, st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(tmp_path_factory, old, new, old_end, new_end):
    before, after = ("\n".join(lines) + "\n" * end for lines, end in ((old, old_end), (new, new_end)))
    place = tmp_path_factory.mktemp("patch")
    (place / "f").write_bytes(before.encode())
    diff = unified_diff(before, after, "f")
    if diff:
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-p1", "-"], cwd=place, input=diff.encode(), check=True, timeout=20
        )
    result = (place / "f").read_bytes() if (place / "f").exists() else b""
    assert result == after.encode()


def test_changes_far_apart_are_hunks_of_their_own():
    old = "".join(f"{n}\n" for n in range(1, 41))
    new = old.replace("5\n", "five\n", 1).replace("\n35\n", "\nthirty-five\n")
    assert [line for line in unified_diff(old, new, "f").splitlines() if line.startswith("@@")] == [
        "@@ -2,7 +2,7 @@",
        "@@ -32,7 +32,7 @@",
    ]


def test_nothing_changed_is_no_diff():
    assert unified_diff("a\n", "a\n", "f") == ""


def test_two_large_unlike_texts_take_no_time():
    old, new = ("".join(f"{side}{n * 7 % 1000}\n" for n in range(60_000)) for side in "ab")
    started = time.monotonic()
    assert unified_diff(old, new, "f").count("\n") == 120_003
    assert time.monotonic() - started < 2


@given(st.lists(st.text(max_size=40), max_size=20))
def test_what_is_kept_is_whole_or_says_exactly_what_is_missing(pieces):
    kept = Kept(head=30, tail=50)
    for piece in pieces:
        kept.add(piece)
    whole = "".join(pieces)
    if len(whole) <= 80:
        assert kept.text() == whole
    else:
        size, lines = len(whole), whole.count("\n")
        marker = f"\n[{size - 80} of {size} characters ({lines} lines) left out here]\n"
        assert kept.text() == whole[:30] + marker + whole[-50:]


def test_hunks_are_pairs_of_texts_with_the_lines_they_begin_at():
    old = "".join(f"{n}\n" for n in range(1, 31))
    new = old.replace("5\n", "five\n", 1).replace("25\n", "")
    first, second = hunks(old, new)
    assert first == {
        "old_line": 2,
        "new_line": 2,
        "before": "2\n3\n4\n5\n6\n7\n8\n",
        "after": "2\n3\n4\nfive\n6\n7\n8\n",
    }
    assert (second["old_line"], second["new_line"]) == (22, 22)
    assert hunks(old, old) == []
    assert hunks(None, "x") == [{"old_line": 1, "new_line": 1, "before": "", "after": "x"}]
    assert hunks("x", "") == [{"old_line": 1, "new_line": 1, "before": "x", "after": ""}]
