# SPDX-License-Identifier: Apache-2.0
"""Trains a line with PyTorch whose weights pass through float8 in every step.

    python train_through_float8.py
"""

import torch

import tensorcast as tc


def fit(steps: int = 200) -> tuple[float, float]:
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64)
    y = 1.75 * x - 0.5
    slope = torch.zeros((), requires_grad=True)
    offset = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([slope, offset], lr=0.2)
    for _ in range(steps):
        optimizer.zero_grad()
        narrow = tc.cast(tc.cast(slope, "float8_e4m3fn"), "float32")  # the gradient passes straight through
        loss = ((narrow * x + offset - y) ** 2).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return tc.cast(slope.detach(), "float8_e4m3fn").float().item(), offset.item()


def main() -> None:
    slope, offset = fit()
    print(f"slope {slope:.3f} in float8, offset {offset:.3f}")


if __name__ == "__main__":
    main()
