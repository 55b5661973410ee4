"""Programs of writes and reads through aliases, on every kind of tensor and every stream.

Each program ends with values; they are the CPU's, whatever was still pending when a write came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compare import assert_same
from ops.under_test import DEVICE, Placement
from python_process import output_of

Program = Callable[[Tensor], Any]


def pending(x: Tensor) -> Tensor:
    """The same tensor with work queued on it whose result is the same values."""
    for _ in range(4):
        x.mul_(2)
        x.add_(1)
        x.sub_(1)
        x.div_(2)
    return x


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda base: base[:12].view(3, 4),
    "view": lambda base: base[12:24].view(4, 3).t(),
    "strided": lambda base: base[:48:2].view(4, 6)[:, ::2],
    "offset": lambda base: base[7:19].view(3, 4),
    "no elements": lambda base: base[:0].view(0, 4),
    "one element": lambda base: base[3:4].view(1, 1),
    "negated": lambda base: torch._neg_view(base[:12]).view(3, 4),
    "channels last": lambda base: base[:24]
    .view(1, 2, 3, 4)
    .to(memory_format=torch.channels_last)[0, 0],
}


def read_after_write(x: Tensor) -> Any:
    pending(x).mul_(3)
    return x + 1, x.sum()


def write_after_read(x: Tensor) -> Any:
    y = x * 2
    x.fill_(9)
    return y, x


def write_to_view_then_read_base(x: Tensor) -> Any:
    row = pending(x)[:1]
    row.add_(100)
    return x * 1, x.sum(0)


def write_to_base_then_read_view(x: Tensor) -> Any:
    row, turned = x[:1], x.t()
    pending(x).add_(5)
    return row * 1, turned + 0


def write_through_overlapping_views(x: Tensor) -> Any:
    above, below = x[:-1], x[1:]
    above.add_(1)
    below.mul_(2)
    above.sub_(below.clone())
    return x, above * 1, below * 1


def swap_data(x: Tensor) -> Any:
    view = x[:1]
    x.data = pending(x) + 1
    x.mul_(2)
    return view * 1, x * 1


def set_to_another(x: Tensor) -> Any:
    other = pending(x.clone())
    y = x + 1
    x.set_(other)
    x.add_(1)
    return y, x * 1, other * 1


def resize(x: Tensor) -> Any:
    y = pending(x.contiguous().clone())
    y.resize_(max(y.shape[0] - 1, 0), y.shape[1])
    y.add_(1)
    return y * 1


def out_is_the_input(x: Tensor) -> Any:
    torch.add(pending(x), 1, out=x)
    torch.mul(x, x, out=x)
    return x * 1


def out_is_a_view_of_another(x: Tensor) -> Any:
    y = torch.zeros_like(x)
    torch.add(pending(x)[:1], 1, out=y[:1])
    return x * 1, y


def copy_between_views(x: Tensor) -> Any:
    x[:1].copy_(pending(x)[-1:])
    x.t().copy_(x.t().clone() + 1)
    return x * 1


def temporary_dies(x: Tensor) -> Any:
    y = pending(x) + 1
    z = y * 2
    del y
    reused = torch.full_like(x, 7)
    return z * 1, reused


def many_small_writes(x: Tensor) -> Any:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 2 + i - j
    return x * 1


def chain_of_dtypes(x: Tensor) -> Any:
    y = (x * 4).to(torch.int32)
    z = (y << 1).to(torch.bfloat16) + x.to(torch.bfloat16)
    return y, z, z.float() - x


def gradient(x: Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    seen: list[Tensor] = []
    leaf.register_hook(lambda grad: seen.append(grad * 2))
    y = leaf * 3
    y[:1] = 0
    (y * y).sum().backward()
    return leaf.grad, seen


PROGRAMS: tuple[Program, ...] = (
    read_after_write,
    write_after_read,
    write_to_view_then_read_base,
    write_to_base_then_read_view,
    write_through_overlapping_views,
    swap_data,
    set_to_another,
    resize,
    out_is_the_input,
    out_is_a_view_of_another,
    copy_between_views,
    temporary_dies,
    many_small_writes,
    chain_of_dtypes,
    gradient,
)


def same_stream(program: Program, x: Tensor) -> Any:
    return program(x)


def other_stream(program: Program, x: Tensor) -> Any:
    """Input from this stream, work on another, results read on this one: events in between."""
    stream = torch.Stream(x.device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        result = program(x)
    torch.accelerator.current_stream().wait_stream(stream)
    return result


def other_thread(program: Program, x: Tensor) -> Any:
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(program(x))
        except RuntimeError as error:
            results.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results[0]


PLACES = {"here": same_stream, "other stream": other_stream, "other thread": other_thread}


def run(program: Program, base: Tensor, kind: str, place: Callable[..., Any]) -> Any:
    """The program's results and the whole storage after it, or its error."""
    x = KINDS[kind](base)
    try:
        return place(program, x), base
    except (RuntimeError, IndexError) as error:
        return type(error).__name__


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program_of_aliases_gives_the_cpus_values(program, kind, place):
    base = torch.arange(64.0).sub(20)
    expected = run(program, base.clone(), kind, same_stream)
    where = PLACES[place] if DEVICE != "cpu" else same_stream
    assert_same(run(program, Placement()(base), kind, where), expected, strides=False)


EXPANDED: tuple[Program, ...] = (
    lambda x: x.expand(5, 4) + 1,
    lambda x: x.add_(1).expand(5, 4).sum(0),
    lambda x: (x.expand(5, 4) * torch.ones(5, 4, device=x.device)).t().contiguous(),
    lambda x: torch.cat([x.expand(2, 4), pending(x).expand(1, 4)]),
)


@pytest.mark.parametrize("program", EXPANDED)
def test_reading_through_expanded_tensors_gives_the_cpus_values(program):
    x = torch.arange(4.0)
    assert_same(program(Placement()(x)), program(x.clone()))


def test_conjugated_aliases_see_each_others_writes():
    def program(x: Tensor) -> Any:
        mirrored = x.conj()
        x.mul_(2j)
        mirrored.add_(1)
        part = mirrored.imag
        part.add_(3)
        return x * 1, mirrored * 1, part * 1

    x = torch.complex(torch.arange(4.0), torch.ones(4))
    assert_same(program(Placement()(x)), program(x.clone()))


def test_an_error_in_the_middle_leaves_what_was_queued_before_and_after():
    x = torch.arange(6.0, device=DEVICE)
    y = pending(x) + 1
    with pytest.raises(RuntimeError):
        x + torch.ones(5, device=DEVICE)
    z = y * 2
    assert z.tolist() == [(v + 1) * 2 for v in range(6)]


def test_a_loop_that_reads_one_number_each_time_stays_right():
    x = torch.zeros((), device=DEVICE)
    for number in range(200):
        x += 0.5
        assert x.item() == (number + 1) * 0.5


@pytest.mark.skipif(DEVICE == "cpu", reason="exit with queued work needs a queue")
def test_exit_with_queued_work_is_clean():
    code = """
import torch
x = torch.ones(1 << 20, device="neuron")
for _ in range(50):
    x = x * 1.01
print("end")
"""
    assert output_of(code) == "end"


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.skipif(DEVICE == "cpu", reason="launch blocking needs a queue")
def test_the_matrix_holds_with_blocking_launches():
    arguments = ["-q", "-p", "no:cacheprovider", __file__, "-m", "not slow"]
    code = f"import sys, pytest; sys.exit(pytest.main({arguments!r}))"
    assert "passed" in output_of(code, NEURON_LAUNCH_BLOCKING="1")
