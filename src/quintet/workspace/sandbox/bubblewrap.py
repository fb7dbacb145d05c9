"""A Profile as bubblewrap's arguments. Pure."""

from __future__ import annotations

from quintet.workspace.sandbox.profile import Profile


def arguments(profile: Profile, cwd: str, home: str) -> tuple[str, ...]:
    """Everything between the program's name and the command."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
    words += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    words += ["--tmpfs", "/run"]
    words += ["--bind", profile.scratch, "/tmp"] if profile.scratch else ["--tmpfs", "/tmp"]  # noqa: S108
    words += ["--bind" if profile.writable else "--ro-bind", profile.workspace, profile.workspace]
    if home:
        words += ["--tmpfs", home]
    if profile.network != "on":
        words.append("--unshare-net")
    return (*words, "--chdir", cwd)
