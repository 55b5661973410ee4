"""Programs that the tests plan."""

from __future__ import annotations

TRAINING = """
import torch
from torch import nn
def main():
    with torch.device("neuron"):
        model = nn.Sequential(nn.Embedding(100, 64), nn.Linear(64, 100))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(50):
        tokens = torch.randint(100, (4, 32), device="neuron")
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
main()
"""

INFERENCE = """
import sys, torch
from torch import nn
model = nn.Linear(1024, 1024).to("neuron").eval()
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8
with torch.no_grad():
    for _ in range(3):
        model(torch.zeros(batch, 1024, device="neuron"))
"""

KEYWORDS = """
import torch
model = torch.nn.Embedding(100, 64).to("neuron")
optimizer = torch.optim.SGD(model.parameters())
for _ in range(9):
    model(input=torch.zeros(4, 32, dtype=torch.long, device="neuron")).sum().backward()
    optimizer.step()
"""

NO_TENSORS = """
import torch
class Constant(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64, device="neuron"))
    def forward(self):
        return self.weight.square().sum()
model = Constant()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(9):
    model().backward()
    optimizer.step()
"""

MARKED = """
import torch, torch_neuronx
for _ in range(10):
    torch.ones(512, 512, device="neuron") @ torch.ones(512, 512, device="neuron")
    torch_neuronx.mark_step(30, "audio seconds")
"""

SHARDED = """
import sys, torch, torch.distributed as dist
dist.init_process_group("neuron")
tp = int(sys.argv[1])
class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList(
            torch.empty(8192, 262144 // tp, device="neuron") for _ in range(4))
    def forward(self, x):
        for weight in self.weights:
            y = x @ weight
            dist.all_reduce(y)
        return y
model = Layers()
with torch.no_grad():
    for _ in range(3):
        model(torch.ones(16, 8192, device="neuron"))
"""

FAILING = "raise KeyError('no such thing')\n"
IDLE = "print('nothing to do')\n"
