"""Programs as PyTorch's users write them: each gives the same results on the device as on the CPU. Operators may run on the CPU here."""
import copy
import io
import pickle
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(low, high, *shape, seed=0):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def gradients(output, *inputs):
    """The output, and the gradients of the sum of its squares."""
    return [output, *torch.autograd.grad(output.square().sum(), inputs)]


def on_cpu(value):
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), value)


# Modules. Their parameters are made on the CPU, from one seed, and moved.
def made(make, device, training=True):
    torch.manual_seed(0)
    return make().to(device).train(training)


MODULES = {
    "LSTM": (lambda: nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True), [randn(3, 6, 5)]),
    "LSTM with projections": (lambda: nn.LSTM(5, 7, 2, proj_size=3), [randn(6, 3, 5)]),
    "GRU": (lambda: nn.GRU(5, 7, 2, bidirectional=True), [randn(6, 3, 5)]),
    "RNN": (lambda: nn.RNN(5, 7, 2), [randn(6, 3, 5)]),
    "attention": (lambda: nn.MultiheadAttention(16, 4, batch_first=True), [randn(2, n, 16, seed=n) for n in (5, 7, 7)]),
    "transformer": (lambda: nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True), [randn(2, 5, 16), randn(2, 6, 16)]),
    "bag of embeddings": (lambda: nn.EmbeddingBag(10, 4, mode="mean"), [integers(0, 10, 3, 5)]),
    "transposed convolution of a line": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), [randn(2, 4, 9)]),
    "transposed convolution in groups": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), [randn(2, 4, 7, 9)]),
    "transposed convolution of a volume": (lambda: nn.ConvTranspose3d(2, 3, 3, 2, 1, 1), [randn(2, 2, 4, 5, 3)]),
    "dilated convolution of each channel": (lambda: nn.Conv2d(4, 8, 3, padding="same", dilation=2, groups=4, padding_mode="reflect"),
                                            [randn(2, 4, 9, 8)]),
    "convolution without a batch": (lambda: nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular"), [randn(4, 9, 8)]),
    "group normalization": (lambda: nn.GroupNorm(2, 4), [randn(2, 4, 5, 6)]),
    "instance normalization": (lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), [randn(2, 4, 5, 6)]),
    "batch normalization of vectors": (lambda: nn.BatchNorm1d(4), [randn(7, 4)]),
    "batch normalization of volumes": (lambda: nn.BatchNorm3d(4, affine=False), [randn(2, 4, 3, 4, 2)]),
    "layer normalization of two dimensions": (lambda: nn.LayerNorm((3, 8), bias=False), [randn(7, 3, 8)]),
    "RMS normalization": (lambda: nn.RMSNorm(8), [randn(7, 8)]),
    "local response": (lambda: nn.LocalResponseNorm(3), [randn(2, 5, 4, 4)]),
    "shuffled pixels": (lambda: nn.Sequential(nn.Conv2d(2, 8, 1), nn.PixelShuffle(2), nn.PixelUnshuffle(2)), [randn(1, 2, 4, 4)]),
    "bilinear form": (lambda: nn.Bilinear(3, 4, 5), [randn(6, 3), randn(6, 4)]),
    "activations": (lambda: nn.Sequential(
        nn.Linear(4, 6), nn.Hardswish(), nn.Mish(), nn.SELU(), nn.CELU(), nn.Softplus(), nn.ELU(), nn.LeakyReLU(), nn.Hardtanh(),
        nn.Softshrink(0.1), nn.Softsign(), nn.Tanhshrink(), nn.Linear(6, 6), nn.GLU(), nn.LogSoftmax(-1), nn.Softmin(-1)), [randn(6, 4)]),
    "adaptive pooling": (lambda: nn.Sequential(nn.AdaptiveMaxPool2d((3, 2)), nn.AdaptiveAvgPool2d(2)), [randn(2, 3, 7, 8)]),
    "weight normalization": (lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(5, 4, 3)), [randn(3, 5, 7)]),
    "orthogonal weights": (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(5, 5)), [randn(3, 5)]),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name, device):
    """Outputs, gradients of inputs and parameters, and buffers such as running statistics."""
    results = []
    for where in ("cpu", device):
        make, inputs = MODULES[name]
        module = made(make, where)
        inputs = [x.to(where).clone().requires_grad_(x.is_floating_point()) for x in inputs]
        output = module(*inputs)
        sum((part * (index + 1)).square().sum() for index, part in enumerate(torch.utils._pytree.tree_leaves(output))).backward()
        results.append(on_cpu([output, [x.grad for x in inputs if x.requires_grad], [p.grad for p in module.parameters()],
                               list(module.buffers())]))
    torch.testing.assert_close(results[1], results[0], rtol=5e-4, atol=5e-4)


@program
def packed_sequences(device):
    module, x = made(lambda: nn.LSTM(5, 7, 2, bidirectional=True), device), randn(6, 3, 5).to(device).requires_grad_()
    packed, (h, _) = module(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4, 2])))
    output, lengths = nn.utils.rnn.pad_packed_sequence(packed)
    return gradients(torch.cat([output.flatten(), h.flatten()]), x), lengths


@program
def attention_with_masks(device):
    module, x = made(lambda: nn.MultiheadAttention(16, 4, batch_first=True), device), randn(2, 5, 16).to(device)
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool, device=device)
    later = nn.Transformer.generate_square_subsequent_mask(5, device=device).isinf()
    return module(x, x, x, key_padding_mask=padding, attn_mask=later), module(x, x, x, average_attn_weights=False)


@program
def losses(device):
    x = randn(6, 4).to(device).requires_grad_()
    p, classes = randn(6, 4, seed=1).sigmoid().to(device), integers(0, 4, 6).to(device)
    signs = (p > 0.5) * 2.0 - 1
    return [gradients(loss, x) for loss in (
        F.binary_cross_entropy_with_logits(x, p, pos_weight=torch.arange(1.0, 5, device=device)),
        F.kl_div(x.log_softmax(-1), p, reduction="batchmean"), F.cross_entropy(x, classes, label_smoothing=0.1, ignore_index=1),
        F.cross_entropy(x, p), F.smooth_l1_loss(x, p), F.hinge_embedding_loss(x, signs), F.margin_ranking_loss(x, p, signs),
        F.cosine_embedding_loss(x, p, signs[:, 0]), F.triplet_margin_loss(x, p, p + 1), F.multi_margin_loss(x, classes),
        F.gaussian_nll_loss(x, p, p + 0.1), F.poisson_nll_loss(x, p), F.multilabel_soft_margin_loss(x, (p > 0.5).float()))]


@program
def connectionist_temporal_classification(device):
    scores = randn(12, 3, 6).to(device).requires_grad_()
    loss = F.ctc_loss(scores.log_softmax(-1), integers(1, 6, 3, 5).to(device), torch.tensor([12, 10, 8]), torch.tensor([5, 4, 3]))
    return gradients(loss, scores)


@program
def einstein_sums(device):
    a, b, c = (randn(*shape).to(device).requires_grad_() for shape in ((2, 3, 4), (2, 4, 5), (5, 6)))
    square = randn(5, 5).to(device)
    return gradients(torch.einsum("bij,bjk,kl->bil", a, b, c), a, b, c), torch.einsum("ii->i", square), torch.einsum("...i,...i->...", a, a)


@program
def writes_through_masks_and_indices(device):
    x, rows = randn(5, 6).to(device), torch.tensor([0, 1], device=device)
    mask = x > 0
    x[mask] = 7.0
    x[~mask] = x[~mask] * 2
    x[mask.any(1)] += 1
    x[:, torch.tensor([True, False, True, False, True, False])] = 0
    x[2, mask[2]] = torch.arange(6.0, device=device)[:int(mask[2].sum())]
    x[rows, torch.tensor([1, 2])] = -1.0
    x[[0, 3], 1:3] = torch.tensor(5.0)
    x[..., -1] = 9
    x.index_add_(0, torch.tensor([1, 1], device=device), randn(2, 6).to(device))
    x.scatter_(1, integers(0, 6, 5, 2).to(device), 3.0)
    x.scatter_reduce_(1, integers(0, 6, 5, 6).to(device), randn(5, 6, seed=4).to(device), "amax")
    return x, mask.nonzero(), torch.where(mask), x[mask], x.masked_select(~mask)


@program
def writes_through_views(device):
    x = randn(6, 8).to(device)
    part = x[1::2, ::3].mul_(2)
    x.t()[2:4].add_(1)
    x.view(-1)[5:9].zero_()
    x[:, 0].copy_(x[:, 1])
    x.narrow(0, 1, 3).clamp_(min=0)
    x.diagonal().fill_(3)
    x.transpose(0, 1).exp_()
    x[1:4] = x[2:5].clone()
    return x, part, x.as_strided((3, 2), (1, 3), 1), x.flip(0, 1)[::2], torch.rot90(x), x.unfold(0, 3, 1)


@program
def writes_and_gradients(device):
    a = randn(4, 5).to(device).requires_grad_()
    b = a.clone()
    b[1:3] *= 2
    b[:, 0] = 0
    b.view(-1)[3] = a[0, 0]
    return gradients(b.tanh_(), a)


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.exp().add_(1), lambda x: x.view(-1)[0].fill_(2)])
def test_writes_that_gradients_forbid(write, device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="in-place operation|inplace operation"):
        write(x).sum().backward()


@program
def unique_numbers(device):
    x = integers(0, 5, 20).to(device)
    return x.unique(), torch.unique(x, return_inverse=True, return_counts=True), torch.unique_consecutive(x, return_counts=True), x.bincount()


@program
def sampling_of_images(device):
    image, grid = randn(2, 3, 6, 5).to(device).requires_grad_(), (randn(2, 4, 4, 2) * 0.7).to(device).requires_grad_()
    return [gradients(F.grid_sample(image, grid, mode, padding, align_corners=False), image, grid)
            for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")]


@program
def derivatives_of_functions(device):
    from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

    module, x = made(lambda: nn.Linear(4, 3), device), randn(5, 4).to(device)
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    of_samples = vmap(grad(lambda p, sample: functional_call(module, p, (sample,)).square().sum()), (None, 0))(parameters, x)
    return (of_samples, jacrev(torch.exp)(x[0]), jacfwd(torch.exp)(x[0]), hessian(lambda v: (v.sin() * v).sum())(x[0]),
            jvp(torch.sin, (x,), (x,)), vmap(lambda a, b: a @ b)(x[:, None], x[:, :, None]))


@program
def a_penalty_of_gradients(device):
    critic = made(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64, 1)), device)
    x = randn(2, 1, 6, 6).to(device).requires_grad_()
    slope, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    ((slope.flatten(1).norm(2, 1) - 1) ** 2).mean().backward()
    return [p.grad for p in critic.parameters() if p.grad is not None]


@program
def hooks(device):
    module, seen = made(lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), device), []
    module[0].register_forward_hook(lambda _, inputs, output: output * 2)
    module[1].register_forward_pre_hook(lambda _, inputs: (inputs[0] + 1,))
    module[2].register_full_backward_hook(lambda _, to, of: seen.append(of[0]))
    module[0].weight.register_hook(lambda gradient: gradient * 3)
    module[0].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    module(randn(3, 4).to(device)).sum().backward()
    return seen, module[0].weight.grad


@program
def copies_of_modules(device):
    module = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), device)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    twins = copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(file, weights_only=False)
    module[0].weight.data.zero_()  # theirs is memory of their own
    assert {p.device.type for twin in twins for p in twin.parameters()} == {device.type}
    return [twin.state_dict() for twin in twins]


@program
def state_of_modules(device):
    module, state = nn.Linear(3, 4).to(device), {"weight": randn(4, 3), "bias": randn(4)}
    with pytest.raises(RuntimeError, match="Unexpected key"):
        module.load_state_dict({**state, "more": randn(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict({**state, "bias": randn(5)})
    module.load_state_dict(state)
    assigned = nn.Linear(3, 4, device="meta")
    assigned.load_state_dict(module.state_dict(), assign=True)
    return module.state_dict(), assigned(randn(2, 3).to(device))


@program
def saved_views_share_memory(device):
    x, file = randn(4).to(device), io.BytesIO()
    torch.save({"x": x, "part": x[1:]}, file)
    file.seek(0)
    loaded = torch.load(file)
    loaded["x"][1] = 5
    assert loaded["x"].device.type == device.type
    return loaded


OPTIMIZERS = dict(
    SGD=dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01), Adam=dict(amsgrad=True), AdamW=dict(foreach=True), RMSprop=dict(centered=True),
    Adagrad=dict(), Adadelta=dict(), NAdam=dict(), RAdam=dict(), Adamax=dict(), ASGD=dict(), Rprop=dict(), Adafactor=dict(), LBFGS=dict(lr=0.05))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, device):
    """With a schedule and clipped gradients, in double precision, as LBFGS amplifies rounding."""
    results = []
    for where in ("cpu", device):
        if where != "cpu" and not torch.opencl.get_device_properties(where).has_fp64:
            pytest.skip("no double precision")
        module = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double(), where)
        optimizer = getattr(torch.optim, name)(module.parameters(), **OPTIMIZERS[name])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        x, y = randn(8, 4).double().to(where), randn(8, 2).double().to(where)

        def loss_of():
            optimizer.zero_grad()
            loss = F.mse_loss(module(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            return loss

        losses = []
        for _ in range(4):
            losses.append(optimizer.step(loss_of))
            schedule.step()
        results.append(on_cpu([losses, list(module.parameters())]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [dict(), dict(num_workers=2), dict(num_workers=2, persistent_workers=True, pin_memory=True)])
def test_workers_of_a_data_loader(options, device):
    """Workers are children of a fork of this process, which has used the device."""
    torch.ones(1, device=device).item()
    data = TensorDataset(randn(20, 4), integers(0, 3, 20))
    batches = [(x.to(device, non_blocking=True) * 2, y.to(device)) for x, y in DataLoader(data, batch_size=8, **options)]
    assert torch.equal(torch.cat([x for x, _ in batches]).cpu(), data.tensors[0] * 2)
    assert torch.equal(torch.cat([y for _, y in batches]).cpu(), data.tensors[1])


@program
def messages_between_nodes(device):
    nodes, (start, end) = randn(6, 4).to(device).requires_grad_(), integers(0, 6, 2, 12).to(device)
    total = torch.zeros(6, 4, device=device).index_add_(0, end, nodes[start])
    degree = torch.zeros(6, device=device).scatter_add_(0, end, torch.ones(12, device=device))
    mean = torch.zeros(6, 4, device=device).scatter_reduce(0, end[:, None].expand(-1, 4), nodes[start], "mean", include_self=False)
    return gradients(total / degree.clamp(min=1)[:, None] + mean, nodes)


@program
def text_with_a_cache_of_keys(device):
    embedding, out = made(lambda: nn.Embedding(20, 16), device), made(lambda: nn.Linear(16, 20), device)
    cache, token, text = torch.zeros(1, 2, 10, 8, device=device), torch.tensor([[3]], device=device), []
    with torch.inference_mode():
        for place in range(8):
            x = embedding(token).view(1, 1, 2, 8).transpose(1, 2)
            cache[:, :, place:place + 1] = x
            seen = cache[:, :, :place + 1]
            token = out(F.scaled_dot_product_attention(x, seen, seen).transpose(1, 2).reshape(1, 1, 16)).argmax(-1)
            text.append(token.item())
    return torch.tensor(text)


@program
def four_threads(device):
    results = [None] * 4

    def work(index):
        x = randn(30, 30, seed=index).to(device)
        for _ in range(20):
            x = (x @ x).tanh()
        results[index] = x

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@program
def scripts_and_traces(device):
    module, x, file = made(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), device), randn(3, 4).to(device), io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    return torch.jit.load(file, map_location=device)(x), torch.jit.trace(module, x)(x), torch.export.export(module, (x,)).module()(x)


@program
def tensors_without_elements(device):
    x = torch.empty(0, 4, device=device)
    return (x.sum(0), x.mean(), x @ x.t(), x.t() @ x, torch.cat([x, randn(1, 4).to(device)]), x.relu(), x.softmax(1), x.nonzero(), x.sort()[0],
            F.layer_norm(x, (4,)), made(lambda: nn.Linear(4, 2), device)(x), F.conv2d(torch.zeros(0, 1, 4, 4, device=device), torch.ones(1, 1, 3, 3, device=device)))


@program
def large_integers(device):
    x = torch.tensor([2 ** 53 + 1, -2 ** 62], device=device)
    return x * 1, x + 1, x.sum(), x.max(), x // 3, x % 1000, x.double(), x >> 3, x == 2 ** 53 + 1


@pytest.mark.parametrize("target", ["device", "cpu"])
def test_the_default_device(target, device):
    torch.set_default_device(device if target == "device" else target)
    try:
        model, x = nn.Linear(2, 3), torch.tensor([[1.0, 2.0]])
        assert x.device == model.weight.device == torch.device(device if target == "device" else target)
        assert sorted(torch.randperm(5).tolist()) == list(range(5)) and model(x).shape == (1, 3)
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, device):
    expected, got = (on_cpu(PROGRAMS[name](torch.device(where))) for where in ("cpu", device))
    torch.testing.assert_close(got, expected, rtol=2e-4, atol=2e-4, equal_nan=True)
