"""Ways out that were tried. Each is a bash script that says ESCAPED if it got through.

What a script may know stands in variables: OUT (a directory outside), WS, USERDIR, QHOME, VICTIM (a pid outside), PORT
(a listener on loopback), ABSTRACT (a socket's name), SOCKETS (paths of listening sockets), PY (an interpreter).

`harmless` ones are also run without the wall, where they must get through: that shows the attempt itself is sound.

`PLANTS` try the way over PATH: programs by names that Quintet itself runs, outside of any wall, put where PATH leads
first. Each writes into OUT.
"""

from __future__ import annotations

from typing import NamedTuple


class Escape(NamedTuple):
    name: str
    script: str
    harmless: bool = False
    network: bool = False  # also to be tried with the network on


ESCAPES = [
    # --- files
    Escape("write outside", 'echo x > "$OUT/new" && echo ESCAPED', True),
    Escape("overwrite outside", 'echo x >> "$OUT/canary" && echo ESCAPED', True),
    Escape("through a symlink", 'ln -s "$OUT" way && echo x > way/new && echo ESCAPED', True),
    Escape("through a chain of symlinks", 'ln -s "$OUT" a && ln -s a b && echo x > b/new && echo ESCAPED', True),
    Escape("through /proc/self/root", 'echo x > "/proc/self/root$OUT/new" && echo ESCAPED', True),
    Escape("through /proc/1/root", 'echo x > "/proc/1/root$OUT/new" && echo ESCAPED'),
    Escape("through /proc/self/cwd/..", "echo x > /proc/self/cwd/../outside/new && echo ESCAPED", True),
    Escape("hard link to outside", 'ln "$OUT/canary" here && echo x >> here && echo ESCAPED', True),
    Escape("rename out of the workspace", 'echo x > y && mv y "$OUT/y" && echo ESCAPED', True),
    Escape("rename into the workspace", 'mv "$OUT/canary" taken && echo ESCAPED', True),
    Escape("remove outside", 'rm -f "$OUT/canary" && echo ESCAPED', True),
    Escape("modes outside", 'chmod 777 "$OUT/canary" && echo ESCAPED', True),
    Escape("times outside", 'touch -d 2001-01-01 "$OUT/canary" && echo ESCAPED', True),
    Escape(
        "attributes outside",
        "\"$PY\" -c \"import os; os.setxattr(os.environ['OUT']+'/canary', 'user.x', b'1')\" && echo ESCAPED",
        True,
    ),
    Escape("write to /etc", "echo x > /etc/quintet-escape && echo ESCAPED"),
    Escape("write to /usr", "echo x > /usr/bin/quintet-escape && echo ESCAPED"),
    Escape("write to the user's directory", 'echo x > "$USERDIR/new" && echo ESCAPED', True),
    Escape(
        "a new key for ssh", 'mkdir -p "$USERDIR/.ssh"; echo x > "$USERDIR/.ssh/authorized_keys" && echo ESCAPED', True
    ),
    Escape("read a key of ssh", 'grep -q canary "$USERDIR/.ssh/id_ed25519" && echo ESCAPED', True),
    Escape("read .netrc", 'grep -q canary "$USERDIR/.netrc" && echo ESCAPED', True),
    Escape("read a forge's token", 'grep -rq canary "$USERDIR/.config/gh" && echo ESCAPED', True),
    Escape("read Quintet's home", 'grep -rq canary "$QHOME" && echo ESCAPED', True),
    Escape("umask of the mask: rename the hidden directory", 'mv "$USERDIR/.ssh" "$USERDIR/x" && echo ESCAPED', True),
    # --- protected names
    Escape("a hook", "echo x > .git/hooks/pre-commit && echo ESCAPED", True),
    Escape("git's configuration", "git config core.fsmonitor ./x && echo ESCAPED", True),
    Escape("git's configuration by hand", "echo x >> .git/config && echo ESCAPED", True),
    Escape("rename the hooks", "mv .git/hooks .git/h2 && mkdir .git/hooks && echo ESCAPED", True),
    Escape("rename .git", "mv .git g2 && cp -r g2 .git && echo x >> .git/config && echo ESCAPED", True),
    Escape("remove .git", "rm -rf .git; mkdir .git && echo ESCAPED", True),
    Escape("hard link to git's configuration", "ln .git/config c && echo x >> c && echo ESCAPED", True),
    Escape(
        "exchange of two names",
        '"$PY" -c "'
        "import ctypes,os,sys; os.makedirs('new/hooks'); "
        "sys.exit(ctypes.CDLL(None).renameat2(-100, b'new', -100, b'.git', 2) != 0)"
        '" && echo ESCAPED',
        True,
    ),
    Escape("an absent name as a directory", "mkdir .claude && echo x > .claude/settings.json && echo ESCAPED", True),
    Escape("an absent name as a file", "echo x > .mcp.json && echo ESCAPED", True),
    Escape(
        "an absent name as a link",
        "rmdir .envrc; ln -s ../outside/canary .envrc && [ -L .envrc ] && echo ESCAPED",
        True,
    ),
    Escape("an absent name by renaming", "mkdir x && mv -T x .quintet && echo ESCAPED", True),
    Escape(
        "an absent file in an absent directory", "mkdir -p .vscode; echo x > .vscode/tasks.json && echo ESCAPED", True
    ),
    Escape("remove the cover", "rmdir .codex && mkdir .codex && echo x > .codex/config.toml && echo ESCAPED"),
    # --- namespaces, mounts, devices
    Escape("mount", "mkdir -p m && mount -t tmpfs none m && echo ESCAPED"),
    Escape("bind over a mask", 'mkdir -p m && mount --bind m "$QHOME" && echo ESCAPED'),
    Escape("umount of a mask", 'umount "$USERDIR/.ssh" && echo ESCAPED'),
    Escape("umount -l of a mask", 'umount -l "$QHOME" && echo ESCAPED'),
    Escape("remount as writable", "mount -o remount,rw / && echo ESCAPED"),
    Escape("unshare -Ur", "unshare -Ur true && echo ESCAPED"),
    Escape("unshare -m", "unshare -m true && echo ESCAPED"),
    Escape(
        "clone with a new user namespace",
        '"$PY" -c "'
        "import ctypes,sys; sys.exit(ctypes.CDLL(None).syscall(56, 0x10000011, 0, 0, 0, 0) < 0)"
        '" && echo ESCAPED',
    ),
    Escape("bubblewrap within", "bwrap --unshare-user --bind / / true && echo ESCAPED"),
    Escape("setns of pid 1", "nsenter -t 1 -m true && echo ESCAPED"),
    Escape(
        "chroot", "mkdir -p r && chroot r /bin/true; [ $? != 125 ] && [ $? != 127 ] && chroot / true && echo ESCAPED"
    ),
    Escape("pivot_root", "mkdir -p p/q && pivot_root p p/q && echo ESCAPED"),
    Escape("mknod of a disk", "mknod disk b 254 0 && head -c1 disk && echo ESCAPED"),
    Escape("mknod of /dev/mem", "mknod mem c 1 1 && head -c1 mem && echo ESCAPED"),
    Escape("devices there", "ls /dev | grep -qE '^(vd|sd|nvme|mem|kmsg|fuse|kvm|loop|net)' && echo ESCAPED"),
    Escape(
        "a setuid program",
        '[ "$(cat /proc/self/status | grep CapEff)" = "CapEff:	0000000000000000" ] || echo ESCAPED'
        "; cp /bin/sh s; chmod 4755 s; ./s -p -c 'grep -q \"NoNewPrivs:.0\" /proc/self/status' && echo ESCAPED",
    ),
    Escape("capabilities back", "setpriv --ambient-caps +sys_admin --inh-caps +sys_admin true && echo ESCAPED"),
    # --- the kernel
    Escape("core_pattern", "echo '|/bin/x' > /proc/sys/kernel/core_pattern && echo ESCAPED"),
    Escape("a sysctl", "echo 1 > /proc/sys/vm/drop_caches && echo ESCAPED"),
    Escape("sysrq", "echo h > /proc/sysrq-trigger && echo ESCAPED"),
    Escape("hostname", "hostname quintet-escaped && echo ESCAPED"),
    Escape(
        "cgroup files",
        "d=$(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -1); "
        '[ -n "$d" ] && echo $$ > "$d" && echo ESCAPED; mkdir /sys/fs/cgroup/x 2>/dev/null && echo ESCAPED',
    ),
    Escape(
        "a kernel module",
        "\"$PY\" -c \"import ctypes,sys; sys.exit(ctypes.CDLL(None).syscall(175, b'', 0, b'') == 0)\" || echo ESCAPED",
    ),
    Escape(
        "bpf",
        '"$PY" -c "import ctypes,sys; sys.exit(ctypes.CDLL(None).syscall(321, 0, b\'\\0\'*64, 64) < 0)"'
        " && echo ESCAPED",
    ),
    Escape(
        "io_uring",
        '"$PY" -c "import ctypes,sys; sys.exit(ctypes.CDLL(None).syscall(425, 4, b\'\\0\'*120) < 0)" && echo ESCAPED',
    ),
    Escape(
        "the kernel's keys",
        '"$PY" -c "import ctypes,sys; '
        "sys.exit(ctypes.CDLL(None).syscall(248, b'user', b'quintet', b'x', 1, -3) < 0)\" && echo ESCAPED",
        False,
        True,
    ),
    Escape("the clock", "date -s 2001-01-01 && echo ESCAPED"),
    # --- processes
    Escape(
        "see a process outside",
        '[ "$(tr "\\0" "\\n" < /proc/$VICTIM/environ | grep -c canary)" = 1 ] && echo ESCAPED',
        True,
    ),
    Escape(
        "any environ with the secret",
        'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" | grep -q "^VICTIM_SECRET=" && echo ESCAPED',
        True,
    ),
    Escape("kill a process outside", 'kill -0 "$VICTIM" && echo ESCAPED', True, True),
    Escape("kill everything", "trap '' TERM; kill -TERM -1; true"),
    Escape(
        "ptrace of a process outside",
        '"$PY" -c "import ctypes,os,sys; '
        "sys.exit(ctypes.CDLL(None).ptrace(0x4206, int(os.environ['VICTIM']), 0, 0) != 0)\" && echo ESCAPED",
    ),
    Escape("memory of a process outside", 'head -c1 "/proc/$VICTIM/mem" && echo ESCAPED'),
    Escape(
        "typing into the terminal",
        "\"$PY\" -c \"import fcntl; fcntl.ioctl(open('/dev/tty'), 0x5412, b'x')\" && echo ESCAPED",
    ),
    Escape(
        "TIOCSTI into a terminal of its own",
        '"$PY" -c "import fcntl,os,pty; m,s=pty.openpty(); fcntl.ioctl(s, 0x5412, b\'x\')" && echo ESCAPED',
    ),
    # --- network and sockets
    Escape("loopback TCP", 'exec 3<>"/dev/tcp/127.0.0.1/$PORT" && echo ESCAPED', True),
    Escape("IPv6 loopback", 'exec 3<>"/dev/tcp/::1/$PORT" && echo ESCAPED'),
    Escape(
        "an address of the machine", 'for a in $(hostname -I); do exec 3<>"/dev/tcp/$a/$PORT" && echo ESCAPED; done'
    ),
    Escape("DNS", "getent ahosts example.org && echo ESCAPED; true"),
    Escape(
        "UDP",
        "\"$PY\" -c \"import socket; s=socket.socket(2,2); s.connect(('198.51.100.1', 53)); s.send(b'x')\""
        " && echo ESCAPED",
    ),
    Escape("an interface by netlink", "ip link add quintet0 type dummy && echo ESCAPED"),
    Escape(
        "interfaces beside loopback",
        '[ "$(ls /proc/self/net/dev_snmp6 2>/dev/null | grep -vc "^lo$")" -gt 0 ] && '
        "echo ESCAPED; [ $(tail -n +3 /proc/net/dev | grep -vc ' *lo:') -gt 0 ] && echo ESCAPED",
    ),
    Escape("a raw packet", '"$PY" -c "import socket; socket.socket(17, 3, 768)" && echo ESCAPED', False, True),
    Escape("vsock", '"$PY" -c "import socket; socket.socket(40, 1)" && echo ESCAPED', False, True),
    Escape(
        "every socket with a path",
        'for s in $SOCKETS; do "$PY" -c "'
        "import socket,sys; socket.socket(1,1).connect(sys.argv[1])"
        '" "$s" && echo ESCAPED; done',
        True,
        True,
    ),
    Escape(
        "an abstract socket",
        '"$PY" -c "import os,socket; socket.socket(1,1).connect(chr(0)+os.environ[\'ABSTRACT\'])" && echo ESCAPED',
        True,
        True,
    ),
    Escape("shared memory", "ls /dev/shm | grep -q quintet-stage && echo ESCAPED", True),
    Escape("System V memory", "ipcs -m | grep -q 0x && echo ESCAPED; true"),
    Escape(
        "the user's runtime directory",
        'ls -A "${XDG_RUNTIME_DIR:-/run/user/0}" 2>/dev/null | grep -q . && echo ESCAPED; '
        "ls -A /run | grep -q . && echo ESCAPED",
    ),
]


class Plant(NamedTuple):
    name: str
    script: str
    path: str  # what PATH begins with: `{ws}` is the workspace, `{out}` a directory outside
    link: str = ""  # made outside, before: leads to where the script plants


# Whatever Quintet, or one of the programs it runs for itself, could be looking for.
PROGRAMS = "git rg bwrap bash sh env true python3 secret-tool less ssh cat ls"
_PLANT = f"""
for name in {PROGRAMS}; do
  printf '#!/bin/sh\\necho "%s" >> "%s/planted"\\n' "$name" "$OUT" > "$D/$name" && chmod 755 "$D/$name"
done
[ -x "$D/git" ] && echo PLANTED
"""

PLANTS = [
    Plant("a directory of the workspace", f'D="$WS/bin"; mkdir -p "$D"; {_PLANT}', "{ws}/bin"),
    Plant("an active virtual environment", f'D="$WS/.venv/bin"; mkdir -p "$D"; {_PLANT}', "{ws}/.venv/bin"),
    Plant("programs of a package manager", f'D="$WS/node_modules/.bin"; mkdir -p "$D"; {_PLANT}', "node_modules/.bin"),
    Plant("the working directory", f'D="$WS"; {_PLANT}', "."),
    Plant("an empty entry", f'D="$WS"; {_PLANT}', ""),
    Plant("a directory that the command links", f'mkdir -p x; ln -s x bin; D="$WS/bin"; {_PLANT}', "{ws}/bin"),
    Plant("a link outside to a directory", f'D="$WS/bin"; mkdir -p "$D"; {_PLANT}', "{out}/tools", "directory"),
    Plant("links outside to programs", f'D="$WS/bin"; mkdir -p "$D"; {_PLANT}', "{out}/tools", "programs"),
    Plant("links to links outside to programs", f'D="$WS/bin"; mkdir -p "$D"; {_PLANT}', "{out}/tools", "twice"),
    Plant(
        "PATH of the command itself",
        f'D="$WS/bin"; mkdir -p "$D"; {_PLANT}; export PATH="$D:$PATH"; hash -r; echo "PATH=$PATH" > .env',
        "{ws}/bin",
    ),
]
