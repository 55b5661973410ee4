"""Sharing device memory between processes, as torch.multiprocessing does for CPU tensors.

Device memory is host memory here, so a storage that goes to another process moves into a mapping
that both have. Its tensors stay as they are; the modelled HBM stays taken in the process that
sent it, and the one that receives it takes none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import get_sharing_strategy, reductions
from torch.multiprocessing.reductions import StorageWeakRef

from torch_neuronx import _C
from torch_neuronx.device.cores import _lazy_init

Rebuild = tuple[Callable[..., torch.UntypedStorage], tuple[Any, ...]]


class _Pairs:
    """The device storages that are shared here, each with its mapping; keeps neither alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pairs: dict[int, tuple[StorageWeakRef, StorageWeakRef, str]] = {}
        self._by_mapping: dict[int, int] = {}

    def add(self, storage: torch.UntypedStorage, mapping: torch.UntypedStorage) -> None:
        with self._lock:
            for key in [key for key, pair in self._pairs.items() if pair[0].expired()]:
                self._forget(key)
            self._forget(storage._cdata)
            pair = StorageWeakRef(storage), StorageWeakRef(mapping), get_sharing_strategy()
            self._pairs[pair[0].cdata] = pair
            self._by_mapping[pair[1].cdata] = pair[0].cdata

    def mapping_of(self, storage: torch.UntypedStorage) -> torch.UntypedStorage | None:
        """The mapping under `storage`, where it has one of the strategy in use.

        PyTorch would give a mapping of the other strategy new memory under our feet.
        """
        with self._lock:
            pair = self._pairs.get(storage._cdata)
            if pair is None or pair[2] != get_sharing_strategy():
                return None
            return _alive(pair[1])

    def storage_over(self, mapping: torch.UntypedStorage) -> torch.UntypedStorage | None:
        """The device storage over `mapping` in this process, where there is one."""
        with self._lock:
            key = self._by_mapping.get(mapping._cdata)
            return None if key is None else _alive(self._pairs[key][0])

    def _forget(self, key: int) -> None:
        pair = self._pairs.pop(key, None)
        if pair is not None:
            self._by_mapping.pop(pair[1].cdata, None)


def _alive(reference: StorageWeakRef) -> torch.UntypedStorage | None:
    # An expired reference gives None.
    found: torch.UntypedStorage | None = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    return found


_pairs = _Pairs()


def install() -> None:
    """Let pickling to other processes know storages of this device; others are as before."""
    ForkingPickler.register(torch.UntypedStorage, _reduce)


def _reduce(storage: torch.UntypedStorage) -> Any:
    if storage.device.type != "neuron":
        return reductions.reduce_storage(storage)
    if storage.nbytes() == 0 or _C._is_dry():
        return _rebuild_without_memory, (storage.nbytes(), storage.device.index)
    mapping = _pairs.mapping_of(storage)
    if mapping is None:
        mapping = torch.UntypedStorage._new_shared(storage.nbytes())
        _C._move_into_shared(_bytes_of(storage), _bytes_of(mapping))
        _pairs.add(storage, mapping)
    rebuild, arguments = reductions.reduce_storage(mapping)
    return _rebuild, (storage.device.index, rebuild, arguments)


def _rebuild(
    device: int, rebuild: Callable[..., torch.UntypedStorage], arguments: tuple[Any, ...]
) -> torch.UntypedStorage:
    _lazy_init()
    mapping = rebuild(*arguments)
    storage = _pairs.storage_over(mapping)
    if storage is None:
        storage = _C._over_shared(_bytes_of(mapping), device).untyped_storage()
        _pairs.add(storage, mapping)
    return storage


def _rebuild_without_memory(nbytes: int, device: int) -> torch.UntypedStorage:
    return torch.UntypedStorage(nbytes, device=torch.device("neuron", device))


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return tensor.set_(storage)
