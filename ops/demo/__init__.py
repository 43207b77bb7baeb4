"""`headgate demo`: a broker, a feed of quotes, subscribers who each want something else, and the proof.

    limits    how many, how fast, how long
    feed      quotes by random walk from a seed: the same seed, the same quotes
    audience  the subscribers, and what each has received
    host      the broker, a process of its own with a data folder that goes when it ends
    proof     what each should have received, by evaluating its condition on every quote
    view      the live table, or lines; and the verdict
    scene     the whole play: start, publish, wait, prove, stop

Everything goes through the shipped client and a real broker over sockets. The proof shares nothing with the broker's
index: it makes the quotes again from the seed and asks `matching.evaluate`, the plain meaning of a condition.
"""
