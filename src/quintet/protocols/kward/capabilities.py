"""capabilities: what `initialize` tells. One function for each group; a family adds its own to GROUPS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quintet.domain.turn import Mode
from quintet.engine.calendar import UNITS, USUAL
from quintet.protocols.kward.attachments import LARGEST, MEDIA_TYPES
from quintet.protocols.kward.house import House

Group = dict[str, Any]
REPLAYED = 1000  # events of a turn that are kept for who asks again
NO = {"supported": False}


def transcript(house: House) -> Group:
    told = ("Images", "ToolCalls", "ToolResults", "CompactionSummaries", "ReasoningRestore")
    return {"format": "tauren-transcript-v1", "messagesNormalized": True} | {f"supports{name}": True for name in told}


def sessions(house: House) -> Group:
    names = "create resume list rename clone compact forkMessages fork export delete close transcript"
    return {
        "mode": "explicit",
        "persistence": "jsonl",
        "methods": [f"sessions/{name}" for name in names.split()],
        "list": {"supported": True, "source": "rpc", "ancestry": True, "treeFields": True},
        "fork": {
            "supported": True,
            "methods": ["sessions/forkMessages", "sessions/fork"],
            "entryIdFormat": "message-index",
            "selectedMessage": "excludedFromForkComposerTextReturned",
        },
        "compact": {
            "supported": True,
            "method": "sessions/compact",
            "notification": "session/event",
            "events": ["compactionStart", "compactionEnd"],
        },
        "import": NO,
        "tree": {"supported": False, "labels": False, "navigate": False, "summarize": False},
        "updates": {"supported": False, "notification": "session/updated"},
    }


CANCELLATION = {
    "behavior": "best-effort",
    "queuedTurns": "cancel-before-run",
    "runningTurns": "stop-emitting-events-when-possible",
}
REPLAY = {"behavior": "recent-in-memory", "persisted": False, "limit": REPLAYED}


def turns(house: House) -> Group:
    return {
        "mode": "async",
        "perSessionConcurrency": 1,
        "busyInput": {
            "steer": "native",
            "followUp": "queue",
            "defaultWhenIdle": "newTurn",
            "defaultWhenBusy": "steer",
        },
        "cancellation": CANCELLATION,
        "eventReplay": REPLAY,
    }


def events(house: House) -> Group:
    return {
        "notification": "turn/event",
        "assistantText": "assistantDelta",
        "reasoning": {"start": False, "delta": True, "end": False},
        "modelRetry": {"supported": True, "event": "modelRetry"},
        "steering": {"supported": True, "event": "turnSteered", "mode": "native"},
        "tools": {
            "call": True,
            "update": False,
            "result": True,
            "normalizedMetadata": True,
            "diffs": True,
            "changedFiles": False,  # of commands: what edits and writes change is told
        },
        "errors": True,
        "sessionUpdates": False,
    }


def attachments(house: House) -> Group:
    told = {
        "supported": True,
        "method": "turns/start",
        "encoding": "base64",
        "mimeTypes": list(MEDIA_TYPES),
        "maxBytes": LARGEST,
    }
    return {"input": told}


def runtime(house: House) -> Group:
    return {
        "supported": True,
        "methods": ["runtime/state", "runtime/stats"],
        "state": {"supported": True},
        "stats": {
            "messageCounts": True,
            "tokens": False,
            "cost": False,
            "contextUsage": True,
            "contextUsageEstimated": True,
        },
    }


def runtime_settings(house: House) -> Group:
    return {
        "supported": True,
        "methods": ["runtime/updateSetting", "runtime/reload"],
        "settings": ["defaultModel", "defaultThinkingLevel"],
    }


def models(house: House) -> Group:
    return {
        "supported": True,
        "methods": ["models/list", "models/current", "models/set", "reasoning/set", "openrouter/catalog"],
        "fields": ["provider", "id", "name", "reasoning", "reasoningEffort", "contextWindow"],
        "scopedModels": False,
    }


def auth(house: House) -> Group:
    names = (
        "status providers loginWithApiKey logoutProvider loginWithOAuth startOpenAILogin submitOpenAICode loginStatus"
    )
    return {
        "supported": True,
        "providerFormat": "tauren-auth-v1",
        "methods": [f"auth/{name}" for name in names.split()],
        "oauthProviders": ["openai"],
        "apiKeyProviders": ["openrouter"],
        "logout": True,
    }


def memory(house: House) -> Group:
    names = "status enable disable autoSummary/enable autoSummary/disable list add addCore forget promote inspect why"
    return {
        "supported": True,
        "optIn": True,
        "defaultEnabled": False,
        "autoSummaryDefaultEnabled": False,
        "promptInjection": "interactive",
        "storage": {"core": "json", "soft": "jsonl", "events": "jsonl"},
        "methods": [*(f"memory/{name}" for name in names.split()), "memory/summarize"],
    }


def logging(house: House) -> Group:
    telemetry = house.keeping.telemetry
    return {
        "supported": True,
        "defaultEnabled": False,
        "methods": ["logging/stats"],
        "stats": {"supported": True, "method": "logging/stats", "defaultRange": USUAL, "units": list(UNITS)},
        "usageCsv": NO,
        "config": "logging",
        "envPrefix": "KWARD_LOGGING",
        "directory": telemetry.log.directory,
        "format": "jsonl",
        "categories": list(telemetry.categories()),
        "rotation": {"maxBytes": 10 * 1024 * 1024, "retention": "manual"},
        "content": "redacted-metadata-only",
    }


def commands(house: House) -> Group:
    return {
        "supported": True,
        "methods": ["commands/list", "commands/run"],
        "method": "commands/list",
        "runMethod": "commands/run",
        "sources": ["prompt", "skill", "plugin"],
        "executableSources": ["plugin"],
    }


def startup_resources(house: House) -> Group:
    return {"supported": True, "method": "resources/startup"}


QUESTION = {
    "supported": True,
    "notification": "ui/question",
    "method": "ui/answerQuestion",
    "maxQuestions": 4,
    "multiSelect": False,
}


def extension_ui(house: House) -> Group:
    others = ("select", "confirm", "input", "editor", "widgets", "footer", "custom", "terminalInput")
    return {"question": QUESTION | {"preview": False}} | dict.fromkeys(others, False)


def composer(house: House) -> Group:
    return {
        "sessionDiff": {"supported": False, "reason": "interactiveComposerOnly"},
        "copy": {"supported": False, "reason": "clientClipboardOwnedByUi"},
    }


def security(house: House) -> Group:
    """As published while nothing stricter is configured."""
    free = house.mode is Mode.ALLOW
    return {
        "workspaceMutationGuard": "none" if free else "policy",
        "toolApproval": "none" if free else "ui/question",
        "canRunShell": True,
        "canWriteFiles": house.mode is not Mode.READ_ONLY,
    }


def export(house: House) -> Group:
    return {"supported": True, "formats": ["markdown", "html"], "defaultFormat": "markdown"}


def legacy(house: House) -> Group:
    """What older clients look for."""
    simple = dict.fromkeys(("asyncTurns", "turnEventReplay", "uiQuestions", "authLogin", "configUpdate"), True)
    return simple | {
        "turnCancellation": "best-effort",
        "session": {"mode": "explicit", "persistence": "jsonl"},
        "cancellation": CANCELLATION,
        "eventReplay": REPLAY,
        "uiQuestion": QUESTION,
        "prompts": {"supported": True, "methods": ["prompts/list", "prompts/expand"]},
        "skills": {"supported": True, "tool": "read_skill"},
        "tools": {"supported": True, "method": "tools/list", "eventMetadata": True},
        "config": {"supported": True, "methods": ["config/read", "config/update"]},
    }


GROUPS: dict[str, Callable[[House], Group]] = {
    "transcript": transcript,
    "sessions": sessions,
    "turns": turns,
    "events": events,
    "attachments": attachments,
    "models": models,
    "runtime": runtime,
    "runtimeSettings": runtime_settings,
    "auth": auth,
    "memory": memory,
    "commands": commands,
    "startupResources": startup_resources,
    "extensionUi": extension_ui,
    "composer": composer,
    "security": security,
    "export": export,
    "logging": logging,
}


def capabilities(house: House) -> dict[str, Any]:
    return {"framing": "content-length"} | {name: group(house) for name, group in GROUPS.items()} | legacy(house)
