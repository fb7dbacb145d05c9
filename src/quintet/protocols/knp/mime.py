"""What kind of file a name stands for, as the document's examples say it: source is text/<language>. Pure."""

from __future__ import annotations

_LANGUAGES = {
    "ts": "typescript",
    "tsx": "typescript",
    "mts": "typescript",
    "js": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "py": "python",
    "rs": "rust",
    "go": "go",
    "rb": "ruby",
    "java": "java",
    "kt": "kotlin",
    "c": "c",
    "h": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "hpp": "cpp",
    "cs": "csharp",
    "swift": "swift",
    "php": "php",
    "sh": "shellscript",
    "bash": "shellscript",
    "zsh": "shellscript",
    "css": "css",
    "scss": "scss",
    "html": "html",
    "md": "markdown",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "sql": "sql",
    "csv": "csv",
    "lua": "lua",
    "zig": "zig",
}
_OTHERS = {
    "json": "application/json",
    "xml": "application/xml",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
}


def mime_type(path: str, *, text: bool) -> str:
    """`text`: whether it can be read as such; a name that nothing is known of is then plain text."""
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    if ending in _LANGUAGES and text:
        return f"text/{_LANGUAGES[ending]}"
    return _OTHERS.get(ending) or ("text/plain" if text else "application/octet-stream")
