"""HttpProvider: a model behind HTTP. One request, its attempts, its watchdogs; the words are the dialect's.

An attempt is repeated only while nothing of the answer has been passed on: what people have seen is never said twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from quintet.domain.model import Chunk, ModelRequest, RetryChunk, UsageChunk
from quintet.providers.attempts import Failure, Waits, failed, of_status
from quintet.providers.dialect import BrokenStream, Dialect
from quintet.providers.settings import ModelSettings, ProviderSettings
from quintet.providers.sse import EventParser, LineTooLong

if TYPE_CHECKING:
    import httpx2

ERROR_BODY = 65_536
WHOLE_BODY = 16 * 1024 * 1024
CONNECT_S = 20.0


class _AttemptFailed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


class HttpProvider:
    """Plays domain.ports.Provider."""

    def __init__(
        self, name: str, dialect: Dialect, settings: ProviderSettings, key: str, models: dict[str, ModelSettings]
    ) -> None:
        self._name = name
        self._dialect = dialect
        self._settings = settings
        self._key = key
        self._models = models
        self._client: httpx2.AsyncClient | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        waits = Waits(self._settings.max_retries)
        body = msgspec.json.encode(self._dialect.body(request, self._models.get(request.model, ModelSettings())))
        while True:
            spoke = False
            try:
                async for chunk in self._attempt(body, request):
                    spoke = spoke or not isinstance(chunk, UsageChunk)
                    yield chunk
                return
            except _AttemptFailed as error:
                failure = error.failure
            wait_s = None if spoke else waits.next(failure)
            if wait_s is None:
                raise failed(self._name, failure, waits.attempt)
            yield RetryChunk(waits.attempt, round(wait_s, 3), failure.words)
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _attempt(self, body: bytes, request: ModelRequest) -> AsyncIterator[Chunk]:
        pieces = self._pieces(body)
        events, parser = EventParser(), self._dialect.parser(request)
        try:
            async for piece in pieces:
                for name, data in events.feed(piece):
                    for chunk in parser.event(name, data):
                        yield chunk
            for name, data in events.close():
                for chunk in parser.event(name, data):
                    yield chunk
            for chunk in parser.end():
                yield chunk
        except LineTooLong as error:
            raise _AttemptFailed(Failure("garbled", f"it sent {error}", again=False)) from None
        except BrokenStream as error:
            raise _AttemptFailed(Failure("garbled", f"it sent {error}", again=True)) from None
        finally:
            await pieces.aclose()
        if not parser.finished:
            raise _AttemptFailed(Failure("broken", "its answer ended without an end", again=True))

    async def _pieces(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The answer's bytes. The first has to come within one limit, each further one within another."""
        import httpx2

        response: httpx2.Response | None = None
        try:
            deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
            async with asyncio.timeout_at(deadline):
                response = await self._send(body)
                stream = await _stream(response)
                piece = await anext(stream, b"")
            while piece:
                yield piece
                async with asyncio.timeout(self._settings.idle_timeout_s):
                    piece = await anext(stream, b"")
        except TimeoutError:
            silent = "it went silent in the middle" if response is not None else "it did not answer in time"
            raise _AttemptFailed(Failure("timeout", silent, again=True)) from None
        except httpx2.UnsupportedProtocol as error:
            raise _AttemptFailed(Failure("address", f"its address is wrong ({error})", again=False)) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _AttemptFailed(
                Failure("unreachable", f"it cannot be reached ({_words(error)})", again=True)
            ) from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _AttemptFailed(Failure("broken", f"the connection broke ({_words(error)})", again=True)) from None
        finally:
            if response is not None:
                await response.aclose()

    async def _send(self, body: bytes) -> httpx2.Response:
        import httpx2

        if self._client is None:
            # Time limits are ours: one for the first byte, one for each further; only connecting has its own.
            self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=CONNECT_S), follow_redirects=False)
        headers = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "quintet"}
        headers |= self._dialect.headers(self._key) | self._settings.headers
        url = self._settings.base_url.rstrip("/") + self._dialect.path
        return await self._client.send(
            self._client.build_request("POST", url, content=body, headers=headers), stream=True
        )


async def _stream(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The answer as a stream of events; anything else is a failure, whatever its status says."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code == 200 and kind not in ("text/html", "application/json"):
        return response.aiter_bytes()
    said = b""
    async for piece in response.aiter_bytes():
        said += piece
        if len(said) > WHOLE_BODY:
            break
    if response.status_code == 200 and kind == "application/json" and len(said) <= WHOLE_BODY:
        return _one_event(said)
    if response.status_code == 200:
        raise _AttemptFailed(Failure("garbled", f"it answered with {kind} instead of a stream of events", again=True))
    if 300 <= response.status_code < 400:
        words = f"it redirects to another address (status {response.status_code}), and a key is not sent there"
        raise _AttemptFailed(Failure("address", words, again=False))
    text = said[:ERROR_BODY].decode("utf-8", "replace")
    raise _AttemptFailed(of_status(response.status_code, response.headers, text))


async def _one_event(body: bytes) -> AsyncIterator[bytes]:
    """Some servers do not stream whatever they are asked, and answer all at once."""
    yield b"data: " + b" ".join(body.split(b"\n")) + b"\n\n"


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
