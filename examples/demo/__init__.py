"""The demo: real speech, real text and a real training run on `neuron`, beside the CPU device."""
