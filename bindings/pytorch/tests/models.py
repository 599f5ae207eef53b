"""The models that the tests train and the README's script uses: sizes that a processor trains in seconds."""
import torch
import torch.nn.functional as F
from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A decoder of text, letter by letter."""

    def __init__(self, letters=32, width=64, layers=2, heads=4, length=32):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, text):
        x = self.letters(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


def resnet18(width=8, classes=10):
    """ResNet-18 (He et al., 2015), with `width` channels in place of 64."""
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for factor, stride in ((1, 1), (2, 2), (4, 2), (8, 2)):
        for first in (True, False):
            layers.append(Residual(inputs, width * factor, stride if first else 1))
            inputs = width * factor
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def perceptron(inputs=64, hidden=128, classes=10):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))


def images(count, size=32, classes=10):
    """Images of gratings whose direction is their class, with noise."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, classes, (count,), generator=generator)
    angle = labels * (torch.pi / classes)
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    wave = torch.sin(0.7 * (x * torch.cos(angle)[:, None, None] + y * torch.sin(angle)[:, None, None]))
    return wave[:, None] + 0.3 * torch.randn(count, 3, size, size, generator=generator), labels


def texts(count, length=32, letters=32):
    """Texts whose next letter follows from the two before; the task is to predict it."""
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(0, letters, (count, length + 1), generator=generator)
    for place in range(2, length + 1):
        text[:, place] = (text[:, place - 1] + 3 * text[:, place - 2]) % letters
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def digits():
    """scikit-learn's handwritten digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.data, dtype=torch.float32) / 16, torch.tensor(data.target)


def loss_of(model, inputs, targets):
    outputs = model(inputs)
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1))


TASKS = {
    "perceptron": (perceptron, digits, lambda p, **o: torch.optim.SGD(p, lr=0.1, momentum=0.9, **o), 64),
    "resnet18": (resnet18, lambda: images(64), lambda p, **o: torch.optim.Adam(p, lr=1e-3, **o), 8),
    "transformer": (Transformer, lambda: texts(64), lambda p, **o: torch.optim.AdamW(p, lr=1e-3, **o), 8),
}


def train(task, device, steps, watch=None, compiled=False):
    """The losses of `steps` steps, with a compiled model if wanted. `watch(step)` is called after each."""
    make_model, make_data, make_optimizer, batch = TASKS[task]
    torch.manual_seed(0)
    model = make_model().to(device)
    optimizer = make_optimizer(model.parameters(), **({} if device == "cpu" else {"fused": True}))
    inputs, targets = (part.to(device) for part in make_data())
    evaluate = torch.compile(loss_of, dynamic=False) if compiled else loss_of
    losses = []
    for step in range(steps):
        first = step * batch % (len(inputs) - batch + 1)
        optimizer.zero_grad()
        loss = evaluate(model, inputs[first:first + batch], targets[first:first + batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if watch:
            watch(step)
    return [loss.item() for loss in losses]
