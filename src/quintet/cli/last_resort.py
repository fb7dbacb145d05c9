"""When even telling fails: missing streams, output that cannot be written, defects. Never a traceback on a terminal.

Imported by every call, so it imports next to nothing itself.
"""

from __future__ import annotations

import errno
import io
import os
import sys

FAILED, STORAGE = 1, 6


def mend_streams() -> None:
    """A closed descriptor becomes /dev/null, before a file of ours could get its number and be written into; what the
    terminal's encoding cannot take is written escaped."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    # They stay open for as long as the process lives, as those they stand in for would.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(line: str) -> None:
    """One line on stderr, if that is still possible."""
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _give_up(sys.stderr)


def settle(code: int) -> int:
    """Write out what is buffered: the interpreter's own attempt at exit would fail with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            _give_up(stream)
            code = code or unwritable(error)
    return code


def unwritable(error: BaseException) -> int:
    """Output could not be written: told where that is possible, except that a reader has gone. The exit code."""
    _give_up(sys.stdout)
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC:
        tell("quintet: the output cannot be written: no space is left. Free some, or write elsewhere.")
        return STORAGE
    if number not in (errno.EPIPE, errno.EIO, None):
        tell(f"quintet: the output cannot be written: {os.strerror(number)}.")
    return FAILED


def unexpected(error: BaseException, home: str | None) -> int:
    """A defect of ours: one line here, the rest in the log."""
    path = log(error, home)
    more = f"; the log has more: {path}" if path else ""
    tell(f"quintet: failed unexpectedly ({type(error).__name__}){more} (docs/errors.md#internal)")
    return STORAGE if getattr(error, "errno", None) == errno.ENOSPC else FAILED


def log(error: BaseException, home: str | None) -> str:
    """Kept in the home's log, without known secrets; the log's path, or nothing where there is no home to keep it."""
    try:
        from pathlib import Path

        from quintet.config import home_directory, refuse_strangers
        from quintet.engine.redaction import Redactor
        from quintet.workspace.credentials import Credentials
        from quintet.workspace.key_store import KeyStore
        from quintet.workspace.log import Log
        from quintet.workspace.secrets import KnownSecrets

        directory = Path(home_directory(home, os.environ))
        if not directory.is_dir():
            return ""
        refuse_strangers(str(directory))
        credentials = Credentials(str(directory), KeyStore(os.environ))
        secrets = KnownSecrets(os.environ, **_configured(str(directory)), credentials=credentials)
        kept = Log(directory / "quintet.log", Redactor(secrets.known_values()).text)
        kept.error(error)
        return str(kept.path) if kept.path.exists() else ""
    except Exception:
        return ""  # the home itself may be what is broken


def _configured(home: str) -> dict[str, list[str]]:
    """The provider keys a person wrote into config.toml; none when that cannot be read."""
    from quintet.config import load_config
    from quintet.domain.errors import QuintetError

    try:
        providers = load_config(home).providers.values()
    except QuintetError:
        return {}
    return {
        "keys": [p.api_key for p in providers if p.api_key],
        "key_names": [p.api_key_env for p in providers if p.api_key_env],
    }


def _give_up(stream: object) -> None:
    """What is still buffered goes to /dev/null when the interpreter ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())  # type: ignore[attr-defined]
        os.close(null)
    except (OSError, ValueError):
        pass
