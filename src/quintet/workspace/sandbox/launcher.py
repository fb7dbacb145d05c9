"""Runs inside bubblewrap, just before the command: limits, Landlock, a filter of system calls, then the command itself.

Given to a bare interpreter as text (`-I -S -c`), so it imports nothing of Quintet. What it cannot do ends it: a command
behind half a wall is not run. Nor is one whose scripts are not what was approved: this is the last moment to look.
Words: `write=PATH` `limit=NAME:SOFT` `unset=NAME` `same=SHA256:PATH` `tell` `--` command.
"""

import ctypes
import os
import struct
import sys

FAILED = 125
CHANGED = 124
LONGEST_SCRIPT = 16 * 1024 * 1024
C = ctypes.CDLL(None, use_errno=True)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2

# Landlock's rights over files, as bits.
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
WRITE_FILE = 1 << 1
FILES_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
SCOPES = 0b11  # abstract Unix sockets and signals beyond the wall, from ABI 6 on

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
NEW_USER = 0x10000000
FAMILIES = (1, 2, 10, 16)  # Unix, IPv4, IPv6, netlink; others (vsock above all) know no network namespace
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into a terminal

# name of the machine: (audit number, socket, ioctl, clone, {refused calls})
# Refused: keys of the kernel (add_key, request_key, keyctl), namespaces (unshare, setns), mounting by old and new
# calls, bpf, perf_event_open, userfaultfd, and io_uring, which makes sockets past this filter.
NEW_MOUNTS = (428, 429, 430, 431, 432, 433, 442)
MACHINES = {
    "x86_64": (0xC000003E, 41, 16, 56, (248, 249, 250, 272, 308, 165, 166, 155, 321, 298, 323, *NEW_MOUNTS)),
    "aarch64": (0xC00000B7, 198, 29, 220, (217, 218, 219, 97, 268, 40, 39, 41, 280, 241, 282, *NEW_MOUNTS)),
}
NICE = 10
CLONE3, IO_URING_SETUP = 435, 425  # answered as by a kernel without them: libraries then take the older way


def give_way() -> None:
    """Behind whoever else works on this machine, Quintet itself first: a command that takes every core must not take
    that of who watches it. Linux shares cores among groups of processes, each of one login, before it looks at them
    one by one; bubblewrap has begun such a group for the command."""
    os.nice(NICE)
    try:
        group_gives_way()
    except BlockingIOError:
        keep_asking()
    except OSError:
        return  # a kernel without such groups: being nice is all there is


def group_gives_way() -> None:
    with open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write(str(NICE))


def keep_asking() -> None:
    """Linux hears one such wish in a tenth of a second from all of a machine. The command does not wait for its turn: a
    grandchild does, which is none of the command's children and has nothing of it open."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        if os.fork() == 0:
            os.closerange(0, 1024)
            import time

            for _ in range(200):
                time.sleep(0.05)
                try:
                    group_gives_way()
                    break
                except BlockingIOError:
                    continue
    finally:
        os._exit(0)


def main(words: list[str]) -> None:
    try:
        end = words.index("--")
        given, command = [word.partition("=")[::2] for word in words[:end]], words[end + 1 :]
        for name, value in given:
            if name == "limit":
                limit(*value.split(":"))
            elif name == "unset":
                os.environ.pop(value, None)
        give_way()
        must(C.prctl(NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        abi = landlock([value for name, value in given if name == "write"])
        filtered = refuse_calls()
        if ("tell", "") in given:
            os.write(1, f"landlock={abi} filter={int(filtered)}\n".encode())
        import _signal  # type: ignore[import-not-found]  # `signal` itself takes a millisecond to import

        # Python ignores SIGPIPE and SIGXFSZ, and whoever started Quintet (nohup, a shell in the background) SIGHUP,
        # SIGINT, SIGQUIT or SIGTERM: the command must not inherit that.
        for number in (1, 2, 3, 13, 15, 25):
            _signal.signal(number, _signal.SIG_DFL)
        for name, value in given:
            if name == "same" and not same(*value.split(":", 1)):
                os.write(2, f"quintet: {value.partition(':')[2]} was changed\n".encode(errors="surrogateescape"))
                os._exit(CHANGED)
    except Exception as error:
        os.write(2, f"quintet: the sandbox could not be completed: {error}\n".encode())
        os._exit(FAILED)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def must(answer: int, what: str) -> int:
    if answer < 0:
        raise OSError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return answer


def limit(name: str, soft: str) -> None:
    import resource

    number = getattr(resource, f"RLIMIT_{name}")
    wanted, hard = int(soft), resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(number, (wanted, wanted))


def same(digest: str, path: str) -> bool:
    """Whether this file holds what it held. Never waits for a pipe, and follows no link."""
    import hashlib

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            return hashlib.sha256(file.read(LONGEST_SCRIPT + 1)).hexdigest() == digest
    except OSError:
        return False


def landlock(writable: list[str]) -> int:
    """Reading everywhere, writing only beneath these, nothing to say to sockets and processes outside."""
    abi = int(C.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if abi < 1:
        return 0  # a kernel without it; the mounts hold alone
    files = FILES_BY_ABI[min(abi, 5)]
    rules = struct.pack("QQQ", files, 0, SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = must(C.syscall(CREATE_RULESET, rules, ctypes.c_size_t(size), 0), "landlock")
    reading = EXECUTE | READ_FILE | READ_DIR
    allowed = [("/", reading), ("/proc", reading | WRITE_FILE), *((place, files) for place in writable)]
    for place, rights in allowed:
        try:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # what is not there needs no right
        rule = struct.pack("=Qi", rights & files, handle)
        must(C.syscall(ADD_RULE, ruleset, 1, rule, 0), f"landlock {place}")
        os.close(handle)
    must(C.syscall(RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)
    return abi


def refuse_calls() -> bool:
    """The filter as a list of (code, if true, if false, value); see seccomp(2). Unknown machines go without."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        return False
    audit, socket, ioctl, clone, refused = machine
    load, equal, at_least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    error = 0x00050000
    lines = [(load, 0, 0, 4), (equal, 1, 0, audit), (answer, 0, 0, error | ENOSYS)]  # programs of another machine
    lines += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (answer, 0, 0, error | ENOSYS)]
    for number in refused:
        lines += [(equal, 0, 1, number), (answer, 0, 0, error | EPERM)]
    for number in (CLONE3, IO_URING_SETUP):
        lines += [(equal, 0, 1, number), (answer, 0, 0, error | ENOSYS)]
    # A call with one argument to look at: jump over its lines if it is another call.
    lines += [(equal, 0, 3, clone), (load, 0, 0, 16), (any_bit, 0, 1, NEW_USER), (answer, 0, 0, error | EPERM)]
    lines += [(load, 0, 0, 0), (equal, 0, 4, ioctl), (load, 0, 0, 24)]
    lines += [(equal, 1, 0, TERMINAL_INPUT[0]), (equal, 0, 1, TERMINAL_INPUT[1]), (answer, 0, 0, error | EPERM)]
    lines += [(load, 0, 0, 0), (equal, 0, len(FAMILIES) + 2, socket), (load, 0, 0, 16)]
    lines += [(equal, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)]
    lines += [(answer, 0, 0, error | EAFNOSUPPORT), (answer, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code))
    must(C.prctl(SET_SECCOMP, FILTER, program, 0, 0), "seccomp")
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
