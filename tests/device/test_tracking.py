"""Fallbacks are never silent: what ran, what the chip could not have run, strict mode."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

import torch_neuronx
from python_process import output_of


@pytest.fixture(autouse=True)
def clean_tracking():
    torch.neuron.synchronize()
    torch_neuronx.clear_op_tracking()
    yield
    torch_neuronx.clear_op_tracking()


def rows_by_op():
    return {row.op: row for row in torch_neuronx.fallback_report().rows}


@pytest.mark.smoke
def test_executed_operators_are_listed():
    x = torch.ones(4, 4, device="neuron")
    (x @ x).relu()
    executed = torch_neuronx.get_executed_ops()
    assert "aten::mm" in executed
    assert "aten::relu" in executed
    assert torch_neuronx.get_fallback_ops() == []


def test_clearing_forgets():
    torch.ones(4, device="neuron").neg()
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_executed_ops() == []
    assert torch_neuronx.fallback_report().num_calls == 0


def test_a_fallback_gives_operator_reason_count_and_line():
    x = torch.tensor([0.0, 1.0, 2.0], device="neuron")
    for _ in range(3):
        x.nonzero()  # the line below looks for this one
    row = rows_by_op()["aten::nonzero"]
    assert row.count == 3
    assert "depends on values" in row.reason
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "x.nonzero()  # the line" in text
    )
    assert row.python_line.startswith(f"{__file__}:{line} in test_a_fallback")


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda x: torch.masked_select(x, x > 0), "aten::masked_select"),
        (lambda x: x[x > 0], "aten::index"),
        (lambda x: torch.unique(x), "aten::_unique2"),
        (lambda x: torch.linalg.svd(x), "aten::_linalg_svd"),
        (lambda x: torch.linalg.eigvalsh(x @ x.T), "aten::_linalg_eigh"),
        (lambda x: torch.linalg.qr(x), "aten::linalg_qr"),
        (lambda x: torch.linalg.inv(x @ x.T + torch.eye(3, device=x.device)), "linalg_inv_ex"),
        (lambda x: torch.fft.rfft(x), "aten::_fft_r2c"),
        (lambda x: torch.sort(x), "aten::sort"),
        (lambda x: x.double() * 2, "aten::mul.Tensor"),
        (lambda x: x.to(torch.float8_e4m3fn), "copy"),
    ],
)
def test_what_the_chip_cannot_run_is_listed(call, op):
    x = torch.randn(3, 3, device="neuron")
    call(x)
    assert any(op in name for name in torch_neuronx.get_fallback_ops())


def test_64_bit_integers_are_named_but_no_fallback():
    torch.arange(5, device="neuron").mul(3)
    row = rows_by_op()["aten::mul.Tensor"]
    assert row.exact_here
    assert "32 bits" in row.reason
    assert torch_neuronx.get_fallback_ops() == []
    assert torch_neuronx.fallback_report().num_fallback_calls == 0


def test_64_bit_integers_are_exact():
    big = torch.tensor([2**62 + 1, -(2**62) - 3], device="neuron")
    assert (big + 1).tolist() == [2**62 + 2, -(2**62) - 2]


def test_the_report_reads_well():
    x = torch.ones(3, device="neuron")
    x.nonzero()
    text = str(torch_neuronx.fallback_report())
    assert "1 (" in text
    assert "Would leave the chip" in text
    assert "1 x aten::nonzero  first at " in text
    assert "Use a mask" in text


def test_the_report_of_nothing_says_so():
    assert str(torch_neuronx.fallback_report()).startswith("No operator has run on neuron")


def test_printing_is_no_work_of_the_program():
    x = torch.randn(4, 4, device="neuron")
    torch_neuronx.clear_op_tracking()
    with torch_neuronx.strict():
        assert "device='neuron:0'" in repr(x)
    assert torch_neuronx.get_fallback_ops() == []


def test_strict_mode_raises_with_operator_and_reason():
    x = torch.ones(3, device="neuron")
    with torch_neuronx.strict():
        assert torch_neuronx.is_strict()
        with pytest.raises(RuntimeError, match="aten::nonzero would not run on the chip: The size"):
            x.nonzero()
    assert not torch_neuronx.is_strict()
    assert x.nonzero().numel() == 3


def test_strict_mode_lets_native_operators_and_64_bit_integers_pass():
    with torch_neuronx.strict():
        x = torch.randn(4, 4, device="neuron")
        index = torch.arange(2, device="neuron") + 1
        assert (x @ x)[index].shape == (2, 4)


def test_strict_mode_may_be_left_for_a_block():
    x = torch.ones(3, device="neuron")
    with torch_neuronx.strict(), torch_neuronx.strict(False):
        assert x.nonzero().numel() == 3


def test_strict_mode_ends_after_an_error():
    with pytest.raises(KeyError), torch_neuronx.strict():
        raise KeyError
    assert not torch_neuronx.is_strict()


def test_strict_mode_holds_in_backward_and_other_threads():
    x = torch.eye(3, device="neuron").requires_grad_()
    caught = []

    def work():
        try:
            torch.linalg.svd(x)
        except RuntimeError as error:
            caught.append(str(error))

    with torch_neuronx.strict():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert "aten::_linalg_svd" in caught[0]


def test_the_environment_may_ask_for_strict_mode():
    code = (
        "import torch, torch_neuronx\n"
        "x = torch.ones(3, device='neuron')\n"
        "print(torch_neuronx.is_strict())\n"
        "try: x.nonzero()\n"
        "except RuntimeError as error: print(error)"
    )
    printed = output_of(code, TORCH_NEURONX_STRICT="1")
    assert printed.startswith("True\naten::nonzero would not run on the chip")
