"""torch.distributed on neuron. Registering the backend is in `backend`."""
