"""Collectives: the bytes and the group of a call, as the process group reports them.

Their arguments are integers: bytes of the whole buffer, ranks of the group, distance between
neighbouring ranks.
"""

from __future__ import annotations

from neuron_chip import Work
from neuron_chip.collectives import Collective, group
from torch_neuronx.ops.costs.call import Call, Machine
from torch_neuronx.ops.costs.registry import rule

# Operators as c10d names them -> collectives of `neuron_chip`.
COLLECTIVES = {
    "neuron_all_reduce": "all_reduce",
    "neuron_all_gather": "all_gather",
    "neuron_reduce_scatter": "reduce_scatter",
    "neuron_all_to_all": "all_to_all",
    "neuron_broadcast": "broadcast",
    "neuron_reduce": "reduce",
    "neuron_gather": "gather",
    "neuron_scatter": "scatter",
    "neuron_send_recv": "send_recv",
    "neuron_barrier": "barrier",
}


@rule(*COLLECTIVES)
def _collective(call: Call, machine: Machine) -> Work:
    num_bytes, ranks, stride = (int(each) for each in call.arguments)
    name = COLLECTIVES[call.op.rpartition("::")[2]]
    members = group(machine.instance, ranks, stride=stride, lnc=machine.lnc)
    return Work(collectives={Collective(op=name, num_bytes=num_bytes, group=members): 1.0})
