"""The KNP client people import: `from quintet.client import Client`. Async; reconnects with its cursor.

Knows the published interface and where a local server says it is; nothing of the engine behind it.
"""

from quintet.client.client import Client
from quintet.client.discovery import Address, find_server
from quintet.client.envelope import Envelope

__all__ = ["Address", "Client", "Envelope", "find_server"]
