"""Why there is no sandbox, in words with a line that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.workspace.sandbox.diagnosis import Facts, diagnosed, facts, install_line

NO_NAMESPACE = "bwrap: No permissions to create new namespace, likely because the kernel does not allow it."
ROWS = [
    (NO_NAMESPACE, Facts(clone_allowed="0"), "kernel.unprivileged_userns_clone=1"),
    (
        "bwrap: Creating new namespace failed: No space left",
        Facts(most_namespaces="0"),
        "user.max_user_namespaces=15000",
    ),
    ("bwrap: setting up uid map: Permission denied", Facts(apparmor_restricts="1"), "profile bwrap /usr/bin/bwrap"),
    ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", Facts(apparmor_restricts="1"), "apparmor_parser"),
    (NO_NAMESPACE, Facts(container=True), "--security-opt seccomp=unconfined"),
    ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", Facts(), "--security-opt"),
    ("bwrap: Failed to make / slave: Permission denied", Facts(container=True), "container"),
    (NO_NAMESPACE, Facts(), "allow user namespaces"),
    ("bwrap: something new", Facts(), "Run `/usr/bin/bwrap"),
]


@pytest.mark.req("reliability:R19")
@pytest.mark.parametrize(("said", "known", "fix"), ROWS)
def test_each_refusal_has_its_own_fix(said: str, known: Facts, fix: str) -> None:
    why, mend = diagnosed(said, "/usr/bin/bwrap", known)
    assert fix in mend
    assert said.removeprefix("bwrap: ") in why


def test_a_refused_proc_is_called_what_it_is() -> None:
    why, _ = diagnosed("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "bwrap", Facts())
    assert "/proc" in why
    assert "see every process" in why


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("ID=debian\n", "sudo apt-get install bubblewrap"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "sudo apt-get install bubblewrap"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install bubblewrap"),
        ("ID=arch\n", "sudo pacman -S bubblewrap"),
        ("ID=alpine\n", "sudo apk add bubblewrap"),
        ("ID=own\n", "Install the package `bubblewrap` of your distribution."),
    ],
)
def test_the_line_to_install_it_follows_the_distribution(release: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text(release)
    assert install_line(facts(str(tmp_path))) == line


def test_the_machine_is_asked_for_what_it_forbids(tmp_path: Path) -> None:
    for name, value in (("user/max_user_namespaces", "0\n"), ("kernel/unprivileged_userns_clone", "1\n")):
        place = tmp_path / "proc/sys" / name
        place.parent.mkdir(parents=True)
        place.write_text(value)
    (tmp_path / ".dockerenv").touch()
    assert facts(str(tmp_path)) == Facts((), "1", "0", "", True)
