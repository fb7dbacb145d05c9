"""Where everything that happens is kept: SQLite, its in-memory twin (imported only by who wants it), and the rules both
obey.
"""

from quintet.journal.opening import open_journal
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal

__all__ = ["OpenReport", "StoredJournal", "open_journal"]
