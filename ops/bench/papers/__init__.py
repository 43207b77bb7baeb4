"""The papers' own figures beside ours: the code of the broker's core, at the papers' sizes, no sockets and no clock.

`python -m headgate.ops.bench.papers [NAME]`, with no name every paper, or one of these:

    routing    hops, tables and ranges of RANGE and STATE     routing.py
    placements one anchor a subscription beside RANGE's counting    placements.py
    nodes      the same through Nodes of the product, up to 100     node_placements.py
    delivery   direct links beside multicast trees, up to 64 brokers      delivery.py
    bloom-filtering filters of documents (BLOOM, chapter 3)  bloom_filtering.py, bloom_sample.py
    dissemination dynamic filters on a segment, in levels, at one owner (STATE)      state_dissemination.py
    bloom-cube publications on the hypercube of Bloom keys (BLOOM)      bloom_cube.py
    bloom-brokers documents through five real brokers (BLOOM 4.5)    bloom_brokers.py
    bloom-repair the same while one of them is killed (BLOOM 5)   bloom_repair.py
    bloom-upkeep what brokers say at rest (BLOOM 4.21, 4.22)     bloom_upkeep.py, node_ring.py
    replication subscriptions reached when brokers fail (BLOOM)      replication.py

Each is a module with `add_arguments(parser)` and `run(arguments) -> exit code`. Everything is drawn from one seed,
which is printed, so that a table can be made again to the last digit; but `bloom-brokers` and `bloom-repair` run real
brokers.
"""

__all__: list[str] = []
