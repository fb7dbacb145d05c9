"""runtime/*: how a session stands, what it has used, and the few settings that can be changed while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from quintet.domain import item as it
from quintet.domain.thread import Thread
from quintet.engine.gauge import rough_items
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import BadArgument
from quintet.protocols.kward.house import House
from quintet.protocols.kward.messages import Message
from quintet.protocols.kward.sessions import name_of
from quintet.protocols.kward.transcript import whole
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

RUNTIME = Family("runtime", form="either")


@RUNTIME.method(
    "runtime/state", params=wire.SessionParams, result=wire.RuntimeState, summary="How a session stands right now."
)
async def state(call: Call[Client], params: wire.SessionParams) -> wire.RuntimeState:
    house, session = call.state.house, call.state.session(params.session_id)
    thread = await thread_of(house, session)
    model, effort = house.choice.current(), house.choice.effort()
    return wire.RuntimeState(
        model=model,
        thinking_level=effort,
        is_streaming=bool(session.turns) or bool(thread.active_turn and not session.compacting),
        is_compacting=bool(session.compacting),
        session_file=session.place.path,
        session_id=session.place.id,
        rpc_session_id=session.id,
        persistent_session_id=session.place.id,
        auto_compaction_enabled=house.compacts(),
        default_provider=model.provider,
        default_model=f"{model.provider}/{model.id}",
        default_thinking_level=effort,
        message_count=len(whole(thread, await house.threads.items(thread.id))),
        pending_message_count=len(session.turns),
        session_name=name_of(thread) or UNSET,
    )


@RUNTIME.method(
    "runtime/stats", params=wire.SessionParams, result=wire.RuntimeStats, summary="What a session is made of, counted."
)
async def stats(call: Call[Client], params: wire.SessionParams) -> wire.RuntimeStats:
    house, session = call.state.house, call.state.session(params.session_id)
    thread = await thread_of(house, session)
    items = await house.threads.items(thread.id)
    told = whole(thread, items)
    roles = Counter(message.role for message in told)
    return wire.RuntimeStats(
        session_file=session.place.path,
        session_id=session.place.id,
        rpc_session_id=session.id,
        persistent_session_id=session.place.id,
        user_messages=roles["user"],
        assistant_messages=roles["assistant"],
        tool_calls=sum(len(message.calls()) for message in told),
        tool_results=roles["tool"],
        total_messages=len(told),
        using_subscription=house.choice.current().provider == "Codex",
        auto_compaction_enabled=house.compacts(),
        session_name=name_of(thread) or UNSET,
        context_usage=usage(house, session, thread, items, told),
    )


def usage(
    house: House, session: Opened, thread: Thread, items: Sequence[it.Item], told: Sequence[Message]
) -> wire.ContextUsage | UnsetType:
    """About how much of the model's window the conversation takes; nothing where that cannot be said."""
    window = house.choice.current().context_window
    ordinals = set(thread.view.model_ordinals(thread.last_ordinal))
    seen = [item for item in items if item.ordinal in ordinals]
    if not told or isinstance(window, UnsetType) or not window or any(map(_has_more_than_text, seen)):
        return UNSET
    tokens = rough_items(seen)
    return wire.ContextUsage(tokens, window, round(100 * tokens / window, 2))


def _has_more_than_text(item: it.Item) -> bool:
    match item.body:
        case it.UserMessage(parts=parts):
            return any(not isinstance(part, it.TextPart) for part in parts)
        case it.ToolResult(images=images):
            return bool(images)
    return False


@RUNTIME.method(
    "runtime/updateSetting",
    params=wire.SettingParams,
    result=wire.Applied,
    summary="Choose the model (defaultModel) or how hard it thinks (defaultThinkingLevel), from the next turn on.",
)
async def update_setting(call: Call[Client], params: wire.SettingParams) -> wire.Applied:
    house = call.state.house
    call.state.session(params.session_id)
    value = params.value
    match params.setting_id:
        case "defaultModel":
            first, slash, rest = value.partition("/") if isinstance(value, str) else ("", "", "")
            provider, model = (first.strip(), rest.strip()) if slash else ("", first.strip())
            if not model:
                raise BadArgument("Model must be a non-empty string")
            await house.choice.set_model(provider, model)
            return wire.Applied("live", f"Default model set to {value.strip()}.")
        case "defaultThinkingLevel":
            if not isinstance(value, str) or not value.strip():
                raise BadArgument("Thinking level must be a non-empty string")
            await house.choice.set_effort(value.strip())
            return wire.Applied("live", f"Default thinking level set to {value.strip()}.")
    raise BadArgument(f"Unsupported runtime setting: {params.setting_id}")


@RUNTIME.method(
    "runtime/reload", params=wire.SessionParams, result=wire.Reloaded, summary="Read the configuration anew."
)
async def reload(call: Call[Client], params: wire.SessionParams) -> wire.Reloaded:
    call.state.session(params.session_id)
    await call.state.house.choice.reload()
    return wire.Reloaded(True, "Resources reloaded.")
