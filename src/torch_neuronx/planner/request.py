"""`plan`: a program on instances, one dry child process for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import neuron_chip
from neuron_chip.gpus import GpuInstance, gpu_instance
from neuron_chip.prices import PRICES, NoPriceError, Price, price_of
from torch_neuronx.planner import process
from torch_neuronx.planner.result import GpuResult, Plan, PlanResult

DEFAULT_GPUS = ("p5.4xlarge", "p5en.48xlarge", "g6e.xlarge")


class PlanError(RuntimeError):
    """The program could not be planned."""


def plan(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    instances: Sequence[str] = (neuron_chip.DEFAULT_INSTANCE,),
    world_size: int = 1,
    rank: int = 0,
    replicas: int | None = None,
    steps: int = 2,
    software: str = "eager",
    value: float | None = 1.0,
    sizes: Mapping[str, int] | None = None,
    gpus: Sequence[str] = DEFAULT_GPUS,
    market: str | None = None,
    prices: tuple[Price, ...] = PRICES,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = 1800.0,
) -> Plan:
    """Run a program dry and report one of its steps.

    Args:
        script: a Python program for the device neuron; it is not changed.
        arguments: its command line.
        instances: Neuron instance types, each planned in a process of its own.
        world_size: ranks, one per logical core; the program sees them as under torchrun.
        rank: which of them this plan is of.
        replicas: ranks that work on data of their own (world size by TP and PP); all by default.
        steps: how many to run; the last is reported.
        software: "eager" starts every operation by itself; "compiled" starts a graph for each call
            of the outermost module and of the optimizer (fusion is not modelled: an upper bound).
        value: what the program gets where it reads a value; None makes that an error.
        sizes: entries of results whose size depends on data, by operator; "*" for all.
        gpus: GPU instances to compare with.
        market: of the prices; the first that is quoted by default.
        prices: the price table.
        environment: more environment variables of the program.
        timeout_seconds: for each instance.

    Raises:
        PlanError: the program failed, or took longer.
        UnknownNameError: there is no such instance.
    """
    if not Path(script).is_file():
        raise PlanError(f"There is no program {script}. Give the path of a Python file.")
    if steps < 1:
        raise PlanError(f"A plan of {steps} steps shows none. Give 1 or more; the last is shown.")
    if not 0 <= rank < world_size:
        raise PlanError(
            f"Rank {rank} of {world_size} ranks: give a rank from 0 to {world_size - 1}."
        )
    compare_with = [gpu_instance(name).name for name in gpus]
    request: dict[str, Any] = {
        "script": str(script),
        "arguments": list(arguments),
        "steps": steps,
        "software": software,
        "value": value,
        "sizes": dict(sizes or {}),
        "gpus": compare_with,
    }
    results: list[PlanResult] = []
    compared: list[GpuResult] = []
    for name in instances:
        instance = neuron_chip.instance(name)
        raw = _child(request, instance, world_size, rank, environment or {}, timeout_seconds)
        ranks = replicas or world_size
        raw["units"] *= ranks
        gpu_seconds, cores = raw.pop("gpu_seconds"), raw.pop("cores")
        num_instances = math.ceil(world_size / cores)
        hourly, source = _price(instance.name, market, prices)
        result = PlanResult(
            instance=instance.name,
            software=software,
            world_size=world_size,
            rank=rank,
            num_instances=num_instances,
            num_cores=num_instances * cores,
            usd_per_hour=None if hourly is None else hourly * num_instances,
            price_source=source,
            **raw,
        )
        results.append(result)
        if not compared:
            compared = [
                _gpu(gpu_instance(gpu), gpu_seconds[gpu], result, market, prices)
                for gpu in compare_with
            ]
    return Plan(script=str(script), arguments=list(arguments), results=results, gpus=compared)


def _child(
    request: dict[str, Any],
    instance: neuron_chip.Instance,
    world_size: int,
    rank: int,
    environment: Mapping[str, str],
    timeout_seconds: float,
) -> dict[str, Any]:
    changes: dict[str, str | None] = {
        "NEURON_DRIVER": "dry",
        "NEURON_INSTANCE_TYPE": instance.name,
        "NEURON_PLATFORM_TARGET_OVERRIDE": None,
        # One rank is one core, as torchrun's processes have it.
        "NEURON_RT_VISIBLE_CORES": "0",
        "RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": str(min(world_size, instance.logical_cores())),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        **environment,
    }
    script = request["script"]
    try:
        result, log = process.run(request, changes, timeout_seconds)
    except TimeoutError:
        raise PlanError(
            f"{script} did not end within {timeout_seconds:g} s on {instance.name}. Let it run "
            "fewer steps, or raise the timeout."
        ) from None
    if result is None:
        raise PlanError(f"{script} broke off on {instance.name}:\n{log[-2000:]}")
    if "error" in result:
        raise PlanError(f"{script} failed on {instance.name}: {result['error']}\n{log[-2000:]}")
    return result


def _price(
    instance: str, market: str | None, prices: tuple[Price, ...]
) -> tuple[float | None, str]:
    try:
        row = price_of(instance, market=market, table=prices)
    except NoPriceError as error:
        return None, str(error)
    return row.usd_per_hour, f"{row.market}, {row.seen}, {row.source}"


def _gpu(
    instance: GpuInstance,
    rank_seconds: float,
    result: PlanResult,
    market: str | None,
    prices: tuple[Price, ...],
) -> GpuResult:
    """The work of all ranks, spread evenly over the GPUs of one instance."""
    seconds = rank_seconds * result.world_size / instance.num_gpus
    per_second = result.units / seconds if seconds else 0.0
    hourly, _ = _price(instance.name, market, prices)
    return GpuResult(
        instance=instance.name,
        num_gpus=instance.num_gpus,
        step_seconds=seconds,
        units_per_second=per_second,
        usd_per_hour=hourly,
        usd_per_million_units=(
            1e6 * hourly / 3600 / per_second if hourly is not None and per_second else None
        ),
        fits=result.hbm_peak_bytes * result.world_size
        <= instance.gpu.memory_bytes * instance.num_gpus,
    )
