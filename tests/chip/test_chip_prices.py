"""Prices: which quotation is used, what a user's file changes, and that absence is not zero."""

from __future__ import annotations

import pytest

from neuron_chip.gpus import GPU_INSTANCES, H100, gpu_instance, gpu_seconds
from neuron_chip.instances import INSTANCES
from neuron_chip.prices import (
    MARKETS,
    PRICES,
    NoPriceError,
    Price,
    price_of,
    quotations,
    with_overrides,
)
from neuron_chip.work import Work


def test_trn2_is_priced_by_capacity_block_because_no_on_demand_price_exists():
    price = price_of("trn2.3xlarge")
    assert (price.usd_per_hour, price.market) == (2.235, "capacity_block")


def test_on_demand_comes_first_where_it_exists():
    assert price_of("p5.48xlarge").usd_per_hour == 55.04
    assert price_of("p5.48xlarge", market="capacity_block").usd_per_hour == 34.608


def test_unknown_price_is_an_error_that_shows_how_to_state_one():
    assert quotations("trn3-ultraserver-gen1") == ()
    with pytest.raises(NoPriceError, match=r'\["trn3-ultraserver-gen1"\] usd_per_hour'):
        price_of("trn3-ultraserver-gen1")
    with pytest.raises(NoPriceError, match="known: capacity_block, spot"):
        price_of("trn2.3xlarge", market="on_demand")


def test_user_file_overrides_and_adds(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(
        '["trn2.3xlarge"]\nusd_per_hour = 1.5\n[trn3-x]\nusd_per_hour = 9\nseen = "2027-01"\n'
    )
    table = with_overrides(path)
    assert price_of("trn2.3xlarge", table=table).usd_per_hour == 1.5
    assert price_of("trn3-x", table=table).seen == "2027-01"
    assert price_of("p5.48xlarge", table=table).usd_per_hour == 55.04


def test_unquoted_instance_names_are_understood(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text("[trn2.48xlarge]\nusd_per_hour = 30.0\n")
    assert price_of("trn2.48xlarge", table=with_overrides(path)).usd_per_hour == 30.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("usd_per_hour = 3", "not inside a table"),
        ('["a"]\nprice = 3', "has no usd_per_hour"),
        ('["a"]\nusd_per_hour = -1', "must be positive"),
        ('["a"]\nusd_per_hour = 1\nmarket = "black"', "Market 'black'"),
    ],
)
def test_wrong_file_is_explained(tmp_path, text, message):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        with_overrides(path)


def test_every_price_belongs_to_a_known_instance_and_says_when_and_where():
    known = {row.name for row in INSTANCES} | {row.name for row in GPU_INSTANCES}
    for row in PRICES:
        assert row.instance in known
        year, month = row.seen.split("-")
        assert 2024 <= int(year) <= 2027
        assert 1 <= int(month) <= 12
        assert row.source
        assert row.market in MARKETS
    pairs = [(row.instance, row.market) for row in PRICES]
    assert len(pairs) == len(set(pairs))


def test_a_price_of_zero_is_refused():
    with pytest.raises(ValueError, match="must be positive"):
        Price(instance="x", usd_per_hour=0, market="spot", seen="2026-01", source="s")


def test_gpu_roofline_takes_the_longer_of_compute_and_traffic():
    # 81.1e12 useful flops at 0.82 x 989.4 TFLOPS = 0.1 s; 0.298 TB at 0.89 x 3.35 TB/s = 0.1 s.
    compute = Work(flops={"bf16": 0.1 * 0.82 * 989.4e12})
    traffic = Work(hbm_read_bytes=0.2 * 0.89 * 3.35e12)
    assert gpu_seconds(compute, H100) == pytest.approx(0.1)
    assert gpu_seconds(compute + traffic, H100) == pytest.approx(0.2)
    assert gpu_instance("p5en.48xlarge").num_gpus == 8
