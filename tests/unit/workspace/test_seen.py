from __future__ import annotations

from quintet.workspace.seen import Seen, Sight


def test_a_file_is_known_by_its_content_and_thread():
    seen = Seen()
    assert seen.sight("t", "/a", b"x") is Sight.NEVER
    seen.note("t", "/a", b"x")
    assert seen.sight("t", "/a", b"x") is Sight.CURRENT
    assert seen.sight("t", "/a", b"y") is Sight.CHANGED
    assert seen.sight("t", "/b", b"x") is Sight.NEVER
    assert seen.sight("other", "/a", b"x") is Sight.NEVER


def test_what_was_noted_longest_ago_is_forgotten_first():
    seen = Seen(threads=2, paths=2)
    for path in ("/a", "/b", "/a", "/c"):
        seen.note("t", path, b"")
    assert [seen.sight("t", path, b"").value for path in ("/a", "/b", "/c")] == ["current", "never", "current"]
    for thread in ("u", "t", "v"):
        seen.note(thread, "/z", b"")
    assert [seen.sight(thread, "/z", b"").value for thread in ("t", "u", "v")] == ["current", "never", "current"]
