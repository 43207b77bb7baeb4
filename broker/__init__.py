"""The broker: a Node (`broker.core`) and its two hosts, `broker.daemon` (sockets, real time) and `broker.simulator`.

A host is this loop, and little else:

    node = Node(config, random, now())
    for each thing that happens:                  bytes became messages, a link went down, a deadline came
        for effect in node.handle(thing, now()):
            Send  -> the link's session           Close -> give the link up
            Store -> the small records            Note  -> log line, trace line
        arm one timer for node.next_deadline()

`daemon/driver.py` and `simulator/engine/world.py` are that loop twice; read them side by side.
"""

__all__: list[str] = []
