"""Who asks: told from what a request proves, never from what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping

from quintet.rpc.http.attempts import Attempts
from quintet.rpc.http.call import Caller
from quintet.rpc.http.credential import Credential, Shown, in_header
from quintet.rpc.http.faults import NotAuthorised, TooMany
from quintet.rpc.http.guards import Peer
from quintet.rpc.http.routes import HOLDER, PUBLIC, Route

NOBODY = "-"
_WAYS = 'Basic realm="quintet", Bearer'


class Callers:
    """`credential` None: nobody has to prove anything (`--no-auth`)."""

    def __init__(self, credential: Credential | None, attempts: Attempts) -> None:
        self._credential, self._attempts = credential, attempts

    def of(self, route: Route | None, in_path: Shown | None, headers: Mapping[str, str], peer: Peer) -> Caller:
        """Raises where a credential is needed and none, or a wrong one, was shown. What is not there needs one too:
        nobody should learn which paths there are."""
        if route is not None and route.who == PUBLIC:
            return Caller(NOBODY, "none", peer.address, peer.local)
        if self._credential is None:
            return Caller("anyone", "none", peer.address, peer.local)
        shown = [s for s in (in_path, in_header(headers)) if s is not None]
        if not shown:
            raise NotAuthorised("This needs the server's token.", www_authenticate=_WAYS)
        # The token, which no number of guesses finds, is looked at always: nobody can lock its holder out. A password
        # that a person chose is not looked at while somebody guesses.
        for one in shown:
            if self._credential.accepts(one, guessable=False):
                return Caller(HOLDER, one.proof, peer.address, peer.local)
        wait_s = self._attempts.wait_s(peer.address)
        for one in shown:
            if self._credential.accepts(one, guessable=not wait_s):
                return Caller(HOLDER, one.proof, peer.address, peer.local)
        if wait_s:
            raise TooMany("Too many wrong credentials; wait before the next one.", retry_after=str(wait_s))
        self._attempts.failed(peer.address)
        raise NotAuthorised("This is not the server's token.", www_authenticate=_WAYS)
