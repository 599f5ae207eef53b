"""Models that PyTorch's users write, eager and compiled: each program gives on the device what it gives on the CPU. Operators may run on the CPU here."""
import math
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import models
from programs import assert_same, gradients, integers, made, randn

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class GatedBlock(nn.Module):
    """A layer of today's language models: RMS norms, rotated queries and keys, few key heads, a gated perceptron."""

    def __init__(self, width=16, heads=4, key_heads=2):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, key_heads, key_heads))
        self.out, self.up, self.gate, self.down = nn.Linear(width, width), nn.Linear(width, 32), nn.Linear(width, 32), nn.Linear(32, width)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))

    def forward(self, x, rotations):
        y = self.norms[0](x)

        def split(part, heads):
            part = part.view(*x.shape[:2], heads, self.size).transpose(1, 2)
            pairs = torch.view_as_complex(part.float().reshape(*part.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * rotations).flatten(3).type_as(part)

        v = self.v(y).view(*x.shape[:2], self.key_heads, self.size).transpose(1, 2)
        attended = F.scaled_dot_product_attention(split(self.q(y), self.heads), split(self.k(y), self.key_heads), v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@program
def a_language_model(device):
    block, embedding, head = made(GatedBlock, device), made(lambda: nn.Embedding(20, 16), device), made(lambda: nn.Linear(16, 20, bias=False), device)
    angles = torch.outer(torch.arange(7.0), 1 / 100 ** (torch.arange(0, 4, 2) / 4))
    rotations, text = torch.polar(torch.ones_like(angles), angles).to(device), integers(0, 20, 2, 8).to(device)
    parameters = [*block.parameters(), *embedding.parameters(), *head.parameters()]
    optimizer, losses = torch.optim.AdamW(parameters, lr=0.01), []
    for _ in range(3):
        loss = F.cross_entropy(head(block(embedding(text[:, :-1]), rotations)).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


@program
def choices_of_words(device):
    """Temperature, the k best, the most likely ones up to p, penalties, beams."""
    logits, seen = randn(3, 20).to(device) * 3, integers(0, 20, 3, 6).to(device)
    penalized = logits.scatter(1, seen, torch.where(logits.gather(1, seen) > 0, logits.gather(1, seen) / 1.3, logits.gather(1, seen) * 1.3))
    best = penalized.topk(5)
    only_best = torch.full_like(logits, -math.inf).scatter(1, best.indices, best.values)
    ordered, order = penalized.sort(descending=True)
    is_out = ordered.softmax(1).cumsum(1) > 0.8
    is_out[:, 1:] = is_out[:, :-1].clone()
    is_out[:, 0] = False
    nucleus = penalized.masked_fill(torch.zeros_like(is_out).scatter(1, order, is_out), -math.inf)
    drawn = torch.multinomial(nucleus.softmax(1), 1)
    assert nucleus.gather(1, drawn).isfinite().all()
    scores, places = (penalized.log_softmax(1) + randn(3, 1).to(device)).flatten().topk(3)
    return only_best, nucleus, scores, places // 20, places % 20, drawn.shape


@program
def attention_of_all_kinds(device):
    x, memory = randn(2, 5, 16).to(device).requires_grad_(), randn(2, 7, 12, seed=1).to(device)
    masks = torch.tensor([[False] * 5, [False] * 3 + [True] * 2], device=device)
    wide = made(lambda: nn.MultiheadAttention(16, 4, kdim=12, vdim=12, batch_first=True), device)
    biased = made(lambda: nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True, batch_first=True), device)
    causal = nn.Transformer.generate_square_subsequent_mask(5, device=device)
    q = x.view(2, 5, 4, 4).transpose(1, 2)
    results = [wide(x, memory, memory)[0], biased(x, x, x, key_padding_mask=masks)[0], biased(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0]]
    for options in (dict(), dict(is_causal=True), dict(attn_mask=causal), dict(attn_mask=causal == 0), dict(scale=0.3), dict(attn_mask=randn(2, 1, 5, 5).to(device))):
        results.append(F.scaled_dot_product_attention(q, q * 2, q + 1, **options))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        results.append(F.scaled_dot_product_attention(q, q, q))
    return [gradients(each, x) for each in results]


@program
def encoders_and_decoders(device):
    source, target = randn(2, 6, 16).to(device), randn(2, 4, 16, seed=1).to(device).requires_grad_()
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2], device=device)
    model = made(lambda: nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True, norm_first=True), device)
    causal = model.generate_square_subsequent_mask(4, device=device)
    output = model(source, target, tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding, tgt_is_causal=True)
    encoder = made(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2), device, training=False)
    with torch.no_grad():
        evaluated = encoder(source, src_key_padding_mask=padding)
    return gradients(output, target), evaluated, encoder(source, src_key_padding_mask=padding)[~padding]


@program
def a_model_of_diffusion(device):
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.middle, self.up = nn.Conv2d(1, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1), nn.ConvTranspose2d(16, 1, 4, 2, 1)
            self.norm, self.time, self.attention = nn.GroupNorm(2, 8), nn.Linear(8, 8), nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x, step):
            frequencies = torch.exp(-math.log(1000) * torch.arange(4, device=x.device) / 4)
            angles = step[:, None].float() * frequencies[None]
            h = self.down(x)
            y = self.norm(F.silu(self.middle(h))) + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
            places = y.flatten(2).transpose(1, 2)
            y = y + self.attention(places, places, places, need_weights=False)[0].transpose(1, 2).view_as(y)
            return self.up(torch.cat([y, h], 1))

    model, x = made(Denoiser, device), randn(3, 1, 8, 8).to(device)
    kept = (1 - torch.linspace(1e-3, 0.1, 10, device=device)).cumprod(0)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=0.01), []
    for turn in range(3):
        noise, step = randn(3, 1, 8, 8, seed=turn).to(device), integers(0, 10, 3, seed=turn).to(device)
        part = kept[step][:, None, None, None]
        loss = F.mse_loss(model(part.sqrt() * x + (1 - part).sqrt() * noise, step), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


@program
def an_operator_on_spectra(device):
    weight = torch.view_as_complex(randn(3, 3, 5, 2)).to(device).requires_grad_()
    optimizer, x, losses = torch.optim.Adam([weight], lr=0.05), randn(4, 3, 16).to(device), []
    for _ in range(3):
        modes = torch.fft.rfft(x)
        out = torch.zeros(4, 3, 9, dtype=torch.complex64, device=device)
        out[:, :, :5] = torch.einsum("bix,iox->box", modes[:, :, :5], weight)
        loss = (torch.fft.irfft(out, n=16) - x.roll(1, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses, weight


@program
def an_equation_that_learns(device):
    """A physics-informed network: derivatives of the network's output are part of the loss."""
    model = made(lambda: nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1)), device)
    optimizer, losses = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=4), []

    def closure():
        optimizer.zero_grad()
        t = torch.linspace(0, 1, 16, device=device)[:, None].requires_grad_()
        y = model(t)
        slope, = torch.autograd.grad(y.sum(), t, create_graph=True)
        loss = (slope + y).square().mean() + (y[0] - 1).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        losses.append(optimizer.step(closure))
    return losses


@program
def copies_on_threads(device):
    """A batch in parts, each by a replica on a thread of its own; gradients are added on the first."""
    replicas, x = [made(lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), device) for _ in range(3)], randn(9, 4).to(device)

    def work(index):
        replicas[index](x[index * 3:index * 3 + 3]).square().sum().backward()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [torch.stack(parts).sum(0) for parts in zip(*([p.grad for p in replica.parameters()] for replica in replicas))]


@program
def sequences_of_several_lengths(device):
    nested = torch.nested.nested_tensor([randn(n, 4, seed=n) for n in (2, 5, 3)], layout=torch.jagged, device=device)
    layer = made(lambda: nn.Linear(4, 3), device)
    return (layer(nested).relu() * 2).values(), nested.to_padded_tensor(0.0), nested.offsets()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, device):
    assert_same(PROGRAMS[name], device, rtol=1e-3, atol=1e-3)


# Compiled

COMPILED = {
    "picture": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, 2, 1, groups=2), nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(2),
                                      nn.Flatten(), nn.Dropout(0.0), nn.Linear(32, 3)), lambda: [randn(2, 3, 8, 8)]),
    "recurrent": (lambda: nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True), lambda: [randn(3, 6, 5)]),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), lambda: [randn(2, 5, 16)]),
    "attention": (lambda: nn.MultiheadAttention(16, 4, batch_first=True), lambda: [randn(2, 5, 16)] * 3),
    "gated": (lambda: nn.Sequential(nn.Linear(8, 12), nn.GLU(), nn.RMSNorm(6), nn.Softplus(), nn.LayerNorm(6), nn.Linear(6, 4), nn.LogSoftmax(-1)), lambda: [randn(5, 8)]),
    "up and down": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3, 2, 1), nn.ELU(), nn.ConvTranspose1d(4, 2, 4, 2, 1), nn.Upsample(scale_factor=2), nn.AvgPool1d(2), nn.ReflectionPad1d(2)), lambda: [randn(3, 2, 8)]),
    "weights under constraints": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), lambda: [randn(3, 5)]),
    "normalized": (lambda: nn.Sequential(nn.InstanceNorm1d(4, affine=True), nn.LocalResponseNorm(2), nn.BatchNorm1d(4, affine=False), nn.Hardswish()), lambda: [randn(2, 4, 6)]),
    "embedded": (lambda: nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 6), nn.Tanh()), lambda: [integers(0, 9, 2, 5)]),
}


@pytest.fixture
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_modules(name, device, fresh_compiler):
    """Two steps of training, with gradients of inputs and buffers."""
    def program(where):
        make, inputs = COMPILED[name]
        module = made(make, where)
        run = torch.compile(module) if where.type == "opencl" else module
        optimizer, results = torch.optim.SGD(module.parameters(), lr=0.1) if list(module.parameters()) else None, []
        for _ in range(2):
            given = [x.to(where).clone().requires_grad_(x.is_floating_point()) for x in inputs()]
            output = run(*given)
            sum((part * (index + 1)).square().sum() for index, part in enumerate(torch.utils._pytree.tree_leaves(output))).backward()
            results.append([output, [x.grad for x in given], [p.grad for p in module.parameters()], list(module.buffers())])
            if optimizer:
                optimizer.step()
                optimizer.zero_grad()
        return results

    assert_same(program, device, rtol=1e-3, atol=1e-3)


FUNCTIONS = {
    "masks": lambda x: (torch.where(x > 0, x, x.exp()), x.masked_fill(x < 0, 1), x.clamp(min=x.mean()), x.tril() + x.triu(1), x.sign(), x[x[:, 0] > 0]),
    "ends": lambda x: (x.cumsum(1), x.sort(1)[0], x.topk(2)[0], x.argmax(1), x.logsumexp(1), x.std(1), x.cumprod(0), x.flip(0)),
    "complex": lambda x: (torch.view_as_real(torch.polar(x.exp(), x) * torch.complex(x, x)), torch.fft.rfft(x).abs()),
    "algebra": lambda x: (torch.linalg.inv(x @ x.mT + 3 * torch.eye(6, device=x.device)), torch.einsum("ij,kj->ik", x, x), x.mT @ x, torch.linalg.norm(x)),
    "in place": lambda x: (x.clone().add_(1).mul_(x).index_fill_(0, torch.tensor([1], device=x.device), 0.0), x.clone().scatter_(1, x.argsort(1), x)),
    "types": lambda x: (x.half() * 2, x.bfloat16(), x.to(torch.int32) // 2, (x > 0).sum(), x.long() % 3, x.bool() ^ (x > 1), x.double().sum().float()),
    "random in a break": lambda x: (x * 2 if x.sum() > 0 else x * 3, x.numel(), x.mean().item() > 0),
    "scatter": lambda x: (torch.zeros(3, 6, device=x.device).index_add(0, torch.arange(6, device=x.device) % 3, x), x.gather(1, x.argsort(1)), F.one_hot(x.argmax(1), 6), x.unique().numel()),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda v: (v.sin() * v).tanh(), x, use_reentrant=False),
    "vmap": lambda x: (torch.func.vmap(lambda row: row.dot(row).sqrt())(x), torch.func.grad(lambda v: (v ** 3).sum())(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions(name, device, fresh_compiler):
    if name == "types" and not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    function = FUNCTIONS[name]
    assert_same(lambda where: (torch.compile(function) if where.type == "opencl" else function)(randn(6, 6).to(where)), device, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_compiled_model_in_less_precision(dtype, device, fresh_compiler):
    model, (text, targets) = made(models.Transformer, device), (part[:4].to(device) for part in models.texts(8))

    def loss_of(text, targets):
        with torch.autocast(torch.device(device).type, dtype):
            return models.loss_of(model, text, targets)

    exact, compiled = models.loss_of(model, text, targets), torch.compile(loss_of)
    compiled(text, targets).backward()
    torch.testing.assert_close(compiled(text, targets), exact, rtol=0.02, atol=0.02)
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_compiled_optimizer(device, fresh_compiler):
    def program(where):
        model = made(lambda: nn.Linear(4, 3), where)
        optimizer, x = torch.optim.Adam(model.parameters(), lr=0.1), randn(5, 4).to(where)
        step = torch.compile(optimizer.step) if where.type == "opencl" else optimizer.step
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            step()
        return list(model.parameters())

    assert_same(program, device, rtol=1e-3, atol=1e-3)
