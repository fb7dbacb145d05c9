"""Where everything that happens is kept: SQLite, its in-memory twin, and the rules both obey."""

from quintet.journal.memory import MemoryStore, memory_journal
from quintet.journal.opening import open_journal
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal

__all__ = ["MemoryStore", "OpenReport", "StoredJournal", "memory_journal", "open_journal"]
