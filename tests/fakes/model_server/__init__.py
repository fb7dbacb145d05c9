"""A model server for tests: real HTTP on loopback, three dialects, scripts and faults.

In a test:

    async with ModelServer("text: hello", faults=["429 times 2"]) as server:
        server.url                       # http://127.0.0.1:PORT/v1
        server.requests[0].body          # what the model was really sent

As a process of its own (prints one line of JSON, {"url": …}, and serves until its input ends or it is told to stop):

    python -m tests.fakes.model_server [--port 0] --script FILE | --mind MODULE:FUNCTION [--fault WORD]…
                                       [--record FILE] [--packed]

`--record` appends one line of JSON per request: path, headers, body.

Dialects are told apart by the end of the path, whatever stands before it: `/chat/completions`, `/responses`,
`/messages`.

Scripts are those of `quintet.providers.script`. The server remembers nothing: which step it plays is read off the
request, from how much the model has said already. A step that fails before it says anything answers with the status its
`error` names (`error: 529 overloaded`), later it reports the error inside the stream.

A mind stands in for a script where the answer depends on what the model is told: a function from `Told` (instructions,
conversation as items, results with their text and status) to one step in the language of scripts.

Faults go before scripts. One is `WORD`, `WORD=VALUE`, with ` times N` (the next N requests, else one) and ` at K` (from
the K-th request on, counted from 1). In a script file they are lines `fault: …` before the first step. The words:

    401 402 408 413 429 500 502 503 529    that status with a JSON error; any other number of three digits too
    429-seconds=N 429-date=N 429-absurd    429 with Retry-After: N seconds, the date in N seconds, thirty years
    429-nonsense                           429 with a Retry-After that means nothing
    echo                                   401 that quotes the key it was sent
    redirect=URL                           307 to another address
    refusal                                the model refuses, the way the dialect says that
    reset                                  the words of the step, half an HTTP chunk, then a TCP reset
    half-close                             the words of the step, half an HTTP chunk, then the sending side closes
    close                                  the words of the step, then a proper end of the HTTP body without any finish
    stall                                  the words of the step, then nothing; the connection stays open
    silent                                 nothing at all, not even a status
    mute                                   status and headers, then nothing
    drip=SECONDS                           the whole answer, sixteen bytes at a time, with that pause
    comments=SECONDS                       twenty SSE comments with that pause, then the answer
    html                                   200 with a page of HTML
    empty                                  200 with an empty stream
    garbage                                200 with a stream that is no JSON
    garbage-late                           the words of the step, then what is no JSON
    shapes                                 JSON in which every field has the wrong type
    split                                  the whole answer, every byte an HTTP chunk of its own
    long-line                              a text delta of 10 MiB
    endless-line                           a line of 17 MiB
    bad-json                               a call of the first tool offered, with input that is no JSON
    same-ids                               two calls of the first tool offered, under one id
    odd-finish                             the words of the step, then a finish reason nobody knows
    no-usage                               the whole answer without any usage
    stay                                   the whole answer, then the connection stays open
    break-late                             the whole answer without its last event, then a TCP reset
    whole                                  the answer as one JSON object instead of a stream (chat only)
"""

from tests.fakes.model_server.server import ModelServer, Request

__all__ = ["ModelServer", "Request"]
