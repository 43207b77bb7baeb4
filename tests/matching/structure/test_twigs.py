"""matching/structure/twigs.py: twigs, their items and their XPath text. (matching/SPEC.md, 7.1 to 7.5.)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from headgate.matching import ConditionError, parse_condition, to_text
from headgate.matching.structure import Twig, TwigError, filter_of, parse_twig
from tests.matching.structure.samples import twig_texts, xml_documents, xml_items


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("book", "book"),
        ("//book", "book"),
        (" // book / title ", "book/title"),
        ("/bib/book[author/last][title]", "/bib/book[author/last][title]"),
        ("/bib/book[title][author[last]][title]", "/bib/book[author/last][title]"),
        ("book[title]", "book/title"),
        ("book[@id]", "book/@id"),
        ("a[@x]='1'", "a[@x]='1'"),
        ("a[b = '1']", "a/b='1'"),
        ("a[b='1']/c", "a[b='1'][c]"),
        ('a="it\'s"', 'a="it\'s"'),
        ("@id='7'", "@id='7'"),
        ("größe/_x-1.y", "größe/_x-1.y"),
        ("a=''", "a=''"),
    ],
)
def test_a_twig_has_one_canonical_text(text: str, canonical: str) -> None:
    twig = parse_twig(text)
    assert twig.text == canonical
    assert parse_twig(canonical) == twig


def test_the_items_of_a_twig_are_its_names_its_pairs_and_its_root() -> None:
    twig = parse_twig("/bib/book[author/last][@id='7']")
    assert twig.items() == {
        *("r/bib", "n/bib", "n/book", "n/author", "n/last", "n/@id"),
        *("s/bib/book", "s/book/author", "s/author/last", "s/book/@id"),
    }
    assert twig.values() == {"v/@id/7"}
    assert parse_twig("book").items() == {"n/book"}
    assert parse_twig(f"a='{'x' * 64}'").values() and not parse_twig(f"a='{'x' * 65}'").values()


@pytest.mark.parametrize(
    ("text", "column", "advice"),
    [
        ("", 1, "a name such as"),
        ("/", 2, "a name such as"),
        ("a/*", 3, "a name, or a relative twig"),
        ("a[@*]", 3, "a name, or a relative twig"),
        ("a//b", 2, "every name between"),
        ("a[//b]", 3, "a name such as"),
        ("a[1]", 3, "a name in [..]"),
        ("a[", 3, "a name such as"),
        ("a[b", 4, "]"),
        ("a]", 2, "the end of the twig"),
        ("child::a", 1, "child by child with /"),
        ("a/text()", 3, "[name='text']"),
        ("a[last()]", 3, "[name='text']"),
        ("x:a", 1, "the name behind the colon"),
        ("a='x", 3, "a closing quote"),
        ("a=5", 3, "text in quotes"),
        ("a[b and c]", 5, "[a][b] for a and b"),
        ("a[.='x']", 3, "names from the top down"),
        ("a/..", 3, "names from the top down"),
        ("a[b!='1']", 4, "= and a text in quotes"),
        ("a[b<2]", 4, "= and a text in quotes"),
        ("a|b", 2, "two subscriptions"),
        ("/@id", 1, "//@id"),
        ("@id/a", 4, "the end of the path"),
        ("a[b]='x'", 1, "the child that has it"),
        ("$a", 1, "a text in quotes"),
        ("a='\x01'", 4, "a text that XML can hold"),
        ("a/\ud800", 3, "a name such as"),
        ("/" + "a/" * 32 + "a", 66, "at most 32 names below one another"),
        ("a" + "[b]" * 64, 192, "at most 64 names"),
        ("x" * 256, 1, "at most 255 bytes"),
        ("a='" + "x" * 4096 + "'", 1, "at most 4096 bytes"),
    ],
)
def test_what_a_twig_cannot_ask_is_refused_at_its_column_with_what_to_write(
    text: str, column: int, advice: str
) -> None:
    with pytest.raises(TwigError) as caught:
        parse_twig(text)
    assert caught.value.column == column
    assert advice in caught.value.expected
    assert str(caught.value)


def test_a_wrong_twig_is_shown_at_its_column_in_the_condition() -> None:
    text = "a = 1 AND XPATH 'b[@x=''1'']/*'"
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    assert text[caught.value.column - 1 :] == "*'"


def test_conditions_keep_the_canonical_twig() -> None:
    tree = parse_condition("XPATH '// book [ title ] [ author = ''It'' ]'")
    assert to_text(tree) == "XPATH 'book[author=''It''][title]'"
    assert parse_condition(to_text(tree)) == tree


@given(st.text(max_size=40))
def test_any_text_is_a_twig_or_refused_at_a_column_of_it(text: str) -> None:
    try:
        twig = parse_twig(text)
    except TwigError as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert parse_twig(twig.text) == twig


@given(twig_texts())
def test_a_twig_read_from_its_own_text_is_the_same(text: str) -> None:
    twig = parse_twig(text)
    assert parse_twig(twig.text) == twig
    assert isinstance(twig, Twig)


@given(xml_documents(), twig_texts())
def test_a_document_that_lxml_finds_the_twig_in_has_all_its_items(document: str, text: str) -> None:
    """BLOOM 3.2.3: the pattern's structure is a part of the document's."""
    twig = parse_twig(text)
    root = etree.fromstring(document)
    items = xml_items(root)
    found = root.getroottree().xpath(twig.xpath())
    assert not found or (twig.items() | twig.values()) <= items
    length, hashes = 64, 2
    if found:
        assert not twig.filter(length, hashes) & ~filter_of(items, length, hashes)
