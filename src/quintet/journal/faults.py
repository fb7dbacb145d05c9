"""What SQLite and the file system can say, as one of our errors with its next step. Nothing raw leaves the journal."""

from __future__ import annotations

import errno

import apsw
import msgspec

from quintet.domain.errors import (
    InternalFailure,
    Invalid,
    Overloaded,
    QuintetError,
    StorageDamaged,
    StorageFull,
    StorageReadOnly,
)
from quintet.journal.codec import UNPAIRED

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def as_storage_error(error: BaseException) -> QuintetError:
    """Any failure below the journal, named."""
    match error:
        case QuintetError():
            return error
        case apsw.FullError():
            return StorageFull("The disk is full: nothing was written.")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StorageReadOnly("The journal cannot be written.")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError() | msgspec.MsgspecError():
            return StorageDamaged("A part of the journal cannot be read.")
        case apsw.BusyError() | apsw.LockedError():
            return Overloaded("Other processes kept the journal busy for too long; nothing was written.")
        case apsw.CantOpenError():
            return StorageReadOnly("The journal cannot be opened.")
        case apsw.IOError():
            return _input_output(error)
        case UnicodeDecodeError():
            return StorageDamaged("A text in the journal cannot be read.")  # read, not given: the file is damaged
        case UnicodeError():
            return Invalid(UNPAIRED)
        case OSError():
            return _of_system(error)
    return InternalFailure(f"The journal failed unexpectedly ({type(error).__name__}).")


def _input_output(error: apsw.IOError) -> QuintetError:
    code = getattr(error, "extendedresult", 0)
    if code == apsw.SQLITE_IOERR_SHMSIZE:
        return StorageFull("The disk is full: not even the log's index has room.")
    return StorageDamaged(f"The disk failed while the journal was used (SQLite error {code}).", sqlite=code)


def _of_system(error: OSError) -> QuintetError:
    reason = error.strerror or type(error).__name__
    if error.errno in _FULL:
        return StorageFull(f"The disk is full ({reason}).")
    if error.errno in _READ_ONLY:
        return StorageReadOnly(f"The home directory cannot be written ({reason}).", path=str(error.filename or ""))
    return StorageReadOnly(f"The home directory cannot be used ({reason}).", path=str(error.filename or ""))
