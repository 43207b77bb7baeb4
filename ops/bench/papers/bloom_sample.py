"""The documents and twigs of BLOOM, chapter 3, made anew; and real ones.

The paper's sample is 3,680 documents of nine DTDs (Table 3.1), and twigs from a generator. Here are nine DTDs with as
many elements and attributes as those, each a tree of names of which some occur in several, documents in which a part
of a tree's children occur, once or several times, and twigs drawn from the trees. How many pairs there are in all
decides how often a filter errs, and is printed beside the paper's.

The real documents stand beside the repository where there are any (`../shared/data/xml`); `feeds` are some 430 of them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

__all__ = ["DTDS", "Dtd", "Named", "documents_of", "dtds", "feeds", "real_documents", "twigs_of", "twigs_of_tree"]

DTDS = {
    "SigmodRecord": (11, 1),
    "actors": (9, 0),
    "bib": (13, 1),
    "club": (13, 0),
    "department": (18, 0),
    "movies": (12, 0),
    "personal": (15, 1),
    "profile": (18, 0),
    "quote": (12, 0),
}
"""Table 3.1: name -> elements and attributes."""

_COMMON = ("name", "title", "address", "date", "phone", "email", "last", "first", "city", "note")
_REAL = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "xml"


@dataclass(slots=True)
class Named:
    """An element of a DTD, or an attribute (@), with what may stand below it."""

    name: str
    below: list[Named] = field(default_factory=list)


@dataclass(slots=True)
class Dtd:
    """A tree of names."""

    name: str
    root: Named


def dtds(seed: int) -> list[Dtd]:
    """Nine DTDs of the paper's sizes."""
    made = []
    for name, (elements, attributes) in DTDS.items():
        random = Random(f"{seed} {name}")
        root = Named(name)
        nodes, common = [root], random.sample(_COMMON, 4)
        for number in range(1, elements):
            above = nodes[max(0, random.randrange(len(nodes)) - 2)] if random.random() < 0.7 else nodes[-1]
            node = Named(common[number % 4] if number >= elements - 4 else f"{name[:3]}{number}")
            above.below.append(node)
            nodes.append(node)
        for number in range(attributes):
            random.choice(nodes).below.append(Named(f"@id{number}"))
        made.append(Dtd(name, root))
    return made


def documents_of(dtd: Dtd, count: int, random: Random) -> Iterator[bytes]:
    """Documents of a DTD: each child occurs with four in five, up to three times."""
    for _ in range(count):
        yield _text(dtd.root, random).encode()


def _text(node: Named, random: Random) -> str:
    parts, attributes = [], ""
    for child in node.below:
        if random.random() < 0.2:
            continue
        if child.name[0] == "@":
            attributes += f' {child.name[1:]}="{random.randrange(1000)}"'
        else:
            parts += [_text(child, random) for _ in range(random.randint(1, 3))]
    inside = "".join(parts) if parts else f"text {random.randrange(10_000)} of {node.name}"
    return f"<{node.name}{attributes}>{inside}</{node.name}>"


def twigs_of(trees: Sequence[Dtd], count: int, random: Random, depth: int = 3) -> list[str]:
    """Twigs drawn from DTDs in turn, of paths up to a depth."""
    return [twigs_of_tree(trees[number % len(trees)].root, random, depth) for number in range(count)]


def twigs_of_tree(root: Named, random: Random, depth: int = 3) -> str:
    """A twig from somewhere in a tree."""
    nodes, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        waiting += node.below
        nodes.append(node)
    starts = [node for node in nodes if node.below] or [root]
    start = root if random.random() < 0.5 else random.choice(starts)
    return ("/" if start is root and random.random() < 0.5 else "") + _twig(start, random, depth)


def _twig(node: Named, random: Random, depth: int) -> str:
    if depth <= 1 or not node.below:
        return node.name
    chosen = random.sample(node.below, min(len(node.below), random.choice((1, 1, 2))))
    return node.name + "".join(f"[{_twig(child, random, depth - 1)}]" for child in chosen)


def real_documents() -> dict[str, list[bytes]]:
    """The sets that are there, by name."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(_REAL.rglob("*")):
        if path.suffix == ".xml":
            found.setdefault(path.parent.name if path.parent != _REAL else path.stem, []).append(path.read_bytes())
        elif path.suffix == ".gz":
            with tarfile.open(path) as archive:
                members = [one for one in archive.getmembers() if one.isfile() and one.name.endswith(".xml")]
                texts = [archive.extractfile(one).read() for one in members]  # type: ignore[union-attr]  # they are files
                found.setdefault(path.parent.name if path.parent != _REAL else path.name.partition(".")[0], []).extend(
                    texts
                )
    return found


def feeds() -> list[bytes]:
    """The feeds among them; none where they are not."""
    return real_documents().get("feeds", [])
