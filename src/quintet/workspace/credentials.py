"""Stored credentials: one private file each, encrypted where the system has a key store, plain (0600) where not.

A file that was made by hand (a bare value, JSON or NAME=value lines) is read as it is and never rewritten unasked.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from collections.abc import Iterator

import msgspec

from quintet.domain.errors import Invalid, NotFound
from quintet.workspace.key_store import KeyStore

FILE_LIMIT = 65_536
VALUE_LIMIT = 16_384
QUIET_S = 10.0
_SET_IT = "Store it with `quintet auth set NAME`."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Sealed(msgspec.Struct, frozen=True, tag_field="quintet", tag="sealed-1"):
    """An encrypted credential: AES-256-GCM, the name as associated data, so files cannot be swapped."""

    key: str  # which key: the first bytes of its digest
    nonce: str
    data: str


class Credentials:
    """Blocking, small. `home` is Quintet's directory; the files lie in `credentials` there."""

    def __init__(self, home: str, key_store: KeyStore) -> None:
        self.directory = os.path.join(home, "credentials")
        self._key_store = key_store
        self._key_name = hashlib.sha256(os.path.realpath(home).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._key: bytes | None = None
        self._quiet_until = 0.0  # a locked store may put a question to the person: not once for every file

    def names(self) -> list[str]:
        """Only names: values are asked for one at a time, by whoever needs that one."""
        try:
            found = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if _NAME.fullmatch(name))

    def get(self, name: str) -> str:
        """The value. NotFound when there is none; Invalid when it is sealed with a key that is not there."""
        text = self._text(_checked(name))
        if text is None:
            raise NotFound(f"No credential is stored as {name!r}.", next_step=_SET_IT)
        return text

    def is_sealed(self, name: str) -> bool:
        """Whether it is encrypted; nothing is opened for that."""
        try:
            data = self._bytes(_checked(name))
        except OSError:
            return False
        return data is not None and _sealed(data) is not None

    def set(self, name: str, value: str) -> bool:
        """Store it, private from its first moment and on disk when this returns; whether it is encrypted."""
        if not value.strip() or len(value) > VALUE_LIMIT or "\0" in value:
            raise Invalid(f"A credential needs between 1 and {VALUE_LIMIT} characters.")
        key = self._sealing_key()
        self._write(_checked(name), self._seal(name, value, key) if key else value.encode())
        return key is not None

    def remove(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self.directory, _checked(name)))
        except FileNotFoundError:
            raise NotFound(f"No credential is stored as {name!r}.") from None

    def fingerprint(self) -> tuple[object, ...]:
        """Other than before whenever a file was added, removed, replaced or written to. Cheap: one look at each."""
        try:
            with os.scandir(self.directory) as entries:
                stats = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError:
            return ()
        return tuple(sorted((name, found.st_mtime_ns, found.st_size, found.st_ino) for name, found in stats))

    def texts(self) -> Iterator[str]:
        """What every file holds, opened. One that cannot be opened holds nothing anybody could show by accident."""
        for name in self.names():
            try:
                text = self._text(name)
            except (OSError, Invalid):
                continue
            if text is not None:
                yield text

    def _text(self, name: str) -> str | None:
        data = self._bytes(name)
        if data is None:
            return None
        sealed = _sealed(data)
        return data.decode("utf-8", "replace").strip() if sealed is None else self._open(name, sealed)

    def _bytes(self, name: str) -> bytes | None:
        try:
            handle = os.open(os.path.join(self.directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read(FILE_LIMIT)

    def _write(self, name: str, data: bytes) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        passing = os.path.join(self.directory, f".{os.urandom(6).hex()}.tmp")
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(passing, os.path.join(self.directory, name))
        except BaseException:
            os.unlink(passing)
            raise

    # --- sealing ---------------------------------------------------------------------------------------------------

    def _sealing_key(self) -> bytes | None:
        """The key in the system's store, made on first use; None where there is no store. A key that is there but
        cannot be had now is never replaced: what it has sealed would be lost."""
        self._quiet_until = 0.0
        key = self._stored_key()
        if key is not None or not self._key_store.usable:
            return key
        if self._key_store.read(self._key_name) != "":
            raise Invalid("The system's key store cannot be asked.", next_step="Unlock it, then try again.")
        fresh = os.urandom(32)
        if not self._key_store.write(self._key_name, base64.b64encode(fresh).decode()):
            return None
        self._key = fresh
        return fresh

    def _stored_key(self) -> bytes | None:
        if self._key is None and self._key_store.usable and time.monotonic() >= self._quiet_until:
            try:
                found = base64.b64decode(self._key_store.read(self._key_name) or "", validate=True)
            except ValueError:
                found = b""
            self._key = found if len(found) == 32 else None
            self._quiet_until = time.monotonic() + (0 if self._key else QUIET_S)
        return self._key

    def _seal(self, name: str, value: str, key: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        data = AESGCM(key).encrypt(nonce, value.encode(), name.encode())
        return msgspec.json.encode(Sealed(_fingerprint(key), _text64(nonce), _text64(data)))

    def _open(self, name: str, sealed: Sealed) -> str:
        key = self._stored_key()
        if key is None or _fingerprint(key) != sealed.key:
            raise Invalid(
                f"The credential {name!r} is encrypted, and its key is not in this system's key store.",
                next_step="Unlock the key store, or store it anew with `quintet auth set NAME`.",
            )
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            opened = AESGCM(key).decrypt(base64.b64decode(sealed.nonce), base64.b64decode(sealed.data), name.encode())
        except (InvalidTag, ValueError):
            raise Invalid(f"The credential {name!r} is damaged.", next_step=_SET_IT) from None
        return opened.decode()


def _sealed(data: bytes) -> Sealed | None:
    try:
        return msgspec.json.decode(data, type=Sealed)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name[:80]!r} is no name for a credential: letters, digits, dots, dashes, at most 64.")
    return name


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(b"quintet credentials" + key).hexdigest()[:16]


def _text64(data: bytes) -> str:
    return base64.b64encode(data).decode()
