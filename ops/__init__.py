"""Tools with which people operate and measure Headgate. Everything here may import everything; nobody imports it.

    cli          the command `headgate`: its verbs, its exit codes
    commands/    one file per verb or family of verbs
    demo/        `headgate demo`: a broker, a quote feed, subscribers, and the proof that each got exactly its own
    bench/       `headgate bench`: this broker and its peers under the same load
    RUNBOOK.md   symptoms, settings, metrics

A verb is a module with `add_arguments(parser)` and `run(arguments)`, which returns the exit code. Heavy imports (rich,
pydantic, lark) happen inside `run`, so that `headgate pub` in a script starts quickly.
"""
