"""Records of csv text, taken apart so that all bytes but some fields stay the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Record = tuple[list[str], str]  # fields with their quotes, and the line end

LINES = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


def split_records(blocks: Iterable[str], separator: str) -> Iterator[list[Record]]:
    """All records, in lists; a quoted field may contain line ends."""
    left: list[str] = []
    waiting, wanted = 0, 0  # characters; a record longer than all that is left needs more
    for block in blocks:
        left.append(block)
        waiting += len(block)
        if waiting < wanted:
            continue
        records, rest = _take_records("".join(left), separator, False)
        left, waiting, wanted = [rest], len(rest), 2 * len(rest)
        yield records
    yield _take_records("".join(left), separator, True)[0]


def _take_records(text: str, separator: str, last: bool) -> tuple[list[Record], str]:
    """The complete records of a text, and the text that is left; none if it is the last."""
    if '"' in text:
        return _take_quoted(text, separator, last)
    end = len(text) if last else max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
    lines = LINES.findall(text[:end])
    if lines and not any(lines[-1]):
        lines.pop()  # the end of the text, after a line end
    return [(line.split(separator), ended) for line, ended in lines], text[end:]


def _take_quoted(text: str, separator: str, last: bool) -> tuple[list[Record], str]:
    """`_take_records` field by field."""
    plain = rf"[^{separator}\r\n]*"
    field = re.compile(rf'("(?>[^"]*(?:""[^"]*)*)"{plain}|({plain}))({separator}|\r\n|\r|\n|\Z)')
    records: list[Record] = []
    fields: list[str] = []
    start = at = 0
    while at < len(text):
        found = field.match(text, at)
        assert found is not None  # an empty field at least
        open_quote = found[2] is not None and found[2].startswith('"')
        cut = found.end() == len(text) and found[3] in ("", "\r")
        if not last and (cut or open_quote):
            return records, text[start:]
        fields.append(found[1])
        at = found.end()
        if found[3] != separator:
            records.append((fields, found[3]))
            fields, start = [], at
    if fields and last:
        records.append(([*fields, ""], ""))
    return records, text[start:]
