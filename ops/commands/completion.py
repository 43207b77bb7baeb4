"""`headgate completion`: a script that completes verbs, options and choices in a shell, made from the parser itself.

The bash script finds how far the words name verbs (` schema put`), and offers what may stand there. zsh runs the same
one through its bashcompinit. fish has a line for each word, with its explanation.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from ..exits import DONE

__all__ = ["Place", "add_arguments", "bash", "fish", "places", "run", "zsh"]


@dataclass(slots=True)
class Option:
    """An option: its spellings, whether a value follows, the values that it may have (any, when there are none)."""

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    text: str


@dataclass(slots=True)
class Place:
    """What may stand behind some verbs: others, options, or one of a few words."""

    verbs: tuple[str, ...]
    next_verbs: dict[str, str] = field(default_factory=dict)
    options: list[Option] = field(default_factory=list)
    words: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `completion`."""
    parser.add_argument("shell", choices=tuple(_SHELLS), help="the shell that the script is for")
    parser.epilog = 'bash: eval "$(headgate completion bash)" in ~/.bashrc; fish: headgate completion fish | source'


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from headgate.broker.simulator import parsers

    from ..cli import build_parser

    found = places(build_parser())
    simulate = next(place for place in found if place.verbs == ("simulate",))
    options = {one.names: one for parser in parsers("headgate simulate") for one in _options(parser)}
    simulate.options, simulate.words = list(options.values()), ("ring", "--log")
    print(_SHELLS[arguments.shell](found), end="")
    return DONE


def places(parser: argparse.ArgumentParser, verbs: tuple[str, ...] = ()) -> list[Place]:
    """Every place of a command line, the outermost first."""
    place = Place(verbs, options=list(_options(parser)))
    found = [place]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {one.dest: one.help or "" for one in action._choices_actions}
            for verb, below in action.choices.items():
                place.next_verbs[verb] = texts.get(verb, "")
                found += places(below, (*verbs, verb))
        elif not action.option_strings and action.choices:
            place.words += tuple(map(str, action.choices))
    return found


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if action.option_strings and action.help is not argparse.SUPPRESS:
            text = parser._get_formatter()._expand_help(action) if action.help else ""
            choices = tuple(map(str, action.choices or ()))
            yield Option(tuple(action.option_strings), action.nargs != 0, choices, text)


def bash(found: list[Place]) -> str:
    """The script for bash."""
    verbs = "|".join(_at(place) for place in found if place.verbs)
    values, words = [], []
    for place in found:
        for option in place.options:
            if option.takes_value:
                before = "|".join(_at(place, name) for name in option.names)
                offered = f'COMPREPLY=($(compgen -W {quote(" ".join(option.choices))} -- "$word")); '
                values.append(f"        {before}) {offered if option.choices else ''}return ;;")
        offered = " ".join([*place.next_verbs, *place.words, *(name for one in place.options for name in one.names)])
        words.append(f"        {_at(place)}) words={quote(offered)} ;;")
    return _BASH.format(verbs=verbs, values="\n".join(values), words="\n".join(words))


def zsh(found: list[Place]) -> str:
    """The script for zsh."""
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{bash(found)}"


def fish(found: list[Place]) -> str:
    """The script for fish."""
    lines = [_FISH.format(verbs=" ".join(quote(" ".join(place.verbs)) for place in found if place.verbs))]
    for place in found:
        head = f"complete -c headgate -n {_fish(' '.join(['__headgate_at', *place.verbs]))}"
        offered = place.next_verbs | dict.fromkeys(place.words, "")
        lines += [f"{head} -f -a {word} -d {_fish(text)}" for word, text in offered.items()]
        for option in place.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = (
                f" -x -a {_fish(' '.join(option.choices))}" if option.choices else " -r" if option.takes_value else ""
            )
            lines.append(f"{head} {names}{value} -d {_fish(option.text)}")
    return "\n".join(lines) + "\n"


def _at(place: Place, *more: str) -> str:
    """The verbs of a place as one word of the shell, a space before each."""
    return quote("".join(f" {word}" for word in (*place.verbs, *more)))


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_BASH = """\
_headgate() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" at="" words="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$at ${{COMP_WORDS[i]}}" in
        {verbs}) at="$at ${{COMP_WORDS[i]}}" ;;
        esac
    done
    COMPREPLY=()
    case "$at ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
    esac
    case "$at" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _headgate headgate
"""

_FISH = """\
set -g __headgate_verbs {verbs}
function __headgate_at
    set -l at
    for word in (commandline -opc)[2..-1]
        if contains -- (string join ' ' $at $word) $__headgate_verbs
            set at $at $word
        end
    end
    test "$at" = "$argv"
end"""

_SHELLS: dict[str, Any] = {"bash": bash, "zsh": zsh, "fish": fish}
