"""Cost functions: the arithmetic of each, written out."""

from __future__ import annotations

import dataclasses

import pytest

from neuron_chip.chips import TRN1, TRN2, TRN3
from neuron_chip.cost import (
    UnsupportedOnChipError,
    dma_seconds,
    engine_floors,
    hbm_seconds,
    matmul_passes,
    matmul_utilization,
    mbu,
    mfu,
    price,
    price_all,
    round_trip_seconds,
    transfer_seconds,
    warm_up_seconds,
)
from neuron_chip.counts import (
    Transformer,
    attention,
    convolution,
    copy,
    decode_step,
    default_rule,
    elementwise,
    host_copy,
    matmul,
    prefill,
    row_operation,
    top_k,
    training_step,
    transpose,
)
from neuron_chip.prices import price_of, usd
from neuron_chip.stacks import stack
from neuron_chip.work import Activity, Lane, Work, total


def test_fp32_product_takes_four_passes():
    bf16, fp32 = (matmul(1024, 1024, 1024, chip=TRN2, dtype=d) for d in ("bfloat16", "float32"))
    times = [engine_floors(work, TRN2)["tensor"] for work in (bf16, fp32)]
    # 128 instructions of 512 columns, four times as many cycles in fp32, plus 14 a piece; the
    # warm-up costs 1.5 us, which are 7,200 cycles of two cores.
    assert times[0] * 2 * 2.4e9 == pytest.approx(128 * (512 + 14) + 7.2e3, rel=1e-3)
    assert times[1] * 2 * 2.4e9 == pytest.approx(128 * (4 * 512 + 14) + 7.2e3, rel=1e-3)


def test_fp8_and_mx_cover_more_rows_per_pass():
    assert matmul_passes("fp8", TRN2) == 0.5
    assert matmul_passes("fp8", TRN1) == 1.0
    assert matmul_passes("mx", TRN3) == 0.25
    with pytest.raises(UnsupportedOnChipError, match="trn2 has no MX matrix unit"):
        matmul_passes("mx", TRN2)


def test_full_tiles_use_the_array_and_thin_ones_do_not():
    assert matmul_utilization(4096, 4096, 4096, "bf16", TRN2) == pytest.approx(512 / 526, rel=1e-3)
    assert matmul_utilization(4096, 64, 4096, "bf16", TRN2) == pytest.approx(256 / 526, rel=1e-3)
    assert matmul_utilization(1, 4096, 4096, "bf16", TRN2) < 0.01


def test_matrix_vector_product_makes_the_matrix_stationary():
    work = matmul(1, 1024, 1024, chip=TRN2)
    activity = work.lanes[Lane("tensor", "bf16")]
    assert activity == Activity(64, 64)  # 8 x 8 tiles, one column each


def test_tensor_engine_warms_up_for_three_microseconds():
    # At half speed for 3 us, 1.5 us of work are lost; a 1 us burst takes 2 us and loses 1.
    assert warm_up_seconds(1, 100e-6, TRN2) == pytest.approx(1.5e-6)
    assert warm_up_seconds(1, 1e-6, TRN2) == pytest.approx(1e-6)
    assert warm_up_seconds(4, 100e-6, TRN2) == pytest.approx(6e-6)
    assert warm_up_seconds(1, 100e-6, TRN1) == 0.0


def test_small_descriptors_cost_their_fixed_time():
    # 1 MiB in 512 B pieces: 2,048 x (27.5 + 512 / 27.2) ns over 16 engines = 5.93 us.
    seconds = dma_seconds(TRN2, num_bytes=2**20, descriptors=2048)
    assert seconds == pytest.approx(2048 * (27.4987e-9 + 512 / 27.2e9) / 16, rel=1e-3)
    # In full-rate pieces: 368 GB/s.
    assert dma_seconds(TRN2, num_bytes=368e9, descriptors=0) == pytest.approx(1.0)


def test_lone_transfer_has_a_floor():
    assert transfer_seconds(TRN2, num_bytes=128 * 4, descriptor_bytes=4) == pytest.approx(860e-9)
    # One engine and 32 KiB: eight packets of 178 ns; the guide's profile shows 1,416 ns.
    one = transfer_seconds(TRN2, num_bytes=32768, descriptor_bytes=32768, partitions=1)
    assert one == pytest.approx(1.42e-6, rel=0.01)
    assert round_trip_seconds(TRN2) == pytest.approx(1.3e-6)


def test_hbm_rate_is_the_share_of_a_logical_core():
    # 716.8 GB/s x 0.9
    assert hbm_seconds(TRN2, num_bytes=645.12e9, lnc=2) == pytest.approx(1.0)
    assert hbm_seconds(TRN2, num_bytes=645.12e9, lnc=1) == pytest.approx(2.0)


def test_overlap_is_between_perfect_and_none():
    work = matmul(4096, 4096, 4096, chip=TRN2)
    perfect = price(work, TRN2, exposed_share=0.0).seconds
    none = price(work, TRN2, exposed_share=1.0).seconds
    usual = price(work, TRN2).seconds
    assert perfect < usual < none
    assert usual == pytest.approx(perfect + stack("device").exposed_share * (none - perfect))


def test_collectives_hide_behind_computation_as_far_as_asked():
    from neuron_chip.collectives import Collective, Group

    members = Group(ranks=4, ranks_per_chip=4, ranks_per_domain=4)
    call = Collective(op="all_reduce", num_bytes=1e8, group=members)
    work = matmul(4096, 4096, 4096, chip=TRN2) + Work(collectives={call: 1.0})
    apart, half = (price(work, TRN2, collective_overlap=share) for share in (0.0, 0.5))
    saved = apart.seconds - half.seconds
    assert saved == pytest.approx(0.5 * apart.busy_seconds["collectives"])


def test_launch_is_paid_per_start_and_more_beside_busy_neighbours():
    work = Work(launches=3.0)
    assert price(work, TRN2, software="eager").seconds == pytest.approx(144e-6)
    busy = price(work, TRN2, software="eager", busy_neighbours=True).seconds
    assert busy == pytest.approx(3 * 632e-6)
    assert price(work, TRN2).seconds == 0.0


def test_reading_back_makes_the_host_wait():
    work = Work(launches=1.0, read_backs=1.0)
    assert price(work, TRN2, software="serving").seconds == pytest.approx(133e-6)


def test_mx_product_takes_a_quarter_of_the_time_and_half_the_bytes():
    mx, bf16 = (
        matmul(8192, 8192, 8192, chip=TRN3, dtype=d, out_dtype="bfloat16")
        for d in ("float8_e4m3fn_x4", "bfloat16")
    )
    ratio = engine_floors(mx, TRN3)["tensor"] / engine_floors(bf16, TRN3)["tensor"]
    assert ratio == pytest.approx(0.25, rel=0.02)
    assert mx.hbm_read_bytes <= bf16.hbm_read_bytes / 2
    with pytest.raises(UnsupportedOnChipError):
        price(mx, TRN2)


def test_default_rule_is_never_free_and_shows_in_its_share():
    guessed, known = default_rule(4e6, 4e6, chip=TRN2), copy(4e6)
    time = price_all((guessed, known), TRN2)
    assert price(guessed, TRN2).seconds > 0
    assert 0.4 < time.default_share < 0.7
    assert time.default_seconds == pytest.approx(price(guessed, TRN2).seconds)
    assert total((guessed, known)).default_rule


def test_bad_shares_are_refused():
    with pytest.raises(ValueError, match=r"exposed_share=1.5 .* between 0 and 1"):
        price(Work(), TRN2, exposed_share=1.5)


def test_sbuf_reuse_bounds_the_traffic_of_a_product():
    small = matmul(1024, 1024, 1024, chip=TRN2)
    # A core's half of one operand is resident; the other operand is read by both cores.
    assert small.hbm_read_bytes == 3 * 1024 * 1024 * 2
    large = matmul(16384, 16384, 16384, chip=TRN2)
    assert large.hbm_read_bytes > 4 * 16384 * 16384 * 2


def test_sixteen_bit_addition_runs_in_the_fast_mode_of_generation_3_only():
    narrow, wide = (
        elementwise("add", 2**20, chip=TRN2, inputs=(d, d), output=d)
        for d in ("bfloat16", "float32")
    )
    lane = Lane("vector", "1x")
    assert wide.lanes[lane].steps == 2 * narrow.lanes[lane].steps
    old = elementwise("add", 2**20, chip=TRN1, inputs=("bfloat16",) * 2)
    assert old.lanes[lane].steps == wide.lanes[lane].steps


def test_one_row_of_top_k_uses_one_lane():
    # 2 instructions over 248,320 elements at 0.96 GHz = 517 us, and no core can help.
    seconds = engine_floors(top_k(1, 248320, 8, chip=TRN2), TRN2)["vector"]
    assert seconds == pytest.approx(2 * 248320 / 0.96e9, rel=0.02)
    assert engine_floors(top_k(1, 248320, 50, chip=TRN2), TRN2)["vector"] > 9 * seconds


def test_causal_attention_does_about_half_the_work():
    full, causal = (
        attention(
            chip=TRN2,
            q_heads=8,
            kv_heads=8,
            q_length=8192,
            kv_length=8192,
            head_dim=128,
            causal=causal,
        )
        for causal in (False, True)
    )
    assert causal.total_flops / full.total_flops == pytest.approx(0.53, abs=0.01)


def test_norms_and_softmax_read_and_write_their_rows_once():
    work = row_operation("rms_norm", 1024, 4096, chip=TRN2)
    assert work.hbm_read_bytes == work.hbm_write_bytes == 1024 * 4096 * 2
    assert row_operation("sum", 1024, 4096, chip=TRN2).hbm_write_bytes == 1024 * 2


MODEL = Transformer(
    name="small",
    layers=4,
    hidden=1024,
    heads=8,
    kv_heads=2,
    head_dim=128,
    ffn=2816,
    vocabulary=32000,
)


def test_decode_reads_each_weight_once():
    work = total(decode_step(MODEL, chip=TRN2, context=128))
    weights = MODEL.layers * MODEL.layer_parameters + MODEL.hidden * MODEL.vocabulary
    # Weights, the cache of 4 layers, activations of one token.
    cache = 4 * 2 * 2 * 128 * 128 * 2
    assert work.hbm_read_bytes == pytest.approx(2 * weights + cache, rel=0.01)


def test_chunked_prefill_costs_more_than_one_pass():
    whole, chunked = (
        price_all(prefill(MODEL, chip=TRN2, prompt=4096, chunk=chunk), TRN2, software="runtime")
        for chunk in (None, 512)
    )
    assert chunked.seconds > whole.seconds


def test_training_does_three_times_the_forward_flops_or_four_with_recomputation():
    plain, again = (
        total(training_step(MODEL, chip=TRN2, batch=1, length=512, recompute=recompute))
        for recompute in (False, True)
    )
    assert again.flops["bf16"] / plain.flops["bf16"] == pytest.approx(4 / 3)


def test_experts_that_no_token_chose_are_not_read():
    sparse = dataclasses.replace(MODEL, experts=64, experts_per_token=2)
    one = total(decode_step(sparse, chip=TRN2, context=1, batch=1)).hbm_read_bytes
    many = total(decode_step(sparse, chip=TRN2, context=1, batch=64)).hbm_read_bytes
    assert one < 0.2 * many


def test_utilisation_counts_useful_products_against_their_own_peak():
    work = matmul(4096, 4096, 4096, chip=TRN2)
    ideal = 2 * 4096**3 / 157.2864e12
    assert mfu(work, ideal, TRN2) == pytest.approx(1.0)
    fp32 = matmul(4096, 4096, 4096, chip=TRN2, dtype="float32")
    assert mfu(fp32, 4 * ideal, TRN2) == pytest.approx(1.0)
    assert mfu(work, 0.0, TRN2) == 0.0
    assert mbu(copy(358.4e9), 1.0, TRN2) == pytest.approx(1.0)


def test_convolution_is_a_product_over_taps_and_channels():
    sizes = {"batch": 2, "input_size": (32, 32), "output_size": (32, 32), "kernel_size": (3, 3)}
    work = convolution(chip=TRN2, in_channels=64, out_channels=128, **sizes)
    assert work.total_flops == 2 * (2 * 32 * 32) * (64 * 9) * 128
    assert work.hbm_read_bytes == 2 * (2 * 64 * 32 * 32 + 128 * 64 * 9)
    depthwise = convolution(chip=TRN2, in_channels=64, out_channels=64, groups=64, **sizes)
    assert depthwise.flops == {"vector": 2 * (2 * 32 * 32) * 64 * 9}
    assert Lane("tensor", "bf16") not in depthwise.lanes


def test_transpose_of_four_byte_elements_takes_twice_the_columns():
    narrow, wide = (transpose(512, 512, chip=TRN2, dtype=d) for d in ("bfloat16", "float32"))
    lane = Lane("tensor", "bf16")
    assert wide.lanes[lane].steps == 2 * narrow.lanes[lane].steps == 2 * 16 * 128


def test_four_cores_share_the_host_link():
    alone = price(host_copy(14e9), TRN2).seconds
    shared = price(host_copy(14e9), TRN2, busy_neighbours=True).seconds
    assert (alone, shared) == (pytest.approx(1.0), pytest.approx(14 / 4.2))


def test_dollars_are_time_times_price():
    assert usd(1800.0, price_of("trn2.3xlarge")) == pytest.approx(2.235 / 2)
    assert usd(3600.0, price_of("trn2.3xlarge"), share=0.25) == pytest.approx(2.235 / 4)
