# SPDX-License-Identifier: Apache-2.0
"""Models that PyTorch exports: CNN, encoder, decoder with cache, LSTM, and one with Loop and If."""

import torch
from torch import nn

DIM, HEADS = 32, 4


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, groups=2), nn.Hardswish(), nn.Upsample(scale_factor=2.0, mode="bilinear"),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10), nn.LogSoftmax(1))

    def forward(self, x):
        return self.layers(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, DIM)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 64, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids, mask):
        bias = (1.0 - mask.to(torch.float32)) * -3.4e38
        hidden = self.embed(ids)
        for layer in self.layers.layers:
            hidden = layer(hidden, src_key_padding_mask=bias < -1)
        return hidden


class Decoder(nn.Module):
    """One step with the keys and values of the steps before."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, 50)

    def forward(self, ids, past_key, past_value):
        x = self.norm(self.embed(ids))
        batch, length, _ = x.shape
        split = lambda t: t.view(batch, length, HEADS, DIM // HEADS).transpose(1, 2)  # noqa: E731
        q, k, v = (split(t) for t in self.qkv(x).chunk(3, -1))
        key, value = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        steps = torch.arange(key.shape[2])
        mask = steps[None, :] > (steps[-length:])[:, None]
        scores = (q @ key.transpose(2, 3)) / (DIM // HEADS) ** 0.5
        weights = scores.masked_fill(mask, torch.finfo(torch.float32).min).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, DIM)), key, value


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class LoopAndIf(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, steps: int):
        total = torch.zeros_like(x)
        for i in range(steps):
            x = torch.tanh(self.linear(x))
            if i % 2 == 0:
                total = total + x
            else:
                total = total * 0.5 - x
        return total


def export(folder):
    """Writes the models; gives (name, path, inputs)."""
    torch.manual_seed(11)
    ids = torch.randint(0, 50, (2, 7))
    past = torch.randn(2, HEADS, 5, DIM // HEADS)
    rows = [
        ("cnn", Cnn(), (torch.randn(2, 3, 16, 16),), ["x"]),
        ("encoder", Encoder(), (ids, torch.tensor([[1] * 7, [1] * 4 + [0] * 3])), ["ids", "mask"]),
        ("decoder-with-cache", Decoder(), (ids[:, :1], past, past * 0.3), ["ids", "past_key", "past_value"]),
        ("lstm", Lstm(), (torch.randn(2, 6, 12),), ["x"]),
        ("loop-and-if", torch.jit.script(LoopAndIf().eval()), (torch.randn(2, 8), torch.tensor(5)), ["x", "steps"]),
    ]
    made = []
    for name, model, inputs, names in rows:
        scripted = isinstance(model, torch.jit.ScriptModule)
        for dynamo in ([False] if scripted else [False, True]):
            path = folder / f"{name}-{'dynamo' if dynamo else 'torchscript'}.onnx"
            given = (inputs[0], 5) if scripted else inputs
            try:
                torch.onnx.export(model.eval(), given, str(path), input_names=names, dynamo=dynamo,
                                  opset_version=18 if dynamo else 17, verbose=False)
            except Exception as problem:
                print(f"not exported: {path.stem}: {str(problem).splitlines()[0][:150]}", flush=True)
                continue
            made.append((path.stem, path, {name: tensor.numpy() for name, tensor in zip(names, inputs)}))
    return made
