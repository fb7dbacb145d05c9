"""auth: keys of providers. A key is tried with a real call before it is stored, and never given as an argument."""

from __future__ import annotations

import argparse
import getpass
import signal
import sys
from typing import Any

from quintet.app import App
from quintet.cli import exits, last_resort
from quintet.cli.amounts import prices
from quintet.cli.event_json import encode_line
from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation
from quintet.cli.parser import actions
from quintet.domain.errors import Invalid, NotConfigured, NotFound
from quintet.providers.key_trial import KeyTrial, try_key
from quintet.providers.settings import ProviderKind

LONGEST_KEY = 16_384


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    action = actions(parser, common)
    setting = action("set", "try a key with a real call and store it; asked for without showing it, or read from stdin")
    setting.add_argument("provider", help="its name, as in config.toml or `quintet models`")
    setting.add_argument("--no-test", action="store_true", help="store it without trying it")
    action("list", "which providers have a key, and from where; never the keys")
    action("remove", "forget a stored key").add_argument("provider")


async def run(invocation: Invocation) -> int:
    if invocation.flags.action in ("set", "remove"):
        refuse_inside_a_call("change stored keys")
    async with invocation.open() as app:
        return await _HANDLERS[invocation.flags.action](invocation, app)


async def _set(invocation: Invocation, app: App) -> int:
    name = invocation.flags.provider
    kind = _kind(app, name)
    key = _ask(name)
    trial = None
    if kind is not None and not invocation.flags.no_test:
        trial = await _try(app, name, key)
        if not trial.good:
            raise NotConfigured(
                f"The key for {name} was not stored: {trial.why}.",
                next_step="Check the key and the address, or store it untried with --no-test.",
                provider=name,
            )
    sealed = app.credentials.set(name, key)
    model = _usual_model(app, name, trial) if kind is not None else ""
    _tell(invocation, app, name, model, trial, sealed=sealed)
    return exits.DONE


def _kind(app: App, name: str) -> ProviderKind | None:
    """What the name stands for; None when it is only the name of a credential for searching the web."""
    settings = app.models.providers().get(name)
    if settings is not None and settings.kind not in (ProviderKind.OFFLINE, ProviderKind.SCRIPTED):
        return settings.kind
    search = app.config.web_search
    if settings is None and search is not None and search.credential == name:
        return None
    if settings is not None:
        raise Invalid(f"The provider {name!r} needs no key.", next_step="Name one that does: `quintet models`.")
    known = [n for n in app.models.providers() if n != "offline"]
    raise NotFound(
        f"There is no provider named {name!r}.",
        next_step=f"Known are {', '.join(known)}; others need a table [providers.NAME] in config.toml.",
    )


def _ask(name: str) -> str:
    key = (_typed(name) if sys.stdin.isatty() else sys.stdin.read(LONGEST_KEY + 1)).strip()
    if not key:
        raise Invalid("No key was given.", next_step="Type or pipe it in: quintet auth set NAME < FILE")
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Invalid("That is no key: it holds what no key holds, or is too long.", next_step="Copy it again.")
    return key


def _typed(name: str) -> str:
    """Nothing else runs meanwhile, so Ctrl-C must end the waiting itself: the event loop's own handler would only note
    it down for later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return getpass.getpass(f"Key for {name} (not shown): ")
    except EOFError:
        return ""
    except KeyboardInterrupt:
        last_resort.tell("\nquintet: stopped; no key was stored.")
        raise
    finally:
        signal.signal(signal.SIGINT, before)


async def _try(app: App, name: str, key: str) -> KeyTrial:
    provider = app.models.with_key(name, key)
    try:
        return await try_key(provider, _usual_model(app, name, None))
    finally:
        await provider.close()


def _usual_model(app: App, name: str, trial: KeyTrial | None) -> str:
    """The model that would be used: the default, the first that was said or is known; of those the key may use."""
    known = app.models.models_of(name)
    if trial is not None and trial.models:
        allowed = [m for m in known if m.partition("/")[2] in trial.models]
        return next(iter(allowed), f"{name}/{trial.models[0]}")
    return next(iter(known), "")


def _tell(invocation: Invocation, app: App, name: str, model: str, trial: KeyTrial | None, *, sealed: bool) -> None:
    kept = "encrypted, by a key in the system's key store" if sealed else "as a file only you can read, not encrypted"
    if invocation.json:
        row = {"provider": name, "stored": True, "sealed": sealed, "tested": trial is not None, "model": model or None}
        invocation.screen.raw(encode_line(row))
        return
    tested = "The key works." if trial is not None else "The key was not tried."
    invocation.screen.row(f"{tested} Stored for {name}: {kept}.")
    if model:
        invocation.screen.line(f'Try: quintet run -m {model} "hello"   ({prices(app.models.info(model))} per million)')
    counting = [s.value for s in app.models.key_sources(name)] if name in app.models.providers() else []
    if counting and counting[0] != "stored":
        word = {"environment": "a variable", "config": "config.toml"}[counting[0]]
        invocation.screen.note(f"quintet: {word} also has a key for {name}, and goes before the stored one.")


async def _list(invocation: Invocation, app: App) -> int:
    rows = _rows(app)
    for row in rows:
        if invocation.json:
            invocation.screen.raw(encode_line(row))
        else:
            sealed = {True: ", encrypted", False: ", not encrypted", None: ""}[row["sealed"]]
            places = [f"{s}{sealed if s == 'stored' else ''}" for s in row["keys"]]
            unused = "" if row["known"] else "  (no provider of this name)"
            invocation.screen.row(f"{row['provider']:<16} ", f"{'; then '.join(places)}{unused}")
    if not rows and not invocation.json:
        invocation.screen.note("No keys. Store one with `quintet auth set anthropic`.")
    return 0


def _rows(app: App) -> list[dict[str, Any]]:
    """Names and places only: no value is opened for this."""
    stored, providers = app.credentials.names(), app.models.providers()
    rows = []
    for name in [*providers, *(n for n in stored if n not in providers)]:
        known = name in providers
        keys = [s.value for s in app.models.key_sources(name)] if known else ["stored"]
        sealed = app.credentials.is_sealed(name) if name in stored else None
        if keys:
            rows.append({"provider": name, "keys": keys, "sealed": sealed, "known": known})
    return rows


async def _remove(invocation: Invocation, app: App) -> int:
    try:
        app.credentials.remove(invocation.flags.provider)
    except NotFound as error:
        raise NotFound(error.message, next_step="List what is stored with `quintet auth list`.") from None
    if not invocation.json:
        invocation.screen.note("Removed. If it was given away, revoke it where it came from, too.")
    return 0


_HANDLERS = {"set": _set, "list": _list, "remove": _remove}
