"""The penalty in your own training loop: a module that returns a number for a batch.

python examples/own_loop.py
"""

from __future__ import annotations

import torch
from applicants import applicants
from torch import nn

from frhsic.parity import gdp
from frhsic.penalties import HSIC


def main(n: int = 2000, epochs: int = 60, weight: float = 10.0) -> dict[str, float]:
    table, hired, age = applicants(n)
    x = torch.tensor(table[["experience", "test"]].to_numpy(), dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    y = torch.tensor(hired.to_numpy(), dtype=torch.float32)
    s = torch.tensor(age.to_numpy(), dtype=torch.float32)
    gaps = {}
    for name, strength in (("unpenalised", 0.0), ("penalised", weight)):
        scores = train(x, y, s, epochs, strength)
        gaps[name] = float(gdp(torch.sigmoid(scores), s, resamples=0))
    print(gaps)
    return gaps


def train(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, epochs: int, weight: float) -> torch.Tensor:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 16))
    head = nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3)
    penalty = HSIC()  # the head and a Gaussian in the kernel on z
    penalty.prepare(s, torch.Generator().manual_seed(0))  # once: the scale of s
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(256):
            z = encoder(x[rows])
            penalty.adapt(z.detach(), s[rows], epoch)  # nothing for this one; an adversary takes its step here
            scores = head(z)
            loss = nn.functional.binary_cross_entropy_with_logits(scores[:, 0], y[rows])
            loss = loss + weight * penalty(z, s[rows], scores=scores, y=y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return head(encoder(x))[:, 0]


if __name__ == "__main__":
    main()
