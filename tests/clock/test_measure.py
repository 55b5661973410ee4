"""The modelled clock on the host driver: times, breakdowns, memory, money."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import neuron_chip
from torch_neuronx.clock.pricing import machine
from torch_neuronx.errors import ClockError


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).to("neuron")


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def test_the_time_is_the_sum_of_the_operations_on_one_stream():
    model = _model()
    x = torch.randn(32, 64, device="neuron")
    with torch.no_grad(), torch.neuron.measure() as m:
        model(x)
    assert m.time == pytest.approx(sum(row.time.seconds for row in m.rows), rel=1e-6)
    low, high = m.range
    assert 0 < low < m.time < high
    ops = {row.priced.call.op.split(".")[0] for row in m.rows if row.time.seconds}
    assert ops == {"aten::addmm", "aten::gelu"}


def test_off_the_clock_stands_still():
    before = torch.neuron.modelled_time()
    torch.ones(8, device="neuron").add_(1)
    assert torch.neuron.modelled_time() == before


def test_equal_blocks_take_equal_time():
    x = torch.randn(128, 128, device="neuron")
    times = []
    for _ in range(2):
        with torch.neuron.measure() as m:
            torch.tanh(x @ x)
        times.append(m.time)
    assert times[0] == times[1] > 0


def test_blocks_nest():
    x = torch.randn(128, 128, device="neuron")
    with torch.neuron.measure() as outer:
        x @ x
        with torch.neuron.measure() as inner:
            x @ x
    assert outer.time == pytest.approx(2 * inner.time)


def test_backward_belongs_to_the_line_and_module_of_its_forward():
    model = _model()
    x = torch.randn(32, 64, device="neuron")

    def forward() -> torch.Tensor:
        return model(x).square().mean()  # the line of the forward

    loss = None
    with torch.neuron.measure() as m:
        loss = forward()
        loss.backward()
    backward = [row for row in m.rows if row.backward and row.priced.call.op == "aten::mm"]
    assert {row.module for row in backward} == {"Sequential.0", "Sequential.2"}
    assert all("test_measure.py" in row.python_line for row in backward)
    assert all("in forward" in row.python_line for row in backward)


def test_composites_are_counted_once():
    x = torch.randn(4, 8, 16, device="neuron", requires_grad=True)
    w = torch.randn(32, 16, device="neuron", requires_grad=True)
    with torch.neuron.measure() as m:
        torch.nn.functional.linear(x, w)
    products = [row for row in m.rows if row.priced.work.flops.get("fp32")]
    assert sum(row.calls for row in products) == 1
    assert m.work.flops["fp32"] == 2 * 32 * 32 * 16


def test_work_scales_with_calls():
    x = torch.randn(64, 64, device="neuron")
    with torch.neuron.measure() as m:
        for _ in range(7):
            x + x
    (row,) = [row for row in m.rows if row.priced.call.op == "aten::add.Tensor"]
    assert row.calls == 7
    assert m.work.launches == 7


def test_views_are_free_and_operators_without_a_rule_are_marked():
    x = torch.randn(64, 64, device="neuron")
    with torch.neuron.measure() as m:
        x.t().view(8, 8, 64)[1:].unsqueeze(0)
    assert m.time == 0
    with torch.neuron.measure() as m:
        torch.linalg.inv(x)
    assert m.default_share > 0
    assert "aten::linalg_inv_ex" in {op.removesuffix(".inverse") for op in m.default_ops}


def test_events_on_the_modelled_clock():
    x = torch.randn(256, 256, device="neuron")
    start, end = torch.neuron.Event(), torch.neuron.Event()
    with torch.neuron.measure() as m:
        start.record()
        x @ x
        end.record()
    assert start.modelled_elapsed_time(end) == pytest.approx(1e3 * m.time)


def test_an_event_outside_has_no_modelled_time():
    start, end = torch.neuron.Event(), torch.neuron.Event()
    start.record()
    end.record()
    with pytest.raises(ClockError, match="first event was not recorded while"):
        start.modelled_elapsed_time(end)


def test_streams_overlap_and_waits_order_them():
    x = torch.randn(2048, 2048, device="neuron")
    side = torch.neuron.Stream()

    def run(wait: bool) -> float:
        with torch.neuron.measure() as m:
            for _ in range(4):
                x @ x
            if wait:
                side.wait_stream(torch.neuron.current_stream())
            with torch.neuron.stream(side):
                for _ in range(4):
                    x @ x
        return m.time

    assert run(wait=False) < 0.7 * run(wait=True)


def test_a_read_back_is_counted():
    x = torch.randn(64, device="neuron")
    with torch.neuron.measure() as m:
        x.sum().item()
    assert m.work.read_backs == 1
    assert m.breakdown.engine["read back"] > 0


def test_peak_and_what_is_alive_there():
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(32, 64, device="neuron")
    _train(model, optimizer, x)
    with torch.neuron.measure(memory=True) as m:
        _train(model, optimizer, x)
    assert m.peak is not None
    assert m.peak.num_bytes == m.hbm_peak
    assert sum(row.num_bytes for row in m.peak.live) == m.hbm_peak
    kinds = m.peak.by_kind()
    weights = sum(256 * -(-p.nbytes // 256) for p in model.parameters())
    assert kinds["parameters"] == weights
    assert kinds["optimizer"] >= 2 * weights
    assert kinds["gradients"] == weights
    gradients = [row for row in m.peak.live if row.kind == "gradients"]
    assert {"Sequential.0", "Sequential.2"} <= {row.module for row in gradients}


def test_memory_blocks_do_not_nest():
    with torch.neuron.measure(memory=True), pytest.raises(ClockError, match="running already"):
        with torch.neuron.measure(memory=True):
            pass


def test_use_of_the_chip_and_money():
    x = torch.randn(4096, 4096, device="neuron", dtype=torch.bfloat16)
    with torch.neuron.measure() as m:
        x @ x
    chip = machine().chip
    peak = chip.peak_flops_per_second(lnc=machine().lnc)
    assert m.mfu == pytest.approx(2 * 4096**3 / m.time / peak)
    assert 0 < m.mbu < 1
    hourly = neuron_chip.price_of(machine().instance.name).usd_per_hour
    assert m.cost() == pytest.approx(m.time * hourly / 3600)
    assert m.cost("g6e.xlarge") > 0
    assert m.seconds_on("p5.4xlarge") < m.time


def test_an_exception_leaves_the_clock_stopped():
    with pytest.raises(ZeroDivisionError), torch.neuron.measure():
        raise ZeroDivisionError
    before = torch.neuron.modelled_time()
    torch.ones(8, device="neuron").add_(1)
    assert torch.neuron.modelled_time() == before


def test_the_text_names_the_longest(capsys):
    x = torch.randn(512, 512, device="neuron")
    with torch.neuron.measure() as m:
        x @ x
    assert "aten::mm" in str(m)
    assert "MFU" in str(m)
