"""models: what would work now, with context and price, and what the others need."""

from __future__ import annotations

import argparse
from typing import Any

from quintet.app import App
from quintet.cli.amounts import prices, tokens
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.domain.errors import Invalid
from quintet.providers.local_servers import TITLES, USUAL_PORTS, LocalModel, LocalServer, ask_local

_WHERE = {
    "environment": "key from the environment",
    "config": "key written in config.toml",
    "stored": "stored key",
}


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--local", action="store_true", help="ask the usual local ports for model servers")
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="NAME=PORT",
        help=f"with --local: another port for {', '.join(USUAL_PORTS)}",
    )


async def run(invocation: Invocation) -> int:
    if invocation.flags.local:
        return await _local(invocation)
    if invocation.flags.port:
        raise Invalid("--port goes with --local.", next_step="Add --local.")
    async with invocation.open() as app:
        return _list(invocation, app)


def _list(invocation: Invocation, app: App) -> int:
    table, screen = app.models, invocation.screen
    others: list[tuple[str, str]] = []
    reported = False
    for provider in table.providers():
        lacks, sources = table.lacks(provider), table.key_sources(provider)
        source = sources[0].value if sources else ""
        references = table.models_of(provider)
        if invocation.json:
            for reference in references or (f"{provider}/",):
                screen.raw(encode_line(_row(app, reference, source, lacks)))
        elif lacks:
            others.append((provider, lacks))
        else:
            screen.row(_head(app, provider, source, references))
            for reference in references:
                screen.row(*_line(app, reference))
                reported = reported or table.info(reference).price_reported
            if not references:
                screen.row(f"    {provider}/MODEL  any model it serves, by its own name")
    if others and not invocation.json:
        screen.line()
        screen.row("Would need something first:")
        for provider, lacks in others:
            screen.row(f"  {provider}: {lacks}")
    if not invocation.json:
        _hint(invocation, app, reported=reported)
    return 0


def _head(app: App, provider: str, source: str, references: tuple[str, ...]) -> str:
    dates = {app.models.info(reference).as_of for reference in references} - {""}
    notes = [_WHERE[source]] if source else []
    notes += [f"the catalog is of {max(dates)}"] if dates else []
    return f"{provider}  ({', '.join(notes)})" if notes else provider


def _line(app: App, reference: str) -> tuple[str, str]:
    info = app.models.info(reference)
    abilities = {"images": info.vision, "sound": info.audio, "videos": info.video, "reasoning": info.reasoning}
    can = [word for word, has in abilities.items() if has]
    window = f"{tokens(info.context_window)} context" if info.context_window else "context unknown"
    mark = "*" if reference == app.models.default else " "
    return f"  {mark} {reference:<38} ", f"{window:<16} {prices(info):<44} {', '.join(can)}".rstrip()


def _hint(invocation: Invocation, app: App, *, reported: bool) -> None:
    default = app.models.default
    invocation.screen.note(f"\n* is the default ({default}). Prices are dollars per million tokens.")
    if reported:
        invocation.screen.note('A price with "about" was told by others who read the vendor\'s page: check it there.')
    if default.partition("/")[0] == "offline":
        invocation.screen.note("Choose another with `default_model` in config.toml, QUINTET_MODEL or `run -m`.")


def _row(app: App, reference: str, source: str, lacks: str) -> dict[str, Any]:
    info = app.models.info(reference)
    row: dict[str, Any] = {
        "model": reference if not reference.endswith("/") else None,
        "provider": reference.partition("/")[0],
        "works": not lacks,
        "default": reference == app.models.default,
        "key": source or None,
        "needs": lacks or None,
    }
    names = ("context_window", "max_output", "vision", "audio", "video", "reasoning", "input_price", "output_price")
    row |= {name: getattr(info, name) for name in (*names, "cached_price", "cache_write_price", "price_reported")}
    return row | {"as_of": info.as_of or None}


# --- local servers ----------------------------------------------------------------------------------------------------
async def _local(invocation: Invocation) -> int:
    ports = _ports(invocation.flags.port)
    found = await ask_local(ports)
    for server in found:
        if invocation.json:
            invocation.screen.raw(encode_line(server))
        else:
            _show(invocation, server)
    if invocation.json:
        return 0
    if not any(server.models for server in found):
        asked = ", ".join(f"{TITLES[kind]} {port}" for kind, port in ports.items())
        invocation.screen.note(f"No local model server answers with a model (asked: {asked}).")
        invocation.screen.note(
            "Another port: --port ollama=11500. Another server that speaks chat completions: a table"
        )
        invocation.screen.note(
            '[providers.NAME] in config.toml with kind = "openai-chat" and base_url = "http://…/v1".'
        )
        return 0
    invocation.screen.note("\nTo use one, put these lines into config.toml (`quintet version` shows where it is):\n")
    for server in found:
        if server.models:
            invocation.screen.line(config_lines(server))
    return 0


def _show(invocation: Invocation, server: LocalServer) -> None:
    screen = invocation.screen
    screen.line(f"{TITLES[server.kind]} at {server.url}")
    if server.problem:
        screen.row(f"    {server.problem}")
    for model in server.models:
        screen.row(f"    {model.name:<38} ", _context(model))
    if server.left_out:
        screen.line(f"    and {server.left_out} more")


def _context(model: LocalModel) -> str:
    could = f"; the model could have {tokens(model.could_have)}" if model.could_have else ""
    if model.context_window is None:
        return f"context not said before it is loaded{could}"
    small = could if (model.could_have or 0) > model.context_window else ""
    return f"{tokens(model.context_window)} context{small}"


def config_lines(server: LocalServer) -> str:
    """What to paste; a server on this machine costs nothing."""
    lines = [f"[providers.{server.kind}]", 'kind = "openai-chat"', f'base_url = "{server.url}"', ""]
    for model in server.models:
        lines.append(f"[models.{_quoted(f'{server.kind}/{model.name}')}]")
        window = (
            "" if model.context_window else "  # not said by the server: look it up, and raise it there if it is small"
        )
        lines.append(f"{'# ' if window else ''}context_window = {model.context_window or 4096}{window}")
        lines += ["input_price = 0", "output_price = 0", ""]
    return "\n".join(lines)


def _quoted(name: str) -> str:
    """As a quoted key of TOML: names come from whatever answered on that port."""
    plain = "".join(c if c.isprintable() else "?" for c in name)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _ports(given: list[str]) -> dict[str, int]:
    ports = dict(USUAL_PORTS)
    for text in given:
        name, _, number = text.partition("=")
        if name not in ports or not number.isdigit() or not 0 < int(number) < 65_536:
            raise Invalid(f"--port {text} is not understood.", next_step=f"Write NAME=PORT, of {', '.join(ports)}.")
        ports[name] = int(number)
    return ports
