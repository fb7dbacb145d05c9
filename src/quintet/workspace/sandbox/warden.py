"""Warden: the parent of a command inside the wall. Everything inside dies with the command, so what it had left running
must be counted in there, before the end: the warden writes that number to its stdin, which is a pipe to us. Before, it
writes a word there: without that the wall was never finished, and nothing of the command has run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

# It outlives a SIGTERM so that the command has its moment; a handler, unlike ignoring, is not inherited. What the shell
# itself would say about its child's death is not the command's output. A process that is dead has no exe. It goes only
# when nobody else is left, since the wall's furniture is put away after it. Who was there before the command, to hand
# its connections to the proxy, is not counted.
_SCRIPT = """\
count() {
  left=0
  for process in /proc/[0-9]*; do
    case $process in /proc/1|/proc/$$) continue;; esac
    [ -e "$process/exe" ] && left=$((left + 1))
  done
}
trap : TERM HUP INT
exec 3>&2 2>/dev/null
count
before=$left
echo begun >&0
(exec "$@" </dev/null 2>&3 3>&-)
code=$?
count
[ $left -ge $before ] || before=$left
echo $((left - before)) >&0
rounds=0
while [ $left != 0 ] && [ $rounds -lt 1000 ]; do
  kill -KILL -1
  rounds=$((rounds + 1))
  count
done
exit $code
"""


def guarded(argv: Sequence[str]) -> tuple[str, ...]:
    """The command as the warden's child. Only for the inside of a process namespace: the warden kills all it sees."""
    return ("/bin/sh", "-c", _SCRIPT, "sh", *argv)


class Report:
    """Our end of the warden's pipe. Never waits."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._words = b""

    def read(self) -> bool:
        """Take what is there; False when there will be no more."""
        try:
            data = os.read(self.pipe, 64)
        except BlockingIOError:
            return True
        self._words = (self._words + data)[:64]  # the command can reach this pipe too, and write what it likes
        return bool(data)

    @property
    def begun(self) -> bool:
        """Otherwise the wall has not been finished, and nothing of the command has run."""
        return b"\n" in self._words

    @property
    def left_behind(self) -> int:
        """0 also when the warden was ended before it could count."""
        words = self._words.split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
