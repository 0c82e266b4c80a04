"""Causal linear attention of pytorch-fast-transformers (C++), driven line by line from standard input.

Needs `pip install torch pytorch-fast-transformers` (built without -march=native, as pip does). One thread.

    make N r gradients FILE   inputs q, k, v and, for gradients, dy as float32 [N,H,r] one after the other
    run                       one call: prints its milliseconds
    save FILE                 the last call's results as float32: output, then dq, dk, dv
"""
import sys
import time

import numpy
import torch
from fast_transformers.attention import CausalLinearAttention
from fast_transformers.masking import LengthMask, TriangularCausalMask

HEADS = 8
torch.set_num_threads(1)


class Work:
    """One shape; layout [1,N,H,.]."""

    def __init__(self, length, size, gradients, path):
        values = torch.from_numpy(numpy.fromfile(path, dtype=numpy.float32))
        parts = values.reshape(4 if gradients else 3, 1, length, HEADS, size).unbind(0)
        self.inputs = [part.clone().requires_grad_(gradients) for part in parts[:3]]
        self.dy = parts[3].clone() if gradients else None
        self.attention = CausalLinearAttention(size)
        self.mask = TriangularCausalMask(length)
        self.lengths = LengthMask(torch.tensor([length]))
        self.results = []

    def run(self):
        for x in self.inputs:
            x.grad = None
        started = time.perf_counter()
        output = self.attention(*self.inputs, self.mask, self.lengths, self.lengths)
        if self.dy is not None:
            output.backward(self.dy)
        self.results = [output.detach().numpy()] + [x.grad.numpy() for x in self.inputs if x.grad is not None]
        return (time.perf_counter() - started) * 1000


work = None
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    command, *rest = line.split(maxsplit=4)
    if command == "make":
        work = Work(int(rest[0]), int(rest[1]), rest[2] == "1", rest[3].strip())
        print("made", flush=True)
    elif command == "run":
        print(work.run(), flush=True)
    elif command == "save":
        numpy.concatenate([x.ravel() for x in work.results]).tofile(" ".join(rest).strip())
        print("saved", flush=True)
