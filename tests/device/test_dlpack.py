"""DLPack and NumPy: neuron tensors leave and enter without surprises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.dlpack import DLDeviceType


def test_the_device_is_an_extension_device():
    assert torch.ones(1, device="neuron:2").__dlpack_device__() == (DLDeviceType.kDLExtDev, 2)
    assert torch.ones(1).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


def test_a_round_trip_shares_memory_and_device():
    x = torch.arange(6, device="neuron:1").view(2, 3)
    y = torch.from_dlpack(x)
    assert y.device == x.device
    assert y.data_ptr() == x.data_ptr()
    y[0, 0] = 100
    assert x[0, 0].item() == 100


def test_queued_work_is_finished_before_the_memory_is_handed_over():
    x = torch.zeros(1000, device="neuron")
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        x.add_(1)
        y = torch.from_dlpack(x)
    assert stream.query()
    assert y.sum().item() == 1000


def test_numpy_takes_a_copy_through_the_cpu():
    x = torch.arange(4.0, device="neuron")
    assert np.array_equal(np.from_dlpack(x.cpu()), np.arange(4.0, dtype=np.float32))
    with pytest.raises(TypeError, match=r"[Cc]opy the tensor to host memory|\.cpu\(\)"):
        x.numpy()


def test_a_tensor_that_needs_gradients_is_refused():
    with pytest.raises(BufferError, match="detach"):
        torch.ones(1, device="neuron", requires_grad=True).__dlpack__()
