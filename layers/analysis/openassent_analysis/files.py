"""Selects, reads, and decodes the files to analyze.

Each skipped file has a reason, which the result counts. Links are never followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from openassent_analysis import site_configuration
from openassent_analysis.kinds import is_read_in_part
from openassent_analysis.limits import Limits
from openassent_analysis.reading import alternatives, pattern_of, resource
from openassent_analysis.templates.dialects import language_of_template

# Languages by file extension, except those of templates.
LANGUAGES: Final = {
    **dict.fromkeys(("js", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    # JavaScript's own grammar has no `class` as an attribute.
    **dict.fromkeys(("tsx", "jsx"), "tsx"),
    "py": "python",
}
MANIFESTS: Final = frozenset({"package.json"})
LOCK_FILES: Final = frozenset({"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"})

# A file that no rule reads, or of which only a part is read.
NOT_ANALYZED: Final = "other kind of file"
_PATHS: Final = resource("paths")
_REASON_OF_FOLDER: Final[dict[str, str]] = {
    name: reason for reason, names in _PATHS["folders"].items() for name in names
}
# The same, if a manifest is next to the folder.
_REASON_BESIDE_MANIFEST: Final[dict[str, str]] = {
    name: reason for reason, names in _PATHS["next_to_manifests"].items() for name in names
}
_MANIFESTS: Final = frozenset(_PATHS["manifests"])
_SITES: Final = frozenset(_PATHS["sites"])
_EXAMPLE: Final = "test or example"
_WRAPPERS: Final = pattern_of(_PATHS["wrappers"], re.IGNORECASE)
# All of these begin at a folder's name. Searching for its beginning once is twice as fast.
_VENDORED: Final = re.compile(
    alternatives(f"(?:^|/)(?:{_PATHS['vendored']}\n{_PATHS['copies']})")
    .replace("KEPT", _PATHS["kept"])
    .replace("LIBRARY", alternatives(_PATHS["libraries"])),
    re.IGNORECASE,
)
_REASON_OF_NAME: Final = tuple((pattern_of(written), reason) for reason, written in _PATHS["names"].items())


class Skipped(Exception):
    """The file is skipped; the argument is the reason."""


# A scan asks several times about each path, mostly at once. Paths of hostile archives are long.
_MOST_PATHS: Final = 500


@lru_cache(_MOST_PATHS)
def language_of(name: str) -> str | None:
    """Returns how to read a file: a language, `manifest`, `lock file`, `configuration`, or None if it isn't read."""
    if name in MANIFESTS:
        return "manifest"
    if name in LOCK_FILES:
        return "lock file"
    if site_configuration.is_configuration(name):
        return "configuration"
    return language_of_template(name) or LANGUAGES.get(name.rpartition(".")[2].lower())


def reason_to_skip_folder(path: str) -> str | None:
    """Returns why nothing in a folder is read, by its name, or None. The path has a slash at the end."""
    reason = _REASON_OF_FOLDER.get(path.rstrip("/").rpartition("/")[2].lower())
    return reason if reason is None or not _WRAPPERS.search(path) else None


@lru_cache(_MOST_PATHS)
def reason_to_skip(path: str) -> str | None:
    """Returns why a file is skipped, or None. The path is relative to the root, with forward slashes."""
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders, 1):
        if folder.lower() in _REASON_OF_FOLDER and (reason := reason_to_skip_folder("/".join(folders[:depth]) + "/")):
            return reason
    if _VENDORED.search(path):
        return "vendored"
    lower = name.lower()
    return next((reason for pattern, reason in _REASON_OF_NAME if pattern.search(lower)), None)


# A file: its path relative to a folder, where it is, and the reason to skip it. It has a place or a reason; it has
# both if a convention is the reason.
Listed: TypeAlias = tuple[str, os.PathLike[str] | None, str | None]


def reason_by_convention(path: str, projects: Mapping[str, bool]) -> str | None:
    """Returns why a file is skipped for the name of its folder and a manifest next to that folder, or None.

    projects: the folders that have a manifest, as `projects_of` returns them.
    """
    if language_of(path.rpartition("/")[2]) is None:
        return None  # no rule reads it, in any folder
    parent = ""
    for folder in path.split("/")[:-1]:
        reason = _REASON_BESIDE_MANIFEST.get(folder.lower()) if parent in projects else None
        if reason and not (projects[parent] and reason == _EXAMPLE):
            return reason
        parent += f"{folder}/"
    return None


def projects_of(paths: Iterable[str]) -> dict[str, bool]:
    """Returns the folders of manifests, each with a trailing slash and empty for the root.

    The value is true if a folder is also that of a site, whose pages can be in any folder.
    """
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        if name in _MANIFESTS or name in _SITES:
            found[name in _SITES].add(folder + slash)
    return {folder: folder in found[True] for folder in found[False]}


def convention_of(path: str) -> str | None:
    """Returns why a file is skipped if a manifest is next to each of its folders, or None."""
    found = (_REASON_BESIDE_MANIFEST.get(folder.lower()) for folder in path.split("/")[:-1])
    return next(filter(None, found), None)


def with_conventions(listed: Iterable[Listed]) -> list[Listed]:
    """Adds the reason to the files that are skipped by convention."""
    every = list(listed)
    projects = projects_of(path for path, _, _ in every)
    return [
        (path, place, reason or (reason_by_convention(path, projects) if place is not None else None))
        for path, place, reason in every
    ]


def walk(root: Path, skips_folder: Callable[[str], str | None] = reason_to_skip_folder) -> Iterator[Listed]:
    """Yields (path, entry, reason to skip) for every file below the root, in the order of names.

    A skipped folder isn't entered: it is yielded once, with a trailing slash.
    """
    pending = [(str(root), "")]
    while pending:
        folder, prefix = pending.pop()
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            yield prefix, None, "unreadable"
            continue
        folders = []
        for entry in entries:
            path = prefix + entry.name.encode(errors="replace").decode()
            if entry.is_symlink():
                yield path, None, "link"
            elif entry.is_dir(follow_symlinks=False):
                path += "/"
                if reason := skips_folder(path):
                    yield path, None, reason
                else:
                    folders.append((entry.path, path))
            elif not entry.is_file(follow_symlinks=False):
                yield path, None, "special file"
            else:
                yield path, entry, None
        pending.extend(reversed(folders))


def read(path: str | os.PathLike[str], most: int, head: int | None = None) -> bytes:
    """Returns the bytes of a regular file, or only the first `head`. Raises Skipped if it has more than `most`.

    Doesn't follow links or block on named pipes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as failure:
        raise Skipped("unreadable") from failure
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Skipped("special file")
        if status.st_size > most:
            raise Skipped("too large")
        return file.read(most + 1 if head is None else head)


_UTF_8, _UTF_16 = ENCODINGS = ("utf-8-sig", "utf-16")


def decode(content: bytes) -> str:
    """Returns the text of a file: UTF-8, or UTF-16 with a byte order mark. Replaces invalid bytes of UTF-8.

    Raises Skipped if the content isn't text or is empty.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = content.decode(_UTF_16)
        except UnicodeDecodeError as failure:
            raise Skipped("not text") from failure
    else:
        text = content.decode(_UTF_8, errors="replace")
    if "\0" in text:
        raise Skipped("not text")
    if not text.strip():
        raise Skipped("empty")
    return text


# Long texts that aren't code: data in addresses and in strings, which is base64, or numbers such as those
# of vector graphics.
_DATA: Final = re.compile(
    r"data:[\w.+-]{1,60}+/[\w.+-]{1,60}+[;,][^\"'`)\s<>]*+"
    r"|[\"'`](?:[A-Za-z0-9+/=_-]{200,}+|[\d .,MmLlHhVvCcSsQqTtAaZzEe+-]{100,}+)(?=[\"'`])"
)
_SCRIPT: Final = re.compile(
    r"<script\b(?![^<>]{0,300}\bjson\b)[^<>]*+>(?P<code>[^<]*+(?:<(?!/script)[^<]*+)*+)", re.IGNORECASE
)
# A page's scripts up to this length are snippets of vendors. A longer one is a bundle.
_LONGEST_SNIPPET: Final = 20_000
_LINES_OF_PAGE: Final = 30


def check_lines(path: str, text: str, limits: Limits, language: str = "") -> int:
    """Returns the number of lines. Raises Skipped if their lengths show that a bundler has written the code.

    Generators write pages without line breaks: in these, only the lines of scripts count.
    """
    lines = text.split("\n")
    if max(map(len, lines)) <= limits.minified_line_length:
        return len(lines)
    code = _DATA.sub("", text)
    is_page = language == "html" and not is_read_in_part(path)
    read = [it["code"] for it in _SCRIPT.finditer(code) if len(it["code"]) > _LONGEST_SNIPPET] if is_page else [code]
    lengths = [len(line) for part in read for line in part.split("\n")]
    if max(lengths, default=0) > limits.max_line_length:
        raise Skipped("line too long")
    in_long_lines = sum(length for length in lengths if length > limits.minified_line_length)
    # A page that people wrote has many lines besides a bundle.
    written = is_page and sum(map(bool, map(str.strip, lines))) >= _LINES_OF_PAGE
    if in_long_lines > len(code) / 2 and not written and len(code) > 4 * limits.minified_line_length:
        raise Skipped("minified")
    return len(lines)


# A page that loads a bundle, and how a bundle begins.
_BUNDLE: Final = pattern_of(_PATHS["bundles"], re.IGNORECASE)
_BUNDLER: Final = pattern_of(_PATHS["bundlers"])
_LONGEST_START: Final = 300


def check_author(path: str, text: str, language: str) -> None:
    """Raises Skipped if a bundler has written a page or script, or if a script begins like a published library."""
    if language == "javascript":
        if _BUNDLER.match(text[:_LONGEST_START]):
            raise Skipped("build output")
        check_copy(path, text)
    elif path.endswith(".html") and _BUNDLE.search(text):
        raise Skipped("build output")


# The comment that a published library begins with: its version and its license.
_BANNER: Final = re.compile(r"\A/\*(?P<text>(?:[^*]|\*(?!/)){20,1500}+)\*/")
_VERSION: Final = re.compile(r"(?:\bv|\bversion[:\s]\s?|@version\s|[a-z]\s)\d{1,3}\.\d{1,3}(?:\.\d|\b)", re.IGNORECASE)
_LICENSE: Final = re.compile(r"licen[sc]e|copyright|\(c\)|©", re.IGNORECASE)
_SMALLEST_LIBRARY: Final = 8_000
_SHORTEST_NAME: Final = 4
# A plugin of jQuery, whose name its authors choose together with the banner.
_JQUERY: Final = re.compile(r"(?:^|/)jquery[.-][\w.-]{1,60}\.js$", re.IGNORECASE)
_AUTHOR: Final = re.compile(r"\bauthor\b|https?://", re.IGNORECASE)


def check_copy(path: str, text: str) -> None:
    """Raises Skipped if a script begins like a published library."""
    of_jquery = _JQUERY.search(path) is not None
    if len(text) < _SMALLEST_LIBRARY and not of_jquery:
        return
    banner = _BANNER.match(text[:3_000].lstrip())
    if banner is None:
        return
    said = banner["text"]
    is_licensed, has_version = _LICENSE.search(said) is not None, _VERSION.search(said) is not None
    if of_jquery:
        is_copy = is_licensed or (has_version and _AUTHOR.search(said) is not None)
    else:
        is_banner = said.startswith("!") or "@license" in said or "@version" in said or _is_named_in(said, path)
        is_copy = is_banner and is_licensed and has_version
    if is_copy:
        raise Skipped("vendored")


def _is_named_in(said: str, path: str) -> bool:
    """Returns whether a banner begins with the file's own name: `Owl Carousel v2.3.4` in owl.carousel.js."""
    name = path.rpartition("/")[2].rpartition(".")[0]
    plain = "".join(filter(str.isalpha, name.lower()))
    words = "".join(filter(str.isalpha, said[:200].lower())).removeprefix("jquery")
    return len(plain) >= _SHORTEST_NAME and words.startswith(plain)


_TAG: Final = re.compile(r"<(/?)([a-zA-Z][\w-]*+)([^<>]*+)>")
_BRACKET: Final = re.compile(r"[(\[{)\]}]")
# Invalid code that the parser nests, and reads in quadratic time: labels such as `a@1:`, and in Python operators
# without a left side, such as `<-<-`.
_INVALID_LABEL: Final = re.compile(r"[\w$]\s{0,9}+@[\s\w@$]{0,60}+:")
_INCOMPLETE: Final = re.compile(r"(?:[<>=!?*/|%&^]{1,3}+|\b(?:in|is|and|or)\b)[\s\\]{0,9}+[-+~]{1,3}+[\s\\]{0,9}+")
_MAX_INVALID_LABELS: Final = 200
_MAX_INCOMPLETE: Final = 100
_MAX_OPEN_COMMENTS: Final = 50
# Elements that have no end tag, or an optional one.
_VOID: Final = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p",
    "li", "td", "tr", "th", "dt", "dd", "option",
})  # fmt: skip


def check_depth(text: str, language: str, limits: Limits) -> None:
    """Raises Skipped if brackets or elements are nested too deeply. An estimate, in linear time."""
    most = limits.max_depth
    _check_invalid(text, language)
    if language == "html":
        if text.count("<") > most:
            _check_elements(text, most)
        return
    if sum(text.count(opening) for opening in "([{") <= most:
        return
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        if depth > most:
            raise Skipped("nested too deep")


def _check_elements(text: str, most: int) -> None:
    depth = 0
    for match in _TAG.finditer(text):
        if match[2].lower() not in _VOID and not match[3].endswith("/"):
            depth += -1 if match[1] else 1
            if depth > most:
                raise Skipped("nested too deep")


def _check_invalid(text: str, language: str) -> None:
    if language != "python":
        if text.count("@") > _MAX_INVALID_LABELS and len(_INVALID_LABEL.findall(text)) > _MAX_INVALID_LABELS:
            raise Skipped("nested too deep")
        return
    depth = end = 0
    for match in _INCOMPLETE.finditer(text):
        depth = depth + 1 if match.start() == end else 1
        end = match.end()
        if depth > _MAX_INCOMPLETE:
            raise Skipped("nested too deep")


def without_open_comments(page: str) -> str:
    """Blanks the starts of comments that never end, if there are many: the parser looks for the end of each."""
    closed = page.rfind("-->") + 1
    if page.count("<!--", closed) <= _MAX_OPEN_COMMENTS:
        return page
    return page[:closed] + page[closed:].replace("<!--", "    ")
