"""torch.compile for neuron. In pipeline order: options, backend, host_graph, executable."""
