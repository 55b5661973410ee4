"""The selective scan of Mamba: one tensor_tensor_scan for each state, channels in partitions."""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def selective_scan(delta, u, a, b, c):
    """delta, u: [channels, length]; a: [channels, states]; b, c: [states, length]."""
    channels, length = delta.shape
    states = a.shape[1]
    out = nl.ndarray((channels, length), delta.dtype, buffer=nl.shared_hbm)
    for start in range(0, channels, nl.tile_size.pmax):
        rows = slice(start, start + nl.tile_size.pmax)
        step, source, decay = nl.load(delta[rows]), nl.load(u[rows]), nl.load(a[rows])
        tile = (step.shape[0], length)
        drive = nl.ndarray(tile, nl.float32)
        nisa.tensor_tensor(drive, step, source, nl.multiply)
        total = nl.zeros(tile, nl.float32)
        for state in range(states):
            keep = nl.ndarray(tile, nl.float32)
            nisa.activation(keep, nl.exp, step, scale=decay[:, state : state + 1])
            b_row = nl.broadcast_to(nl.load(b[state : state + 1]), tile)
            c_row = nl.broadcast_to(nl.load(c[state : state + 1]), tile)
            inflow, hidden, outflow = (nl.ndarray(tile, nl.float32) for _ in range(3))
            nisa.tensor_tensor(inflow, drive, b_row, nl.multiply)
            nisa.tensor_tensor_scan(hidden, keep, inflow, 0.0, nl.multiply, nl.add)
            nisa.tensor_tensor(outflow, hidden, c_row, nl.multiply)
            nisa.tensor_tensor(total, total, outflow, nl.add)
        nl.store(out[rows], total)
    return out


def reference(delta, u, a, b, c):
    """The recurrence, one time step after the other."""
    hidden = np.zeros(a.shape)
    out = np.empty(delta.shape)
    for t in range(delta.shape[1]):
        hidden = np.exp(delta[:, t, None] * a) * hidden + (delta[:, t] * u[:, t])[:, None] * b[:, t]
        out[:, t] = hidden @ c[:, t]
    return out


def main(channels: int = 256, states: int = 8, length: int = 256) -> None:
    rng = np.random.default_rng(0)
    delta = rng.uniform(0.01, 0.2, (channels, length)).astype(np.float32)
    u = rng.standard_normal((channels, length)).astype(np.float32)
    a = -rng.uniform(0.5, 2, (channels, states)).astype(np.float32)
    b, c = rng.standard_normal((2, states, length)).astype(np.float32)
    out = selective_scan(delta, u, a, b, c)
    np.testing.assert_allclose(out, reference(delta, u, a, b, c), rtol=1e-4, atol=1e-4)
    print(nki.profile(selective_scan)(delta, u, a, b, c).report())


if __name__ == "__main__":
    main()
