"""Causal linear attention in PyTorch, driven line by line from standard input: the C++ kernel of
pytorch-fast-transformers, or PyTorch's own operations in chunks.

Needs `pip install torch pytorch-fast-transformers` (built without -march=native, as pip does). OMP_NUM_THREADS threads.

    make N r gradients C FILE   inputs q, k, v and, for gradients, dy as float32, one after the other. C = 0: [N,H,r] for
                                pytorch-fast-transformers; else [H,N,r] in chunks of C, which divides N
    run                         one call: prints its milliseconds
    save FILE                   the last call's results as float32: output, then dq, dk, dv
"""
import os
import sys
import time

import numpy
import torch
from fast_transformers.attention import CausalLinearAttention
from fast_transformers.masking import LengthMask, TriangularCausalMask

HEADS = 8
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def fast_transformers(length, size):
    """Of q, k, v [1,N,H,.]."""
    attention = CausalLinearAttention(size)
    mask = TriangularCausalMask(length)
    lengths = LengthMask(torch.tensor([length]))
    return lambda q, k, v: attention(q, k, v, mask, lengths, lengths)


def chunked(length, size, chunk):
    """Of q, k, v [1,H,N,.]: what one would write without a kernel, as the stock compositions of tfjs are."""

    def run(q, k, v):
        Q, K = (torch.nn.functional.elu(x).add(1).unflatten(2, (-1, chunk)) for x in (q, k))
        V = v.unflatten(2, (-1, chunk))
        states = K.transpose(-1, -2) @ V
        sums = K.sum(-2, keepdim=True)
        before = states.cumsum(2) - states
        z = sums.cumsum(2) - sums
        scores = (Q @ K.transpose(-1, -2)).tril()
        numerator = Q @ before + scores @ V
        denominator = Q @ z.transpose(-1, -2) + scores.sum(-1, keepdim=True)
        return (numerator / (denominator + 1e-6)).flatten(2, 3)

    return run


class Work:
    """One shape and form."""

    def __init__(self, length, size, gradients, chunk, path):
        values = torch.from_numpy(numpy.fromfile(path, dtype=numpy.float32))
        shape = (1, HEADS, length, size) if chunk else (1, length, HEADS, size)
        parts = values.reshape(4 if gradients else 3, *shape).unbind(0)
        self.inputs = [part.clone().requires_grad_(gradients) for part in parts[:3]]
        self.dy = parts[3].clone() if gradients else None
        self.attention = chunked(length, size, chunk) if chunk else fast_transformers(length, size)
        self.results = []

    def run(self):
        for x in self.inputs:
            x.grad = None
        started = time.perf_counter()
        output = self.attention(*self.inputs)
        if self.dy is not None:
            output.backward(self.dy)
        self.results = [output.detach().numpy()] + [x.grad.numpy() for x in self.inputs if x.grad is not None]
        return (time.perf_counter() - started) * 1000


work = None
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    command, *rest = line.split(maxsplit=5)
    if command == "make":
        work = Work(int(rest[0]), int(rest[1]), rest[2] == "1", int(rest[3]), rest[4].strip())
        print("made", flush=True)
    elif command == "run":
        print(work.run(), flush=True)
    elif command == "save":
        numpy.concatenate([x.ravel() for x in work.results]).tofile(" ".join(rest).strip())
        print("saved", flush=True)
