"""A plot as a piece of a page: SVG with a title, a description and no names that clash."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["drawn"]

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
WIDTH = 3.6
"""In inches. A narrow figure has large writing for its size: it is read on a phone, too."""
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def drawn(draw: Callable[[Axes], Axes], name: str, *, title: str, words: str, height: float) -> str:
    """Draw on a figure of its own and return it as an element ``<svg>``.

    Parameters
    ----------
    draw : callable
        Draws on the Axes that it is given.
    name : str
        What the names within the SVG begin with; one for each figure of a page.
    title, words : str
        What the plot is called, and what a reader who cannot see it should know.
    height : float
        In inches; the width is that of a column.

    Returns
    -------
    str
        The element, to stand in HTML as it is.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Text stays text: it can be searched, copied and read aloud, and the page stays small.
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "figure.constrained_layout.use": True,
    }
    with rc_context(settings):
        figure = Figure(figsize=(WIDTH, height))
        draw(figure.subplots())
        file = BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return inlined(file.getvalue(), name, title, words)


def inlined(svg: bytes, name: str, title: str, words: str) -> str:
    """Fit an SVG file into a page: own names, no sizes, no styles that reach beyond it."""
    root = ElementTree.fromstring(svg)
    for part in list(root):
        if part.tag in (f"{SVG}metadata",):
            root.remove(part)
    for parent in list(root.iter()):
        for part in list(parent):
            if part.tag == f"{SVG}style":
                parent.remove(part)
    used = set(REFERENCE.findall(svg.decode()))
    links = (str(part.get(LINK, "")) for part in root.iter())
    used |= {link[1:] for link in links if link.startswith("#")}
    for part in root.iter():
        part.tag = part.tag.removeprefix(SVG) if isinstance(part.tag, str) else part.tag
        if (link := part.attrib.pop(LINK, None)) is not None:
            part.set("href", f"#{name}-{link[1:]}" if link.startswith("#") else link)
        if (own := part.attrib.pop("id", None)) in used:
            part.set("id", f"{name}-{own}")
        for key, value in part.attrib.items():
            part.set(key, REFERENCE.sub(rf"url(#{name}-\1)", value))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    for at, (tag, text) in enumerate({"title": title, "desc": words}.items()):
        element = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        element.tail = "\n"
        root.insert(at, element)
    root.attrib.update(
        {
            "role": "img",
            "aria-labelledby": f"{name}-title",
            "aria-describedby": f"{name}-desc",
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        }
    )
    return ElementTree.tostring(root, encoding="unicode")
