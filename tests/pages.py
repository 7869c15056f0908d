"""A page of HTML as a browser would find it."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, and text by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.text = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "use", "path", "br", "img"):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in self.stack:
            self.text.setdefault(tag, []).append(data)

    def words(self, tag):
        return " ".join("".join(self.text.get(tag, [])).split())
