"""What a scrape holds: every metric there is, true numbers, a bounded number of series, names of streams escaped."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import headgate
from headgate.broker.daemon.limits import DaemonLimits
from headgate.broker.daemon.metrics import METRICS
from tests.support.http import get
from tests.support.live_broker import LiveBroker, live_broker


async def scraped(broker: LiveBroker, path: str = "/metrics") -> dict[str, list[Any]]:
    """Samples by name."""
    samples: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families((await get(broker.admin, path)).text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


async def test_every_metric_is_in_a_scrape_and_every_one_of_a_scrape_is_listed() -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as client:
        await client.publish("quotes/NYSE", {"price": 1.0})
        await client.ask("schema.put", stream="orders", schema={"durability": "stored"})
        await client.subscribe("orders", durable="mailer")
        found = set(await scraped(broker))
    assert {"headgate_match_seconds_bucket", "headgate_match_seconds_sum", "headgate_match_seconds_count"} <= found
    found = {re.sub(r"(?<=match_seconds)_(bucket|sum|count)$", "", name) for name in found}
    assert found == set(METRICS)
    assert len(METRICS) == len(set(METRICS))


async def test_the_numbers_are_true() -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as client:
        subscription = await client.subscribe("quotes", where="price > 1")
        await client.publish_batch("quotes/NYSE", {"price": [1.0, 2.0, 3.0]}, [b"", b"", b""])
        with pytest.raises(headgate.Refused):
            await client.publish("quotes", {}, mode="stored")
        samples = await scraped(broker)
        values = {name: found[0].value for name, found in samples.items()}
        assert values["headgate_batches_received_total"] == 2
        assert values["headgate_events_received_total"] == 3
        assert values["headgate_events_refused_total"] == 1
        assert values["headgate_events_delivered_total"] == 2
        assert values["headgate_subscriptions"] == values["headgate_connections"] == values["headgate_sessions"] == 1
        assert values["headgate_stream_events_received_total"] == 3
        assert values["headgate_stream_events_delivered_total"] == 2
        assert 0 < values["headgate_bytes_received_total"] <= broker.daemon.server.bytes_in
        assert 0 < values["headgate_bytes_sent_total"] <= broker.daemon.server.bytes_out
        assert {sample.labels["reason"] for sample in samples["headgate_events_dropped_total"]} >= {"slow", "lost"}
        await subscription.close()


async def test_what_is_compared_between_brokers_names_the_cluster() -> None:
    async with live_broker(cluster="staging") as broker:
        samples = await scraped(broker)
    named = [name for name, found in samples.items() if found[0].labels == {"cluster": "staging"}]
    assert {name for name in samples if name.startswith("headgate_cluster_")} < set(named)
    assert {"headgate_peer_links", "headgate_peer_refusals"} < set(named)


async def test_the_histogram_accumulates_and_counts_reads() -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as client:
        for _ in range(5):
            await client.publish("a", {})
        samples = await scraped(broker)
        counts = [sample.value for sample in samples["headgate_match_seconds_bucket"]]
        assert counts == sorted(counts)
        assert samples["headgate_match_seconds_bucket"][-1].labels["le"] == "+Inf"
        assert counts[-1] == samples["headgate_match_seconds_count"][0].value >= 6
        assert 0 < samples["headgate_match_seconds_sum"][0].value < 10


async def test_the_busiest_streams_have_series_of_their_own() -> None:
    limits = DaemonLimits(stream_series=3)
    async with live_broker(limits) as broker, await headgate.connect(broker.address) as client:
        for number in range(10):
            await client.publish_batch(f"stream{number}", {}, [b""] * (number + 1))
        samples = await scraped(broker)
    for name in ("headgate_stream_events_received_total", "headgate_stream_events_delivered_total"):
        assert {sample.labels["stream"] for sample in samples[name]} == {"stream7", "stream8", "stream9"}
    assert samples["headgate_events_received_total"][0].value == 55


@pytest.mark.parametrize("stream", ['a"b', "a\\b", 'a"} 1\\', "a b=c,{}", "Ótê東", "#"])
async def test_the_name_of_a_stream_cannot_break_a_scrape(stream: str) -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as client:
        await client.publish(stream, {})
        samples = await scraped(broker)
    (sample,) = samples["headgate_stream_events_received_total"]
    assert sample.labels == {"stream": stream}
    assert sample.value == 1


def values_of(samples: dict[str, list[Any]], what: str) -> dict[str, float]:
    """One number of each durable subscription."""
    found = samples.get(f"headgate_durable_subscription_{what}", [])
    return {sample.labels["subscription"]: sample.value for sample in found}


async def test_durable_subscriptions_for_which_most_waits_have_series_of_their_own() -> None:
    limits = DaemonLimits(durable_series=2)
    async with live_broker(limits) as broker, await headgate.connect(broker.address) as client:
        await client.ask("schema.put", stream="orders", schema={"durability": "stored"})
        for number in range(4):
            subscription = await client.subscribe("orders", f"total > {number}", durable=f"s{number}", window=1)
            await subscription.close()
        await client.publish_batch("orders", {"total": [1.0, 2.0, 3.0]}, [b""] * 3, mode="stored")
        working = await client.subscribe("", durable="s1", window=1)
        event = await anext(working)
        samples = await scraped(broker)
        assert values_of(samples, "waiting_events") == {"s0": 3, "s1": 1}
        assert values_of(samples, "unacked_events") == values_of(samples, "clients") == {"s0": 0, "s1": 1}
        assert values_of(samples, "redelivered_events") == {"s0": 0, "s1": 0}
        assert 0 <= values_of(samples, "oldest_seconds")["s0"] < 60
        assert samples["headgate_durable_subscriptions"][0].value == 4
        assert samples["headgate_durable_waiting_events"][0].value == 3 + 1 + 1 + 0
        assert samples["headgate_durable_unacked_events"][0].value == 1
        assert {sample.labels["source"] for sample in samples["headgate_durable_fetches_total"]} == {
            "memory",
            "disk",
            "broker",
        }
        await event.ack(wait=True)
        assert (await scraped(broker))["headgate_durable_acknowledged_events_total"][0].value == 1


async def test_any_durable_subscription_is_told_of_when_it_is_asked_for() -> None:
    limits = DaemonLimits(durable_series=2)
    async with live_broker(limits) as broker, await headgate.connect(broker.address) as client:
        await client.ask("schema.put", stream="orders", schema={"durability": "stored"})
        for name in ("a", "b&c=d", 'Ótê "x\\', "z"):
            await (await client.subscribe("orders", durable=name)).close()
        await client.publish("orders", {}, mode="stored")
        path = "/metrics/detailed?subscription="
        both = {"b&c=d": 1, 'Ótê "x\\': 1}
        for _ in range(1000):  # a feed begins in a turn of its own
            samples = await scraped(broker, path + "b%26c%3Dd&subscription=%C3%93t%C3%AA%20%22x%5C")
            if values_of(samples, "waiting_events") == both:
                break
        assert values_of(samples, "waiting_events") == both
        assert set(samples) == {
            f"headgate_durable_subscription_{what}"
            for what in ("waiting_events", "unacked_events", "redelivered_events", "clients", "oldest_seconds")
        }
        assert not await scraped(broker, path + "of%20another%20broker")
        many = await scraped(broker, path + "z&subscription=z&subscription=a&subscription=b%26c%3Dd")
        assert set(values_of(many, "waiting_events")) == {"z", "a"}, "no more than the limit"
