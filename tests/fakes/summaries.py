"""A model with a window, which knows a request for a summary when it sees one and can refuse what is too long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from quintet.domain.errors import ProviderFailed
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    TextChunk,
    Usage,
    UsageChunk,
)
from quintet.domain.ports import Provider
from quintet.engine.gauge import rough_request
from quintet.engine.retelling import INSTRUCTIONS
from tests.fakes.providers import Gate, Line, call

Answer = Sequence[Line]


def too_long() -> ProviderFailed:
    return ProviderFailed("The request is too long.", reason="too_long")


class Windowed:
    """Plays `steps` for the turn's own requests (then "over") and `summaries` for the others (then "in short").

    `limit` is what it really takes, in rough tokens; `window` what is known of it.
    """

    def __init__(
        self,
        *steps: Answer,
        summaries: Sequence[Answer] = (),
        window: int | None = 1_000,
        max_output: int | None = None,
        limit: int | None = None,
        endless: Callable[[int], Answer] | None = None,
    ) -> None:
        self._steps = steps
        self._summaries = summaries
        self._window = window
        self._max_output = max_output
        self._limit = limit
        self._endless = endless
        self.requests: list[ModelRequest] = []
        self.asked_to_summarise: list[ModelRequest] = []
        self.refused = 0

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference, self._window, self._max_output)

    def resolve(self, reference: str) -> tuple[str, Provider]:
        return reference or "fake/model", self

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        if self._limit is not None and rough_request(request) > self._limit:
            self.refused += 1
            raise too_long()
        for line in self._next(request):
            if isinstance(line, Gate):
                await line.pass_through()
            elif isinstance(line, BaseException):
                raise line
            else:
                yield line
        yield UsageChunk(Usage(input_tokens=rough_request(request), output_tokens=1))
        yield FinishChunk(Finish.STOP)

    def _next(self, request: ModelRequest) -> Answer:
        if request.instructions.startswith(INSTRUCTIONS):
            self.asked_to_summarise.append(request)
            return _at(self._summaries, len(self.asked_to_summarise), [TextChunk("in short")])
        self.requests.append(request)
        number = len(self.requests)
        return self._endless(number) if self._endless else _at(self._steps, number, [TextChunk("over")])


def _at(answers: Sequence[Answer], number: int, otherwise: Answer) -> Answer:
    return answers[number - 1] if number <= len(answers) else otherwise


def calls(count: int, name: str = "look") -> list[Answer]:
    """So many steps with one call each."""
    return [call(name, "{}", f"c{n}") for n in range(count)]
