"""Taking stdin and stdout away from everyone else in the process. Knows descriptors, no frames.

After `claim`, descriptors 0 and 1 are harmless: prints, warnings, C libraries and children can neither write
into the protocol nor eat its input. The real ones live on under private numbers that no child inherits.
"""

import fcntl
import os
import stat

from quintet.rpc.descriptor import BlockingSink, BlockingSource, PolledSink, PolledSource, sink_of, source_of


class Stdio:
    """`stderr` is the real one, where that is stdout's stream and had to be taken away as well."""

    def __init__(
        self, source: PolledSource | BlockingSource, sink: PolledSink | BlockingSink, stderr: int | None = None
    ) -> None:
        self.source, self.sink = source, sink
        self._stderr = stderr

    def serves(self) -> None:
        """Frames are about to be written: from here on stderr says nothing where it would be among them."""
        if self._stderr is not None:
            os.close(self._stderr)
            self._stderr = None

    def failed(self) -> None:
        """It came to nothing: whoever reads both streams as one shall read why, too. Nothing once it serves."""
        if self._stderr is not None:
            os.dup2(self._stderr, 2)
            self.serves()


def claim(stray: int | None = None) -> Stdio:
    """Call once, before anything can print. `stray` (a log, say) gets what others print; None drops it."""
    _fill_gaps()
    shared = _same_stream(1, 2)
    # 3 at least: a private copy must not land on a number that others think is theirs.
    private_in = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    private_out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    private_err = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 3) if shared else None
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    target = null if stray is None else stray
    os.dup2(null, 0)
    os.dup2(target, 1)
    if shared:
        os.dup2(target, 2)  # `2>&1` makes stderr the protocol's stream as well
    os.close(null)
    return Stdio(source_of(private_in), sink_of(private_out), private_err)


def _fill_gaps() -> None:
    """A parent may start us with 0, 1 or 2 closed; the next file opened would silently become one of them."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)


def _same_stream(one: int, other: int) -> bool:
    """Whether both lead to one pipe, socket or file. A terminal does not count: a person reads there."""
    a, b = os.fstat(one), os.fstat(other)
    return not stat.S_ISCHR(a.st_mode) and (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
