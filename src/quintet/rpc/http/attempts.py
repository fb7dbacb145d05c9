"""Failed attempts: who guesses wrong too often is told to wait, alone and all together, also by the next server.

Pure but for the two functions that remember; what is remembered are addresses and times.
"""

from __future__ import annotations

from collections.abc import Callable

WINDOW_S = 60
PER_PEER = 10
TOGETHER = 100
PEERS_KEPT = 1_000
Remembered = dict[str, list[float]]  # peer -> when it failed, in seconds of the wall clock


class Attempts:
    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        load: Callable[[], Remembered] = dict,
        save: Callable[[Remembered], None] = lambda remembered: None,
        per_peer: int = PER_PEER,
        together: int = TOGETHER,
    ) -> None:
        self._now_s, self._save = now_s, save
        self._per_peer, self._together = per_peer, together
        self._failed = load()

    def wait_s(self, peer: str) -> int:
        """How long this peer has to wait before another guess is looked at; 0: not at all."""
        now = self._forget()
        own = self._failed.get(peer, [])
        everybody = sorted(at for times in self._failed.values() for at in times)
        until = 0.0
        if len(own) >= self._per_peer:
            until = own[-self._per_peer] + WINDOW_S
        if len(everybody) >= self._together:
            until = max(until, everybody[-self._together] + WINDOW_S)
        return max(0, int(until - now) + 1) if until > now else 0

    def failed(self, peer: str) -> None:
        now = self._forget()
        times = self._failed.setdefault(peer, [])
        times.append(now)
        del times[: -self._per_peer]
        while len(self._failed) > PEERS_KEPT:
            del self._failed[min(self._failed, key=lambda p: self._failed[p][-1])]
        self._save(self._failed)

    def _forget(self) -> float:
        now = self._now_s()
        # A clock that was set back must not keep anybody out for longer than the window.
        keep = {p: [at for at in times if now - WINDOW_S < at <= now] for p, times in self._failed.items()}
        self._failed = {p: times for p, times in keep.items() if times}
        return now
