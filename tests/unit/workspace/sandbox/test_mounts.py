"""The order of mounts, and what is left out."""

from __future__ import annotations

from quintet.workspace.sandbox.bubblewrap import Tool, arguments, version_in
from quintet.workspace.sandbox.mounts import Kind, Mount, in_order, lies_in


def places(*mounts: Mount) -> list[str]:
    return [mount.place for mount in in_order(mounts)]


def test_parents_come_before_what_lies_in_them() -> None:
    assert places(Mount("/a/b/c", Kind.HIDE), Mount("/a", Kind.WRITE), Mount("/a/b", Kind.READ)) == [
        "/a",
        "/a/b",
        "/a/b/c",
    ]


def test_names_are_compared_by_component() -> None:
    assert places(Mount("/a-b", Kind.HIDE), Mount("/a/c", Kind.HIDE)) == ["/a/c", "/a-b"]
    assert lies_in("/a/b", "/a")
    assert not lies_in("/ab", "/a")
    assert lies_in("/a", "/a")


def test_of_two_for_one_place_the_first_counts() -> None:
    [mount] = in_order([Mount("/w", Kind.WRITE), Mount("/w", Kind.HIDE)])
    assert mount.kind is Kind.WRITE


def test_what_cannot_be_seen_anyway_is_not_hidden_again() -> None:
    assert places(Mount("/h", Kind.HIDE), Mount("/h/x", Kind.HIDE), Mount("/h/s.sock", Kind.BLANK)) == ["/h"]
    assert places(Mount("/tmp", Kind.WRITE, "/scratch"), Mount("/tmp/s.sock", Kind.BLANK)) == ["/tmp"]


def test_a_workspace_inside_a_hidden_directory_is_seen_and_its_own_guards_hold() -> None:
    order = places(Mount("/h", Kind.HIDE), Mount("/h/w", Kind.WRITE), Mount("/h/w/.git/hooks", Kind.READ))
    assert order == ["/h", "/h/w", "/h/w/.git/hooks"]


def test_hidden_directories_are_closed_after_everything_is_in_place() -> None:
    words = arguments(
        Tool("bwrap", (0, 8, 0)),
        [Mount("/h", Kind.HIDE), Mount("/h/w", Kind.WRITE)],
        "/h/w",
        network=False,
        blank="/b",
    )
    assert words.index("--remount-ro") > words.index("--bind")


def test_options_a_version_does_not_know_are_left_out() -> None:
    mounts = [Mount("/tmp", Kind.PRIVATE)]
    new = arguments(Tool("bwrap", (0, 8, 0)), mounts, "/", network=False, blank="/b")
    old = arguments(Tool("bwrap", (0, 6, 1)), mounts, "/", network=True, blank="/b")
    assert {"--disable-userns", "--size", "--unshare-net"} <= set(new)
    assert not {"--disable-userns", "--size", "--unshare-net"} & set(old)
    assert {"--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"} <= set(old)


def test_versions_are_read_as_numbers() -> None:
    assert version_in("bubblewrap 0.10.0\n") > version_in("bubblewrap 0.8.0")
    assert version_in("nothing") == (0,)
