"""Every kind of event a KNP stream can carry: what its data is, what causes it and how long it is kept. A table.

Filters are checked against it and the documentation is made from it.
"""

from __future__ import annotations

import msgspec

from quintet.domain.errors import Invalid

DURABLE, EPHEMERAL, SIGNAL, UNNUMBERED = "durable", "ephemeral", "signal", "not numbered"


class EventKind(msgspec.Struct, frozen=True):
    name: str
    data: str
    cause: str
    kept: str = DURABLE
    later: bool = False  # a name of the published list that nothing causes yet


EVENT_KINDS = (
    EventKind("connected", "{seq}", "a client subscribes; seq is the newest number there is", UNNUMBERED),
    EventKind("heartbeat", "{seq}", "nothing else was sent for 30 seconds", UNNUMBERED),
    EventKind("thread.created", "{thread}", "a thread is created or forked, through any protocol"),
    EventKind("thread.updated", "{thread}", "its title, metadata or settings change; the first title is a change"),
    EventKind("thread.deleted", "{tid}", "a thread is deleted, after the last event of its run"),
    EventKind("run.started", "{runId, tid}", "a run begins"),
    EventKind("run.finished", "{runId, tid, status, error?}", "a run has ended, in whatever way"),
    EventKind("thread.start", "{tid, agentId, namespace}", "a run begins"),
    EventKind("thread.stop", "{tid, agentId, state, error?}", "a run has ended; state is what the thread is then"),
    EventKind("model.call.start", "{tid, provider, modelId, agentId}", "a model is asked"),
    EventKind("model.call.end", "{tid, provider, modelId, finishReason, usage?}", "it has answered, or failed"),
    EventKind("text.start", "{tid, id}", "the first piece of a text", EPHEMERAL),
    EventKind("text.delta", "{tid, id, delta}", "a piece of a text", EPHEMERAL),
    EventKind("text.end", "{tid, id, text}", "the text is whole"),
    EventKind("reasoning.start", "{tid, id}", "the first piece of a thought", EPHEMERAL),
    EventKind("reasoning.delta", "{tid, id, delta}", "a piece of a thought", EPHEMERAL),
    EventKind("reasoning.end", "{tid, id, text}", "the thought is whole"),
    EventKind("tool.start", "{tid, callId, toolId}", "the model begins to write a call"),
    EventKind("tool.input.delta", "{tid, callId, delta}", "a piece of a call's input", EPHEMERAL),
    EventKind("tool.input.end", "{tid, callId, input}", "the call's input is whole"),
    EventKind("tool.result", "{tid, callId, result, error}", "a call has ended, was denied or cancelled"),
    EventKind(
        "approval.requested", "{id, tid, callId, tool{id, name}, input, details}", "somebody must agree to a call"
    ),
    EventKind("approval.resolved", "{id, decision, tid, reason?}", "somebody did, a rule, the time or the run's end"),
    EventKind("event.created", "{tid, event}", "something was added to a thread's history"),
    EventKind("event.updated", "{tid, event}", "a call in it has got its result"),
    EventKind("todo.updated", "{tid, todos}", "the model changed its list"),
    EventKind("namespace.created", "{namespace}", "a project was met for the first time, or a name used"),
    EventKind("run.result", "the final run object", "last frame of a streamed run, and of that alone", UNNUMBERED),
    EventKind("replay.gap", "{from, to}", "pieces between these numbers are gone; whole things are not", UNNUMBERED),
    EventKind("replay.reset", "{seq}", "the client's Last-Event-ID lies beyond everything there is", UNNUMBERED),
    EventKind("overflow", "{}", "the client was too slow and is cut off; it comes back with its number", UNNUMBERED),
    EventKind("file.watcher.updated", "{path, type}", "", SIGNAL, later=True),
    EventKind("vcs.branch.updated", "{branch}", "", SIGNAL, later=True),
    EventKind("lsp.updated", "{}", "", SIGNAL, later=True),
    EventKind("lsp.diagnostics", "{uri, diagnostics}", "", SIGNAL, later=True),
    EventKind("project.updated", "{project}", "", later=True),
    EventKind("pty.created", "{pty}", "", SIGNAL, later=True),
    EventKind("pty.updated", "{pty}", "", SIGNAL, later=True),
    EventKind("pty.exited", "{id, exitCode}", "", SIGNAL, later=True),
    EventKind("pty.deleted", "{id}", "", SIGNAL, later=True),
    EventKind("thread.diff.updated", "{tid, diffs}", "", later=True),
    EventKind("mcp.tools.changed", "{}", "", SIGNAL, later=True),
)
NAMES = frozenset(kind.name for kind in EVENT_KINDS)


def chosen(text: str, known: frozenset[str] = NAMES) -> frozenset[str]:
    """Kinds as a client lists them, `text.*` standing for every kind that begins so; empty: all of them."""
    found: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        prefix = word.removesuffix("*") if word.endswith(".*") else ""
        fitting = {name for name in known if (name.startswith(prefix) if prefix else name == word)}
        if not fitting:
            raise Invalid(f"There is no kind of event {word[:60]!r}.", next_step=f"Kinds: {', '.join(sorted(known))}.")
        found |= fitting
    return frozenset(found)
