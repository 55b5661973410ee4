"""Random numbers: seeds, states, and that neither stream nor device order matters."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint


@pytest.mark.smoke
def test_the_same_seed_gives_the_same_numbers():
    torch.manual_seed(7)
    first = torch.randn(100, device="neuron")
    torch.manual_seed(7)
    assert torch.equal(first, torch.randn(100, device="neuron"))
    assert not torch.equal(first, torch.randn(100, device="neuron"))


def test_torch_manual_seed_seeds_every_device():
    torch.manual_seed(11)
    assert [generator.initial_seed() for generator in torch.neuron.default_generators] == [11] * 4


def test_manual_seed_seeds_the_current_device_only():
    torch.neuron.manual_seed_all(1)
    with torch.neuron.device(2):
        torch.neuron.manual_seed(5)
        assert torch.neuron.initial_seed() == 5
    seeds = [generator.initial_seed() for generator in torch.neuron.default_generators]
    assert seeds == [1, 1, 5, 1]


def test_the_state_is_16_bytes_seed_then_offset():
    torch.neuron.manual_seed(0x0102)
    state = torch.neuron.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    assert state.tolist() == [0x02, 0x01] + [0] * 14
    torch.rand(1000, device="neuron")
    moved = torch.neuron.get_rng_state()
    assert torch.equal(moved[:8], state[:8])
    assert not torch.equal(moved[8:], state[8:])


def test_a_state_put_back_repeats_the_numbers():
    state = torch.neuron.get_rng_state("neuron:1")
    first = torch.rand(50, device="neuron:1")
    torch.neuron.set_rng_state(state, 1)
    assert torch.equal(first, torch.rand(50, device="neuron:1"))


def test_the_states_of_all_devices_go_and_come_together():
    states = torch.neuron.get_rng_state_all()
    assert len(states) == torch.neuron.device_count()
    first = [torch.rand(3, device=f"neuron:{index}").cpu() for index in range(4)]
    torch.neuron.set_rng_state_all(states)
    again = [torch.rand(3, device=f"neuron:{index}").cpu() for index in range(4)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_seed_all_gives_every_device_one_new_seed():
    torch.neuron.manual_seed_all(3)
    torch.neuron.seed_all()
    seeds = {generator.initial_seed() for generator in torch.neuron.default_generators}
    assert len(seeds) == 1
    assert seeds != {3}


def test_numbers_do_not_depend_on_the_stream():
    torch.manual_seed(3)
    expected = torch.randn(100, device="neuron")
    torch.manual_seed(3)
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        found = torch.randn(100, device="neuron")
    stream.synchronize()
    assert torch.equal(found, expected)


def test_a_generator_of_its_own_does_not_move_the_default_one():
    before = torch.neuron.get_rng_state()
    generator = torch.Generator("neuron").manual_seed(5)
    first = torch.rand(9, device="neuron", generator=generator)
    assert torch.equal(torch.neuron.get_rng_state(), before)
    assert generator.device.type == "neuron"
    again = torch.Generator("neuron").manual_seed(5)
    assert torch.equal(first, torch.rand(9, device="neuron", generator=again))


def test_fork_rng_restores_the_device():
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        inside = torch.rand(4, device="neuron")
    assert torch.equal(inside, torch.rand(4, device="neuron"))


def test_a_checkpointed_dropout_uses_the_same_mask_twice():
    torch.manual_seed(2)
    x = torch.ones(1000, device="neuron", requires_grad=True)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(
    "call",
    [
        lambda generator: torch.rand(2, generator=generator),
        lambda generator: torch.randint(3, (2,), generator=generator),
        lambda generator: torch.randperm(4, generator=generator),
        lambda generator: torch.empty(3).normal_(generator=generator),
        lambda generator: torch.bernoulli(torch.rand(3), generator=generator),
        lambda generator: torch.multinomial(torch.ones(3), 1, generator=generator),
        lambda generator: torch.poisson(torch.ones(3), generator=generator),
    ],
)
def test_a_neuron_generator_does_not_fill_cpu_tensors(call):
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        call(torch.Generator("neuron"))


def test_a_cpu_generator_does_not_fill_neuron_tensors():
    with pytest.raises(RuntimeError, match=r"found 'cpu'. Create it with torch.Generator"):
        torch.rand(2, device="neuron", generator=torch.Generator())
