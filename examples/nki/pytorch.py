"""A kernel in PyTorch: called directly, as an operator with a gradient, and in torch.compile."""

import torch

import nki
import nki.isa as nisa
import nki.language as nl
import torch_neuronx


@nki.jit
def scaled_relu(x, scale=1.0):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for rows in range(0, x.shape[0], nl.tile_size.pmax):
        part = slice(rows, min(rows + nl.tile_size.pmax, x.shape[0]))
        tile = nl.load(x[part])
        nisa.tensor_scalar(tile, tile, nl.multiply, scale, op1=nl.maximum, operand1=0.0)
        nl.store(out[part], tile)
    return out


@torch_neuronx.nki_op("examples::scaled_relu", mutates_args=())
def scaled_relu_op(x: torch.Tensor, scale: float) -> torch.Tensor:
    return scaled_relu(x, scale)


def _setup(ctx, inputs, output) -> None:
    ctx.save_for_backward(output)
    ctx.scale = inputs[1]


def _backward(ctx, grad):
    (output,) = ctx.saved_tensors
    return grad * ctx.scale * (output > 0), None


scaled_relu_op.register_autograd(_backward, setup_context=_setup)


def main() -> None:
    x = torch.randn(300, 64, generator=torch.Generator().manual_seed(0)).to("neuron")
    expected = (2 * x).relu()
    assert torch.equal(scaled_relu(x, 2.0), expected)
    assert torch.equal(torch_neuronx.wrap_nki(scaled_relu)[1](x, 2.0), expected)

    weight = torch.ones(64, device="neuron", requires_grad=True)

    @torch.compile(backend="neuron", fullgraph=True)
    def loss(x):
        return scaled_relu_op(x * weight, 2.0).sum()

    loss(x).backward()
    torch.testing.assert_close(weight.grad, (2 * x * (x > 0)).sum(0))
    kernels = [name for name in torch_neuronx.get_executed_ops() if name.startswith("nki::")]
    print(f"ran {kernels}; modelled {nki.modelled_seconds(scaled_relu, x, 2.0) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
