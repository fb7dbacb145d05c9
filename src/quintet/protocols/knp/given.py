"""What a client sends within a body: the same nouns as are told, but a field that nobody knows is refused and named.

Who misspells one must not believe that it counts. What is told may gain fields, so there it stays open.
"""

from __future__ import annotations

from quintet.protocols.knp import models as knp


class GivenModel(knp.ModelName, frozen=True, forbid_unknown_fields=True):
    """provider, modelId"""


class GivenText(knp.TextContent, frozen=True, tag_field="kind", tag="text", forbid_unknown_fields=True):
    """text"""


class GivenFile(knp.FileContent, frozen=True, tag_field="kind", tag="file", forbid_unknown_fields=True):
    """uri, mimeType, filename"""


class GivenData(knp.DataContent, frozen=True, tag_field="kind", tag="data", forbid_unknown_fields=True):
    """data"""


GivenPart = GivenText | GivenFile | GivenData
