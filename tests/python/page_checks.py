"""What must hold for every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Checker(HTMLParser):
    """Checks that tags are closed in order, and keeps the text and the references."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.identities: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [v or "" for k, v in attrs if k in ("href", "src", "xlink:href")]
        self.identities += [v or "" for k, v in attrs if k == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def check_page(page: str) -> Checker:
    """Checks that a page is well formed, and loads nothing."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert page.startswith("<!DOCTYPE html>")
    for reference in checker.references:
        assert reference.startswith("#") and reference[1:] in checker.identities, reference
    assert len(set(checker.identities)) == len(checker.identities)
    without_names = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|url\((?!#)|@import|<link|fetch\(|XMLHttp", without_names)
    assert "prefers-color-scheme: dark" in page
    return checker
