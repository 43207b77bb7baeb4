"""The workloads of a run: clients that subscribe and publish, and the history of what they did.

drawn      Workload draws subscriptions and batches of STREAMS, Traits say what kind of client one is; event_name is
           what an event calls itself
           DeltaWorkload draws prices that walk, and subscriptions with DELTA
client     Client, ClusterClient: subscribe, publish, lose their connections, come back. Delivery: one event
listener   Listener: subscribes to all of STREAM, and again whenever it is cut off
producer   Producer: publishes to the stored stream STREAM, and sends again whatever has no answer
durable    Consumer, Changer, Mover: clients and operators of durable subscriptions (DurableName) of the events of a
           DurableProducer, with one of CONDITIONS and of SHARINGS; Receipt: an event that a client was handed; Change:
           another condition; Move: another place. color_of and lane_of say which attributes an event has, is_poison
           whether nobody gets done with it
history    History, ClusterHistory, LogHistory: what was published and accepted (Event), and what each subscription
           must be sent (SubscriptionLog), by the plain meaning of its Words, which an Amendment changes. Incidents:
           what may be lost without a word
"""

from .client import Client, ClusterClient, Delivery
from .drawn import STREAMS, Traits, Workload, event_name
from .drawn_delta import DeltaWorkload
from .durable import (
    CONDITIONS,
    SHARINGS,
    Change,
    Changer,
    Consumer,
    DurableName,
    DurableProducer,
    Move,
    Mover,
    Receipt,
    color_of,
    is_poison,
    lane_of,
)
from .history import Amendment, ClusterHistory, Event, History, Incidents, LogHistory, SubscriptionLog, Words
from .listener import Listener
from .producer import STREAM, Producer

__all__ = [
    "CONDITIONS",
    "Change",
    "Changer",
    "Consumer",
    "DurableName",
    "DurableProducer",
    "Move",
    "Mover",
    "SHARINGS",
    "Amendment",
    "Words",
    "color_of",
    "is_poison",
    "lane_of",
    "STREAM",
    "STREAMS",
    "Client",
    "ClusterClient",
    "ClusterHistory",
    "Delivery",
    "DeltaWorkload",
    "Event",
    "History",
    "Incidents",
    "Listener",
    "LogHistory",
    "Producer",
    "Receipt",
    "SubscriptionLog",
    "Traits",
    "Workload",
    "event_name",
]
