"""HttpProvider: a model behind HTTP. One request, its attempts, its watchdogs; the words are the dialect's.

An attempt is repeated only while nothing of the answer has been passed on: what people have seen is never said twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import msgspec

from quintet.domain.model import Chunk, ModelInfo, ModelRequest, RetryChunk, UsageChunk
from quintet.providers.arrivals import Arrivals
from quintet.providers.attempts import Failure, Pace, Waits, failed, of_kind, of_status
from quintet.providers.dialect import BrokenStream, Dialect, Parser, ServerError
from quintet.providers.settings import ProviderSettings
from quintet.providers.sse import EventParser, TooLong

if TYPE_CHECKING:
    import httpx2

ERROR_BODY = 65_536
WHOLE_BODY = 16 * 1024 * 1024
CONNECT_S = 20.0
GOODBYE_S = 0.2  # how long a server may take to end what it has called finished, so that its connection can be kept
MASK = "[redacted]"


class _AttemptFailed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


class HttpProvider:
    """Plays domain.ports.Provider."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        settings: ProviderSettings,
        key: str,
        model: Callable[[str], ModelInfo],
        pace: Pace | None = None,
    ) -> None:
        self._name = name
        self._dialect = dialect
        self._settings = settings
        self._key = key
        self._model = model  # what is said and known of one of its models
        self._pace = pace or Pace()
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        waits = Waits(self._settings.max_retries, self._pace)
        body = msgspec.json.encode(self._dialect.body(request, self._model(request.model)))
        while True:
            spoke = False
            try:
                async with aclosing(self._attempt(body, request)) as attempt:
                    async for chunks in attempt:
                        spoke = spoke or any(type(chunk) is not UsageChunk for chunk in chunks)
                        for chunk in chunks:
                            yield chunk
                return
            except _AttemptFailed as error:
                failure = msgspec.structs.replace(error.failure, words=self._masked(error.failure.words))
            wait_s = None if spoke and not request.restarts else waits.next(failure)
            if wait_s is None:
                raise failed(self._name, failure, waits.attempt)
            most = self._settings.max_retries + 1
            yield RetryChunk(waits.attempt, round(wait_s, 3), failure.words, failure.reason, most, failure.status)
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _attempt(self, body: bytes, request: ModelRequest) -> AsyncGenerator[list[Chunk], None]:
        """One try: the answer's chunks, as many at once as arrived together."""
        events, parser = EventParser(), self._dialect.parser(request)
        broken: _AttemptFailed | None = None
        spoke = False
        async with aclosing(self._pieces(body)) as pieces:
            try:
                async for piece in pieces:
                    chunks, failure = _understood(parser, events, piece)
                    spoke = spoke or bool(chunks)
                    yield chunks
                    if failure is not None:
                        raise _AttemptFailed(failure)
                    if parser.finished:
                        await _goodbye(pieces)
                        break
            except _AttemptFailed as error:
                broken = error
        if broken is None and not parser.finished:
            chunks, failure = _understood(parser, events, b"")
            yield chunks
            ended = failure or Failure("broken", "its answer ended without an end", again=True)
            broken = _AttemptFailed(ended)
        if parser.whole or spoke:
            yield list(parser.end())  # what was held back was said all the same
        if broken is not None and not parser.whole:
            raise broken

    async def _pieces(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The answer's bytes. The first has to come within one limit, each further one within another."""
        client = await self._opened()
        import httpx2

        response: httpx2.Response | None = None
        arrivals: Arrivals | None = None
        silent = "it did not answer in time"
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                request = client.build_request("POST", self.url, content=body, headers=self.headers())
                response = await client.send(request, stream=True)
                arrivals = Arrivals(await _stream(response))
                piece = await arrivals.take()
            silent = "it went silent in the middle"
            while piece:
                yield piece
                async with asyncio.timeout(self._settings.idle_timeout_s):
                    piece = await arrivals.take()
        except TimeoutError:
            raise _AttemptFailed(Failure("timeout", silent, again=True)) from None
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise _AttemptFailed(Failure("address", f"its address is wrong ({_words(error)})", again=False)) from None
        except httpx2.LocalProtocolError:  # its words would quote the header
            words = "its key or one of its headers holds what no header may"
            raise _AttemptFailed(Failure("auth", words, again=False)) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            words = f"it cannot be reached ({_words(error)})"
            raise _AttemptFailed(Failure("unreachable", words, again=True)) from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _AttemptFailed(Failure("broken", f"the connection broke ({_words(error)})", again=True)) from None
        finally:
            if arrivals is not None:
                await arrivals.close()
            if response is not None:
                await response.aclose()

    async def _opened(self) -> httpx2.AsyncClient:
        """The client, made with the first request and beside the loop: its import and the list of authorities take a
        quarter of a second, in which other turns go on."""
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(_new_client, self._settings.base_url)
            return self._client

    @property
    def base_url(self) -> str:
        return self._settings.base_url

    @property
    def url(self) -> str:
        return self._settings.base_url.rstrip("/") + self._dialect.path

    def headers(self) -> dict[str, str]:
        """What goes along with each request; what a person wrote goes before what is usual."""
        headers = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
        headers |= {"user-agent": "quintet"} | self._dialect.headers(self._key)
        return headers | {name.lower(): value for name, value in self._settings.headers.items()}

    def _masked(self, words: str) -> str:
        """Some servers quote the key they refuse."""
        for secret in (self._key, *self._settings.headers.values()):
            if len(secret) >= 6:
                words = words.replace(secret, MASK)
        return words


def _new_client(url: str) -> httpx2.AsyncClient:
    import ssl

    import httpx2

    secure = url.lower().startswith("https:")
    return httpx2.AsyncClient(
        # Without TLS no authority is needed; one that trusts nobody is made at once.
        verify=True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        # Time limits are ours: one for the first byte, one for each further; only connecting has its own.
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        follow_redirects=False,  # a key goes to the address it was given for and to no other
    )


def _understood(parser: Parser, events: EventParser, piece: bytes) -> tuple[list[Chunk], Failure | None]:
    """The chunks of a piece of the stream (nothing: of its end), up to where the server failed."""
    chunks: list[Chunk] = []
    try:
        for name, data in events.feed(piece) if piece else events.close():
            chunks += parser.event(name, data)
            if parser.finished:
                break
    except TooLong as error:
        return chunks, Failure("garbled", f"it sent {error}", again=False)
    except ServerError as error:
        return chunks, of_kind(error.kind, error.said)
    except BrokenStream as error:
        return chunks, Failure("garbled", f"it sent {error}", again=True)
    except (AttributeError, TypeError, LookupError, ValueError):  # a field that is not what this wire says it is
        return chunks, Failure("garbled", "it sent an event of a wrong shape", again=True)
    return chunks, None


async def _goodbye(pieces: AsyncIterator[bytes]) -> None:
    """The answer is whole; let the server end it, so that the next request can use the same connection."""
    with suppress(TimeoutError, _AttemptFailed):
        async with asyncio.timeout(GOODBYE_S):
            async for _ in pieces:
                pass


async def _stream(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The answer as a stream of events; anything else is a failure, whatever its status says."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    good = response.status_code == 200
    if good and kind not in ("text/html", "application/json"):
        return response.aiter_bytes()
    said, limit = bytearray(), WHOLE_BODY if good and kind == "application/json" else ERROR_BODY
    async for piece in response.aiter_bytes():
        said += piece
        if len(said) > limit:
            break
    if good and kind == "application/json" and len(said) <= limit:
        return _one_event(bytes(said))
    if good:
        raise _AttemptFailed(Failure("garbled", f"it answered with {kind} instead of a stream of events", again=True))
    if 300 <= response.status_code < 400:
        words = f"it redirects to another address (status {response.status_code}), and a key is not sent there"
        raise _AttemptFailed(Failure("address", words, again=False))
    text = said[:ERROR_BODY].decode("utf-8", "replace")
    raise _AttemptFailed(of_status(response.status_code, response.headers, text))


async def _one_event(body: bytes) -> AsyncIterator[bytes]:
    """Some servers do not stream whatever they are asked, and answer all at once."""
    yield b"data: " + b" ".join(body.splitlines()) + b"\n\n"


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
