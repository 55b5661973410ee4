"""One process stands for a rank of many: sizes, overlap and FSDP2 with tensor parallelism."""

from __future__ import annotations

from python_process import run_python

_GROUP = """
import torch, torch.distributed as dist
dist.init_process_group("neuron")
assert (dist.get_rank(), dist.get_world_size()) == (5, 64)
x = torch.ones(1 << 20, device="neuron")
gathered = torch.empty(64 << 20, device="neuron")
"""


def _run(code: str) -> str:
    done = run_python(
        _GROUP + code,
        NEURON_DRIVER="dry",
        NEURON_INSTANCE_TYPE="trn2.48xlarge",
        RANK="5",
        WORLD_SIZE="64",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_collective_takes_modelled_time():
    out = _run("""
with torch.neuron.measure() as m:
    dist.all_gather_into_tensor(gathered, x)
assert list(m.breakdown.op)[0] == "c10d::neuron_all_gather", m.breakdown.op
print(m.breakdown.engine["collectives"])
""")
    assert 1e-4 < float(out) < 1.0


def test_an_asynchronous_collective_overlaps_computation():
    out = _run("""
a = torch.ones(4096, 4096, device="neuron", dtype=torch.bfloat16)
def both(asynchronous):
    with torch.neuron.measure() as m:
        work = dist.all_gather_into_tensor(gathered, x, async_op=asynchronous)
        for _ in range(4):
            a @ a
        if asynchronous:
            work.wait()
        a @ a
    return m.time
print(both(False), both(True))
""")
    serial, overlapped = map(float, out.split())
    assert overlapped < 0.95 * serial


def test_subgroups_know_where_they_sit():
    out = _run("""
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("neuron", (16, 4), mesh_dim_names=("dp", "tp"))
def time_of(name):
    with torch.neuron.measure() as m:
        dist.all_reduce(x, group=mesh[name].get_group())
    return m.time
print(time_of("tp"), time_of("dp"))
""")
    near, far = map(float, out.split())
    assert 0 < near < far


def test_fsdp_and_tensor_parallelism_shard_the_weights():
    done = run_python(
        """
import sys
sys.argv = ["llama_training.py", "--tp", "4", "--length", "64", "--steps", "2"]
import torch
from examples.plan import llama_training
with torch.neuron.dry_values(1.0):
    llama_training.main()
print(torch.neuron.max_memory_allocated())
""",
        NEURON_DRIVER="dry",
        NEURON_INSTANCE_TYPE="trn2.48xlarge",
        RANK="0",
        WORLD_SIZE="16",
    )
    assert done.returncode == 0, done.stderr
    assert "step 1: loss 1.000" in done.stdout
