"""A diff on a terminal: files with counts, hunks in colours, nothing mistaken for something else."""

from __future__ import annotations

from quintet.cli.diff_view import diff_lines
from quintet.cli.styled import text_of

DIFF = """--- a/one.txt
+++ b/one.txt
@@ -1,3 +1,3 @@
 same
--- a removed line that looks like a head
+++ an added one
 end
--- /dev/null
+++ b/two.txt
@@ -0,0 +1 @@
+new
\\ No newline at end of file
"""


def test_each_file_has_its_name_and_its_counts_and_each_line_its_colour() -> None:
    lines = diff_lines(DIFF, 80)
    heads = [text_of(line) for line in lines if line[0][0] == "bold"]
    assert heads == ["one.txt  +1 -1", "two.txt  +1 -0"]
    styles = {text_of(line): line[0][0] for line in lines}
    assert styles["--- a removed line that looks like a head"] == "red"
    assert styles["+++ an added one"] == "green"
    assert styles["@@ -0,0 +1 @@"] == "cyan"
    assert styles["\\ No newline at end of file"] == "dim"


def test_what_is_left_out_is_counted() -> None:
    lines = diff_lines(DIFF, 80, limit=3)
    assert [text_of(line) for line in lines][-1] == f"… {len(diff_lines(DIFF, 80)) - 3} more lines"
    assert len(lines) == 4


def test_a_removed_file_keeps_its_name_and_what_is_no_diff_is_shown() -> None:
    assert text_of(diff_lines("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n", 80)[0]) == "x  +0 -1"
    assert text_of(diff_lines("Binary files differ\n", 80)[0]).startswith("Binary files differ")
