"""Matching: which subscriptions does an event satisfy? Pure content; it knows no broker, no wire and no clock.

A subscription is a topic pattern and, if it likes, a condition:

    >>> from headgate.matching import Index, parse_condition, parse_pattern
    >>> index = Index()
    >>> index.add(1, parse_pattern("quotes/*/OTE"), parse_condition("price BETWEEN 8.30 AND 8.70"))
    >>> index.add(2, parse_pattern("quotes"))

A batch of events is a column of topics (or one topic for all) and a column for each attribute. `match` answers in
groups: these subscriptions, these rows.

    >>> sorted(index.match(["quotes/NYSE/OTE", "quotes/NYSE/IBM"], 2, {"price": [8.5, 90.0]}))
    [((1, 2), [0]), ((2,), [1])]
    >>> index.attributes()
    ('price',)

The language is SQL's WHERE clause (SPEC.md says exactly which part of it). A condition is a tree; one function gives
its meaning, and everything fast must agree with it:

    >>> from headgate.matching import compile_condition, evaluate, to_text
    >>> tree = parse_condition("volume > 1000 OR symbol IN ('OTE', 'IBM')")
    >>> evaluate(tree, {"symbol": "OTE"}), evaluate(tree, {"volume": 7}), evaluate(tree, {"volume": 7, "symbol": "X"})
    (True, None, False)
    >>> to_text(tree)
    "`volume` > 1000 OR `symbol` IN ('OTE', 'IBM')"
    >>> compile_condition(tree).attributes
    ('volume', 'symbol')

**The condition.** `parse_condition` gives a `Tree`; `attributes`, `conjuncts` and `cost` answer questions about it.
`extensions` lists its `XPath` and `Delta` conjuncts, which need more than one event's attributes, `deltas` those of the
second kind, and `static_part` is the rest; `event_part` is all but the `Delta` conjuncts. `evaluate` is the meaning on
a row of `Value`, `explain` the same with a `Verdict` for each predicate (an `Explanation`), `compile_condition` a fast
form (`Compiled`: names, and a test of their values). `to_text` prints the canonical text; `to_spark` what Spark
evaluates over split columns, which `spark_columns` names.

**The topic.** `check_topic` gives the levels of an event's topic, `parse_pattern` a `Pattern`.

**What moved.** DELTA depends on what a subscription was last sent: the room `dynamic` decides that.

**The index.** `Index` has add, remove, match, statistics and validate; `Matches` is what match answers, `Statistics`
a snapshot. `DumbIndex` has the same verbs, evaluates everything, and says what is right.

Order of reading: `values` (how two values compare), `tree`, `meaning` (what is true), `dumb` (an index that evaluates
everything), then the rooms, each with its manual: `structure` (twigs and filters), `language` (text, tree and code),
`topics`, `index`, `dynamic`.

Bad text raises `ConditionError`, `TopicError` or `PatternError`, all of them `MatchingError`. Matching never raises.
"""

from __future__ import annotations

from headgate.matching.dumb import DumbIndex
from headgate.matching.errors import ConditionError, MatchingError, PatternError, TopicError
from headgate.matching.index import Index, Matches, Statistics
from headgate.matching.language import (
    Compiled,
    Explanation,
    Verdict,
    compile_condition,
    explain,
    parse_condition,
    spark_columns,
    to_spark,
    to_text,
)
from headgate.matching.meaning import evaluate
from headgate.matching.topics import Pattern, check_topic, parse_pattern
from headgate.matching.tree import (
    Delta,
    Tree,
    XPath,
    attributes,
    conjuncts,
    cost,
    deltas,
    event_part,
    extensions,
    static_part,
)
from headgate.matching.values import Value

__all__ = [
    "Compiled",
    "ConditionError",
    "Delta",
    "DumbIndex",
    "Explanation",
    "Index",
    "Matches",
    "MatchingError",
    "Pattern",
    "PatternError",
    "Statistics",
    "TopicError",
    "Tree",
    "Value",
    "Verdict",
    "XPath",
    "attributes",
    "check_topic",
    "compile_condition",
    "conjuncts",
    "cost",
    "deltas",
    "evaluate",
    "event_part",
    "explain",
    "extensions",
    "parse_condition",
    "parse_pattern",
    "spark_columns",
    "static_part",
    "to_spark",
    "to_text",
]
