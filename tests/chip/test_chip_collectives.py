"""Collectives: factors, algorithms by size, groups over chips and hosts."""

from __future__ import annotations

import pytest

from neuron_chip.chips import TRN2, TRN3
from neuron_chip.collectives import Collective, Group, bus_factor, collective_time, group
from neuron_chip.instances import instance

ONE_CHIP = group(instance("trn2.3xlarge"), 4)
INSTANCE = group(instance("trn2.48xlarge"), 64)
CLUSTER = group(instance("trn2.48xlarge"), 256)


def timed(op, num_bytes, members, chip=TRN2):
    return collective_time(Collective(op=op, num_bytes=num_bytes, group=members), chip)


def test_groups_know_where_their_ranks_sit():
    assert (ONE_CHIP.ranks_per_chip, ONE_CHIP.domains) == (4, 1)
    assert (INSTANCE.ranks_per_chip, INSTANCE.domains) == (4, 1)
    assert (CLUSTER.ranks_per_domain, CLUSTER.domains) == (64, 4)
    # 3.2 Tbit/s over 64 logical cores are 50 Gbit/s each.
    assert CLUSTER.network_bytes_per_second_per_rank == 50e9 / 8
    strided = group(instance("trn2.48xlarge"), 16, stride=4)
    assert strided.ranks_per_chip == 1
    server = group(instance("trn2-ultraserver"), 256)
    assert server.domains == 1


@pytest.mark.parametrize(
    ("op", "factor"),
    [("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75), ("permute", 1.0)],
)
def test_bus_factors_of_four_ranks(op, factor):
    assert bus_factor(op, 4) == factor
    assert bus_factor(op, 1) == 0.0


def test_algorithm_follows_the_size():
    names = [timed("all_reduce", size, INSTANCE).algorithm for size in (1e5, 1e7, 1e8)]
    assert names == ["mesh", "halving", "ring"]


def test_all_reduce_on_a_chip_is_two_exchanges_and_the_bytes():
    time = timed("all_reduce", 100e6, ONE_CHIP)
    # 2 x (22.5 + 2 hops of 1.5) us, then 1.5 x 100 MB at 0.9 x 128 GB/s.
    assert time.start_up_us == pytest.approx(2 * (22.5 + 3.0))
    assert time.transfer_us == pytest.approx(1.5 * 100e6 / 115.2e9 * 1e6)


def test_single_rank_costs_nothing():
    assert timed("all_reduce", 1e9, group(instance("trn2.3xlarge"), 1)).total_us == 0.0


def test_network_adds_hops_and_its_own_transfer():
    inside, across = timed("all_reduce", 64e6, INSTANCE), timed("all_reduce", 64e6, CLUSTER)
    # 1 MB per rank over three hops twice, and 1.5 MB at 6.25 GB/s.
    assert across.start_up_us - inside.start_up_us == pytest.approx(2 * 3 * 15.0)
    assert across.transfer_us - inside.transfer_us == pytest.approx(1.5e6 / 6.25e9 * 1e6)
    assert across.algorithm == "ring+network"


def test_switch_of_trn3_is_faster_than_the_torus():
    assert (
        timed("all_reduce", 1e9, INSTANCE, TRN3).total_us
        < timed("all_reduce", 1e9, INSTANCE).total_us
    )


def test_unknown_collective_is_named():
    with pytest.raises(ValueError, match=r"no collective 'all_reduc'. Did you mean 'all_reduce'"):
        Collective(op="all_reduc", num_bytes=1, group=ONE_CHIP)


def test_empty_group_is_refused():
    with pytest.raises(ValueError, match="0 ranks"):
        Group(ranks=0, ranks_per_chip=1, ranks_per_domain=1)
    with pytest.raises(ValueError, match="must be >= 1"):
        group(instance("trn2.3xlarge"), 0)
