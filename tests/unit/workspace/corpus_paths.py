"""Paths as hostile or careless models send them, each with the only acceptable judgement, and the tree they are tried
on. `{ws}`, `{base}`, `{pid}`, `{secret_fd}`, `{out_fd}` and `{ws_fd}` stand for what only the run knows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

CANARY = "canary-that-nobody-may-see"


class Case(NamedTuple):
    path: str
    judged: (
        str  # outside | hidden | wrong (all refuse) | protected (no writing) | inside | stuck (inside, no way there)
    )
    lands: str = ""  # where `inside` is, from the workspace's root
    cwd: str = "."


def build(base: Path) -> Path:
    """A repository with links of every kind, Quintet's home in it, and a world around it that has to stay as it is."""
    ws, out = base / "ws", base / "out"
    for directory in (".git/hooks", ".git/info", ".vscode", "src/deep/er", "docs", "home", "sub/.git/hooks"):
        (ws / directory).mkdir(parents=True)
    for directory in (out / "dir", base / "ws-too", base / "wsx"):
        directory.mkdir(parents=True)
        (directory / "secret.txt").write_text(CANARY)
    (out / "secret.txt").write_text(CANARY)
    (out / "shared.txt").write_text("plain")
    for secret in (".git/config", ".git/HEAD", "sub/.git/config"):
        (ws / secret).write_text("plain")
    (ws / "home/quintet.db").write_text(CANARY)
    for file in ("file.txt", "src/app.py", "src/deep/er/x.txt", "docs/a b.txt"):
        (ws / file).write_text("plain")
    for name, target in LINKS.items():
        (ws / name).symlink_to(target.format(base=base, ws=ws))
    for number in range(9):
        (ws / f"in{number}").symlink_to(f"in{number + 1}" if number < 8 else "src")
        (ws / f"out{number}").symlink_to(f"out{number + 1}" if number < 8 else "../out")
    os.link(out / "shared.txt", ws / "hard.txt")
    return ws


LINKS = {
    "out": "../out",
    "out_abs": "{base}/out",
    "out_far": "src/../../out",
    "out_file": "../out/secret.txt",
    "out_file_abs": "{base}/out/secret.txt",
    "etc": "/etc",
    "passwd": "/etc/passwd",
    "top": "/",
    "up": "..",
    "here": ".",
    "in": "src",
    "in_abs": "{ws}/src",
    "in_file": "file.txt",
    "in_deep": "src/deep/../deep/er",
    "new_in": "src/new.txt",
    "new_out": "../out/new.txt",
    "proc_root": "/proc/self/root",
    "proc_cwd": "/proc/self/cwd/../../../../../../../../..",
    "fds": "/dev/fd",
    "loop_a": "loop_b",
    "loop_b": "loop_a",
    "loop_self": "loop_self",
    "loop_down": "loop_down/x",
    "git": ".git",
    "git_abs": "{ws}/.git",
    "hooks": ".git/hooks",
    "home_link": "home",
    "home_abs": "{ws}/home",
    "src/back": "../../out",
    "src/up": "..",
    "src/deep/er/far": "../../../../ws-too",
    ".claude": "agent",
    ".mcp.json": "servers.json",
}


def _many(judged: str, *paths: str, cwd: str = ".") -> list[Case]:
    return [Case(path, judged, cwd=cwd) for path in paths]


def _literal(*names: str) -> list[Case]:
    """Names that mean something elsewhere and nothing here: they are what they are, in the workspace."""
    return [Case(name, "inside", name) for name in names]


_BELOW = {"src": 1, "src/deep": 2, "src/deep/er": 3, "docs": 1, "missing": 1, "missing/too": 2, "in_deep": 3}

DOTS = [
    *_many("outside", "..", "../", "../.", "./..", ".//..", "../..", "../../../..", "../" * 40, "../out", "../out/"),
    *_many("outside", "../out/secret.txt", "../out/new.txt", "../out/new/er.txt", "../ws-too/secret.txt", "../wsx"),
    *_many("outside", "../w", "../ws-", "../ws./file.txt", "../ws /file.txt", "../WS/file.txt", "../Ws", "../ws.git"),
    *_many("outside", "../" * 40 + "etc/passwd", "./../" * 40 + "etc/passwd", "..//out", "..///out///secret.txt"),
    *_many("outside", "././../out", "src/./../../out", "src//..//..//out", "file.txt/../../out/secret.txt"),
    *_many("outside", "../ws/../out/secret.txt", "../ws/src/../../out", "../ ", "../.../x", "../..."),
    *_many(
        "outside", "src/../src/../../out/secret.txt", "x/y/z/../../../../out/secret.txt", "../out/../out/secret.txt"
    ),
    *[
        Case(f"{below}{'/..' * (depth + 1)}/{tail}", "outside")
        for below, depth in _BELOW.items()
        for tail in ("out/secret.txt", "out/new.txt", "ws-too/secret.txt")
    ],
    *[Case(f"{below}{'/..' * depth}/file.txt", "inside", "file.txt") for below, depth in _BELOW.items()],
    *[Case(f"{below}{'/..' * depth}/new.txt", "inside", "new.txt") for below, depth in _BELOW.items()],
    Case("../ws/file.txt", "inside", "file.txt"),
    Case("../ws/../ws/./src/app.py", "inside", "src/app.py"),
    Case(".", "inside", "."),
    Case("./", "inside", "."),
    Case("src/..", "inside", "."),
    Case("file.txt/../src/app.py", "inside", "src/app.py"),
    Case("./././file.txt", "inside", "file.txt"),
    Case("src////app.py", "inside", "src/app.py"),
    Case("docs/a b.txt", "inside", "docs/a b.txt"),
]

ABSOLUTE = [
    *_many("outside", "/", "//", "///", "/.", "/..", "/etc", "/etc/", "/etc/passwd", "/etc/shadow", "//etc/passwd"),
    *_many(
        "outside", "/root/.ssh/id_rsa", "/tmp", "/tmp/x", "/var/log/syslog", "/usr/bin/env", "/home", "/run", "/boot"
    ),
    *_many("outside", "/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/mem", "/dev/random"),
    *_many("outside", "/dev/shm/x", "/sys/kernel", "/sys/fs/cgroup", "/nowhere/at/all", "/../../etc/passwd"),
    *_many("outside", "{base}", "{base}/", "{base}/out", "{base}/out/secret.txt", "{base}/out/new.txt", "{base}/wsx"),
    *_many("outside", "{ws}/..", "{ws}/../out/secret.txt", "{ws}x/secret.txt", "{ws}-too/secret.txt", "{ws}.", "{ws} "),
    *_many("outside", "{ws}/src/../../out/secret.txt", "{base}/./out/./secret.txt", "/{base}/out/secret.txt"),
    *_many(
        "outside", "{ws}/out/secret.txt", "{ws}/top/etc/passwd", "/etc/../etc/passwd", "{base}/ws/../ws-too/secret.txt"
    ),
    Case("{ws}", "inside", "."),
    Case("{ws}/", "inside", "."),
    Case("{ws}/file.txt", "inside", "file.txt"),
    Case("{base}/out/../ws/file.txt", "inside", "file.txt"),
    Case("{ws}/src/../new.txt", "inside", "new.txt"),
    Case("/{ws}//src//new.txt", "inside", "src/new.txt"),
    Case("/../../..{ws}/file.txt", "inside", "file.txt"),
]

PROC = [
    *_many("outside", "/proc", "/proc/self", "/proc/self/root", "/proc/self/root/", "/proc/self/root/etc/passwd"),
    *_many("outside", "/proc/self/root{base}/out/secret.txt", "/proc/{pid}/root{base}/out/secret.txt"),
    *_many("outside", "/proc/thread-self/root{base}/out/secret.txt", "/proc/self/task/{pid}/root{base}/out/secret.txt"),
    *_many("outside", "/proc/1/root/etc/passwd", "/proc/1/cwd/etc/passwd", "/proc/1/environ", "/proc/self/environ"),
    *_many(
        "outside", "/proc/self/mem", "/proc/self/maps", "/proc/self/exe", "/proc/{pid}/cmdline", "/proc/self/ns/mnt"
    ),
    *_many("outside", "/proc/self/fd/{secret_fd}", "/proc/{pid}/fd/{secret_fd}", "/dev/fd/{secret_fd}", "/dev/fd"),
    *_many("outside", "/proc/self/fd/{out_fd}/secret.txt", "/dev/fd/{out_fd}/secret.txt", "/dev/fd/{out_fd}/new.txt"),
    *_many(
        "outside", "/proc/self/fd/{ws_fd}/../out/secret.txt", "/dev/fd/{ws_fd}/out/secret.txt", "/proc/self/fdinfo/0"
    ),
    *_many("outside", "/proc/self/cwd/../../../../../../../../etc/passwd", "/proc/sys/kernel/core_pattern"),
    *_many("outside", "/proc/sysrq-trigger", "/proc/mounts", "/proc/self/root/proc/self/root/etc/passwd"),
    *_many("outside", "proc_root", "proc_root/etc/passwd", "proc_root{base}/out/secret.txt", "proc_cwd/etc/passwd"),
    *_many("outside", "fds", "fds/{secret_fd}", "fds/{out_fd}/secret.txt", "top/proc/self/root/etc/passwd"),
    Case("/proc/self/root{ws}/file.txt", "inside", "file.txt"),
    Case("/proc/self/fd/{ws_fd}/file.txt", "inside", "file.txt"),
    Case("/dev/fd/{ws_fd}/new.txt", "inside", "new.txt"),
    Case("proc_root{ws}/src/app.py", "inside", "src/app.py"),
]

SYMLINKS = [
    *[
        Case(f"{link}{tail}", "outside")
        for link in (
            "out",
            "out_abs",
            "out_far",
            "out0",
            "out8",
            "src/back",
            "in/back",
            "in0/back",
            "src/up/out",
            "up/out",
        )
        for tail in ("", "/", "/secret.txt", "/new.txt", "/dir/secret.txt", "/dir/../secret.txt", "/../out/secret.txt")
    ],
    *_many(
        "outside", "out_file", "out_file_abs", "passwd", "etc", "etc/passwd", "top", "top/etc/passwd", "up", "up/.."
    ),
    *_many("outside", "top{base}/out/secret.txt", "up/ws-too/secret.txt", "new_out", "in_deep/far/secret.txt"),
    *_many("outside", "in_deep/far/new.txt", "here/out/secret.txt", "here/here/here/up/out/secret.txt", "src/up/up"),
    *_many(
        "outside", "out/../secret.txt", "out/..", "in/../out/secret.txt", "out_file/../secret.txt", "etc/../etc/passwd"
    ),
    Case("in", "inside", "src"),
    Case("in/app.py", "inside", "src/app.py"),
    Case("in/new.txt", "inside", "src/new.txt"),
    Case("in_abs/app.py", "inside", "src/app.py"),
    Case("in_file", "inside", "file.txt"),
    Case("in_deep/x.txt", "inside", "src/deep/er/x.txt"),
    Case("in0/app.py", "inside", "src/app.py"),
    Case("in0/new/er.txt", "inside", "src/new/er.txt"),
    Case("new_in", "inside", "src/new.txt"),
    Case("here/here/file.txt", "inside", "file.txt"),
    Case("up/ws/file.txt", "inside", "file.txt"),
    Case("out/../ws/file.txt", "inside", "file.txt"),
    Case("top{ws}/file.txt", "inside", "file.txt"),
    Case("src/up/file.txt", "inside", "file.txt"),
    Case("in/../file.txt", "inside", "file.txt"),
    *_many("stuck", "loop_a", "loop_b", "loop_self", "loop_a/x", "loop_self/x/y", "loop_down", "loop_down/z"),
    Case("hard.txt", "inside", "hard.txt"),
]

WRONG = [
    Case("", "wrong"),
    Case("a" * 4_097, "wrong"),
    Case("a" * 256, "wrong"),
    Case("src/" + "é" * 128, "wrong"),
    Case("a/" * 2_047 + "a", "wrong"),
    Case("../" * 1_500, "wrong"),
    *[Case(f"a{chr(code)}b", "wrong") for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))],
    *_many("wrong", "\0", "file.txt\0", "file.txt\0.png", "../out/secret.txt\0", "\0/etc/passwd", "src/\0/app.py"),
    *_many("wrong", "file.txt\n", "\nfile.txt", "\t", "src/\x1b]0;title\x07", "\x1b[2J", "src\x7f/app.py"),
    *_many("wrong", "\ud800", "\udfff", "a\udc80b", "src/\udcff/x", "\ude00\ud83d", "../\udc2e\udc2e/x", "\udc2f"),
]

SPELLINGS = [
    *_literal(
        "%2e%2e/out", "%2e%2e/%2e%2e/etc/passwd", "%2e%2e%2fout%2fsecret.txt", "..%2fout", "..%5cout", "%2e", "%00"
    ),
    *_literal("%252e%252e/out", "..%c0%af..", "..%c1%9c..", "%c0%ae%c0%ae/out", "%2fetc%2fpasswd", "..%ef%bc%8fout"),
    *_literal("&#46;&#46;/out", "\\u002e\\u002e/out", "\\x2e\\x2e/out", "0x2e0x2e/out", "..\\out\\secret.txt", "\\etc"),
    *_literal("C:\\Windows\\win.ini", "C:/Windows/win.ini", "\\\\host\\share", "..\\..\\etc", "src\\..\\..\\out"),
    *_literal(
        "\uff0e\uff0e/out", "\u2024\u2024/out", "\u2025/out", "\u2026/out", "..\u2215out", "..\u2044out", "..\uff0fout"
    ),
    *_literal("\uff0fetc\uff0fpasswd", "..\u200b/out", "\u200b../out", ".\u200b./out", "..\u00ad/out", "\ufeff../out"),
    *_literal(
        "\u202e../out", "..\u202c/out", "\u2066..\u2069/out", ".\u0307./out", "\u3002\u3002/out", "\ufe52\ufe52/out"
    ),
    *_literal(
        "...", "..../out", ".../out", "....", ".. /out", ". ./out", " ../out", "..;/out", "..,/out", ".. ", "..\u00a0/x"
    ),
    *_literal(
        "~",
        "~/x",
        "~root/.ssh",
        "$HOME/x",
        "${HOME}/x",
        "%HOME%/x",
        "$(pwd)/x",
        "`pwd`/x",
        "-",
        "--",
        "-rf",
        "*",
        "**/x",
    ),
    *_literal(
        "?",
        "[a]",
        "{{a,b}}",
        "a;b",
        "a|b",
        "a&b",
        "a>b",
        "'a'",
        '"a"',
        "#",
        "!x",
        "a b",
        " ",
        "  /x",
        " file.txt",
        "a=b",
    ),
    *_literal(
        "file.txt.", "file.txt ", "file.txt..", "src./x", "src /x", "con", "NUL", "aux.txt", "COM1", "file.txt::$DATA"
    ),
    *_literal(
        "caf\u00e9",
        "cafe\u0301",
        "\u00e9/\u0301",
        "\U0001f600",
        "\u6587\u4ef6",
        "FILE.TXT",
        "SRC/app.py",
        "\u017frc/app.py",
    ),
    *_literal(
        "homely", "home2/x", "src/home/x", "xhome", ".gitignore", ".github/workflows/x.yml", "git.txt", ".gitx/hooks/x"
    ),
    *_literal("src/.bashrc", "src/.mcp.json", "\uff0egit/config", "g\u0131t", ".claude.md"),
    Case("file:///etc/passwd", "inside", "file:/etc/passwd"),
    Case("http://x/../y", "inside", "http:/y"),
    Case("....//....//etc/passwd", "inside", "..../..../etc/passwd"),
]

PROTECTED = [
    *_many("protected", ".git", ".git/", ".git/config", ".git/hooks", ".git/hooks/pre-commit", ".git/info/attributes"),
    *_many("protected", ".git/config.worktree", ".git/HEAD", ".git/new", "./.git/config", "src/../.git/config"),
    *_many(
        "protected",
        "{ws}/.git/config",
        "git/config",
        "git/hooks/x",
        "git_abs/config",
        "hooks/pre-commit",
        "here/.git/x",
    ),
    *_many("protected", "sub/.git", "sub/.git/config", "sub/.git/hooks/x", "new/.git/config", "a/b/c/.git/hooks/x"),
    *_many(
        "protected", ".GIT/config", ".Git/hooks/x", "sub/.gIT/config", ".git./config", ".git /config", ".git::$X/config"
    ),
    *_many(
        "protected",
        ".g\u200cit/config",
        ".git\u200b/hooks/x",
        "\ufeff.git/config",
        ".\u200dgit",
    ),
    *_many(
        "protected",
        ".quintet",
        ".quintet/x",
        ".QUINTET/x",
        ".mcp.json",
        ".MCP.JSON",
        "servers.json",
        ".claude",
        "agent/x",
    ),
    *_many("protected", ".claude/settings.json", ".codex/config.toml", ".cursor/mcp.json", ".kimi/x", ".\u212aimi/x"),
    *_many(
        "protected", ".opencode/x", "opencode.json", "OpenCode.json", ".kward/x", "openclaw.json", "./openclaw.json"
    ),
    *_many("protected", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".envrc", ".ENVRC"),
    *_many("protected", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".ba\u017fhrc", "src/../.profile"),
    *_many(
        "protected",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".vscode/launch.json",
        ".VSCode/Tasks.json",
        ".idea/x",
    ),
    *_many(
        "hidden", "home", "home/", "home/quintet.db", "home/new", "home_link", "home_link/quintet.db", "home_abs/new"
    ),
    *_many("hidden", "./home/quintet.db", "src/../home/quintet.db", "{ws}/home/quintet.db", "in/../home/quintet.db"),
    *_many("hidden", "/proc/self/root{ws}/home/quintet.db", "out/../ws/home/quintet.db", "HOME/quintet.db", "home./x"),
]

ELSEWHERE = [
    *_many("outside", "../../out/secret.txt", "back/secret.txt", "back/new.txt", "up/../out/secret.txt", cwd="src"),
    *_many("outside", "../../out/secret.txt", "../..", "deep/../../../out", cwd="in"),
    *_many("outside", "../../../../out/secret.txt", "far/secret.txt", "../../../..", cwd="src/deep/er"),
    *_many("protected", "../.git/config", "up/.git/hooks/x", "../.mcp.json", cwd="src"),
    *_many("hidden", "../home/quintet.db", "up/home_link/quintet.db", cwd="src"),
    Case("app.py", "inside", "src/app.py", "src"),
    Case("../file.txt", "inside", "file.txt", "src"),
    Case("../file.txt", "inside", "file.txt", "in"),
    Case("deep/../../new.txt", "inside", "new.txt", "src"),
    Case("../../../file.txt", "inside", "file.txt", "src/deep/er"),
    Case("../../../file.txt", "inside", "file.txt", "in_deep"),
    Case(".profile", "inside", "src/.profile", "src"),
]

CASES = [*DOTS, *ABSOLUTE, *PROC, *SYMLINKS, *WRONG, *SPELLINGS, *PROTECTED, *ELSEWHERE]
