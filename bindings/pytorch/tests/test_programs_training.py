"""What PyTorch's users train, and what they wrap around it: each program gives on the device what it gives on the CPU. Operators may run on the
CPU here. Random numbers come from the CPU, since the generators differ."""
import contextlib
import copy
import io
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from programs import assert_same, gradients, integers, made, randn

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def batch(device, count=12):
    return randn(count, 4, seed=1).to(device), integers(0, 3, count, seed=1).to(device)


@program
def schedules_of_learning_rates(device):
    from torch.optim import lr_scheduler as s

    losses = []
    for make in (lambda o: s.StepLR(o, 2, 0.5), lambda o: s.OneCycleLR(o, 0.5, 6), lambda o: s.LambdaLR(o, lambda n: 0.9 ** n), lambda o: s.CosineAnnealingWarmRestarts(o, 3),
                 lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=2), s.ExponentialLR(o, 0.9)], [2]), lambda o: s.CyclicLR(o, 0.01, 0.3, 2)):
        model, (x, y) = made(network, device), batch(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
        schedule = make(optimizer)
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append((loss.item(), schedule.get_last_lr()[0]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    plateau = s.ReduceLROnPlateau(optimizer, patience=0)
    for loss in (1.0, 2.0, 3.0):
        plateau.step(torch.tensor(loss, device=device))
    return losses, optimizer.param_groups[0]["lr"]


@program
def averaged_models(device):
    from torch.optim import swa_utils

    # Without a bias, whose gradient in front of the norm is noise that AdamW amplifies.
    model = made(lambda: nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)), device)
    averages = [swa_utils.AveragedModel(model), swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)]
    optimizer, (x, y) = torch.optim.AdamW(model.parameters(), lr=0.1), batch(device)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for average in averages:
            average.update_parameters(model)
    swa_utils.update_bn([x[:6], x[6:]], averages[0], device=device)
    return [average.eval()(x) for average in averages]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scaled_gradients_in_less_precision(dtype, device):
    """Accumulated over two parts of a batch, unscaled and clipped; the losses fall as those in float32 do."""
    model, (x, y) = made(network, device), batch(device)
    exact = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.2) for each in (model, exact)]
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=2.0 ** 10)
    for _ in range(6):
        for half in (slice(0, 6), slice(6, 12)):
            with torch.autocast(torch.device(device).type, dtype):
                output = model(x[half])
                loss = F.cross_entropy(output, y[half])
            assert output.dtype == dtype
            scaler.scale(loss / 2).backward()
            (F.cross_entropy(exact(x[half]), y[half]) / 2).backward()
        scaler.unscale_(optimizers[0])
        for each in (model, exact):
            nn.utils.clip_grad_norm_(each.parameters(), 0.5)
        scaler.step(optimizers[0])
        scaler.update()
        optimizers[1].step()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=False)
    torch.testing.assert_close(model(x), exact(x), rtol=0.05, atol=0.05)
    next(model.parameters()).grad = torch.full_like(next(model.parameters()), math.inf)
    before = copy.deepcopy(model.state_dict())
    scaler.scale(torch.ones(1, device=device))
    scaler.step(optimizers[0])
    scaler.update()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items()) and scaler.get_scale() == 2.0 ** 9


@program
def weights_under_constraints(device):
    from torch.nn.utils import parametrizations, parametrize, prune

    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).mT

    model = made(lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 4)), parametrizations.weight_norm(nn.Linear(4, 4)), nn.Linear(4, 4), nn.Linear(4, 3)), device)
    parametrize.register_parametrization(model[2], "weight", Symmetric())
    prune.l1_unstructured(model[3], "weight", 0.5)
    optimizer, (x, y) = torch.optim.SGD(model.parameters(), lr=0.1), batch(device)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    parametrize.remove_parametrizations(model[2], "weight")
    prune.remove(model[3], "weight")
    old = nn.utils.weight_norm(made(lambda: nn.Linear(4, 2), device))
    return model(x), model.state_dict(), old(x), nn.utils.spectral_norm(made(lambda: nn.Conv2d(1, 2, 3), device))(randn(1, 1, 5, 5).to(device)).shape


@program
def recurrent_modules(device):
    x, lengths = randn(4, 6, 5).to(device).requires_grad_(), torch.tensor([3, 6, 1, 4])
    gru = made(lambda: nn.GRU(5, 7, 2, batch_first=True, bidirectional=True, dropout=0.0), device)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    output, _ = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=6)
    cell, state = made(lambda: nn.LSTMCell(5, 7), device), None
    for step in range(6):
        state = cell(x[:, step], state)
    plain, hidden = made(lambda: nn.GRUCell(5, 7), device), torch.zeros(4, 7, device=device)
    for step in range(3):
        hidden = plain(x[:, step], hidden)
    sequences = nn.utils.rnn.pad_sequence([x[0, :3], x[1], x[2, :1]], batch_first=True, padding_value=-1.0)
    relu = made(lambda: nn.RNN(5, 7, nonlinearity="relu"), device)
    return [gradients(each, x) for each in (output, state[0], hidden, sequences, relu(x)[0], gru(x[0])[0])], nn.utils.rnn.pack_sequence([x[1], x[0, :2]]).data


@program
def models_in_a_batch(device):
    from torch.func import functional_call, grad, stack_module_state, vmap

    models = [made(network, device) for _ in range(3)]
    for index, model in enumerate(models):
        with torch.no_grad():
            model[0].weight.mul_(index + 1)
    parameters, buffers = stack_module_state(models)
    skeleton, (x, y) = copy.deepcopy(models[0]).to("meta"), batch(device)

    def loss(p, b, x, y):
        return F.cross_entropy(functional_call(skeleton, (p, b), (x,)), y)

    together = vmap(lambda p, b: functional_call(skeleton, (p, b), (x,)))(parameters, buffers)
    return together, vmap(grad(loss), (0, 0, None, None))(parameters, buffers, x, y)


@program
def gradients_of_each_sample(device):
    from torch.func import functional_call, grad, vmap

    model = made(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)), device)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    x, y = randn(5, 1, 6, 6).to(device), integers(0, 3, 5).to(device)
    return vmap(grad(lambda p, x, y: F.cross_entropy(functional_call(model, p, (x[None],)), y[None])), (None, 0, 0))(parameters, x, y)


@program
def higher_derivatives(device):
    x = randn(5).to(device).requires_grad_()
    first, = torch.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.square().sum(), x, create_graph=True)
    third, = torch.autograd.grad(second.sum(), x)
    functional = torch.autograd.functional
    return (first, second, third, functional.jacobian(torch.exp, x.detach()), functional.hessian(lambda v: (v ** 3).sum(), x.detach()),
            functional.vhp(lambda v: (v ** 3).sum(), x.detach(), x.detach()), functional.jvp(torch.sin, x.detach(), x.detach()))


@program
def learning_to_learn(device):
    from torch.func import functional_call

    model, (x, y) = made(network, device), batch(device)
    outer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(2):
        outer.zero_grad()
        for half in (slice(0, 6), slice(6, 12)):
            fast = dict(model.named_parameters())
            for _ in range(2):
                loss = F.cross_entropy(functional_call(model, fast, (x[half],)), y[half])
                slopes = torch.autograd.grad(loss, fast.values(), create_graph=True)
                fast = {name: value - 0.1 * slope for (name, value), slope in zip(fast.items(), slopes)}
            F.cross_entropy(functional_call(model, fast, (x[half],)), y[half]).backward()
        outer.step()
    return list(model.parameters())


@program
def functions_of_ones_own(device):
    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return torch.where(x.abs() <= ctx.limit, grad, grad * 0.1), None

    class Doubled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = randn(3, 4).to(device).requires_grad_()
    return gradients(Clipped.apply(x, 0.5), x), gradients(Doubled.apply(x), x), torch.func.vmap(Doubled.apply)(x)


@program
def activations_kept_elsewhere(device):
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    model, x = made(network, device), randn(5, 4).to(device).requires_grad_()
    results = []
    for context in (torch.autograd.graph.save_on_cpu(), torch.autograd.graph.save_on_cpu(pin_memory=device.type != "cpu"),
                    torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(device)), torch.autograd.detect_anomaly(), contextlib.nullcontext()):
        with context:
            results.append(gradients(model(x), x))
    return results, gradients(checkpoint(model, x, use_reentrant=False), x), gradients(checkpoint_sequential(model, 2, x, use_reentrant=False), x)


@program
def states_of_optimizers(device):
    results = []
    for make in (lambda p: torch.optim.Adam(p, amsgrad=True), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, fused=True),
                 lambda p: torch.optim.Adam(p, capturable=device.type != "cpu", foreach=True), lambda p: torch.optim.RMSprop(p, maximize=True),
                 lambda p: torch.optim.Adam([{"params": p[:2], "lr": 0.1}, {"params": p[2:], "weight_decay": 0.1}])):
        model, (x, y) = made(network, device), batch(device)
        optimizer = make(list(model.parameters()))
        for step in range(4):
            if step == 2:  # goes on in a new process, so to say
                file = io.BytesIO()
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
                file.seek(0)
                saved = torch.load(file, map_location=device)
                model = made(network, device)
                model.load_state_dict(saved["model"])
                optimizer = make(list(model.parameters()))
                optimizer.load_state_dict(saved["optimizer"])
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        results.append(list(model.parameters()))
    return results


@program
def parameters_as_a_vector(device):
    model, (x, y) = made(network, device), batch(device)
    F.cross_entropy(model(x), y).backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.01)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    return vector, model(x), norm, pickle.loads(pickle.dumps(model)).state_dict(), copy.deepcopy(model)(x), sum(p.numel() for p in model.parameters())


@program
def initial_weights(device):
    results = []
    for name, options in dict(zeros_={}, ones_={}, eye_={}, constant_=dict(val=3.0), dirac_=None).items():
        w = torch.empty(*((4, 4) if options is not None else (4, 2, 3)), device=device)
        results.append(getattr(nn.init, name)(w, **(options or {})))
    for name in "uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_".split():
        w = getattr(nn.init, name)(torch.empty(200, 200, device=device))
        results.append((w.mean().abs() < 0.6).item() and (w.std() > 0.03).item() and (w.std() < 1.1).item())
    sparse = nn.init.sparse_(torch.empty(50, 20, device=device), 0.5)
    return results, (sparse == 0).sum(0)


@program
def random_numbers(device):
    """Their shapes, types and moments."""
    torch.manual_seed(1)
    n = 20000
    x = torch.empty(n, device=device)
    drawn = [x.clone().uniform_(2, 4), x.clone().normal_(3, 0.5), x.clone().bernoulli_(0.3), x.clone().exponential_(0.5), x.clone().geometric_(0.25), x.clone().log_normal_(0, 0.25),
             torch.rand(n, device=device), torch.randn(n, device=device), torch.randint(0, 10, (n,), device=device).float(), torch.bernoulli(torch.full((n,), 0.7, device=device)),
             torch.multinomial(torch.tensor([1.0, 2, 1], device=device), n, True).float(), torch.normal(torch.full((n,), 2.0, device=device), 0.1), F.dropout(torch.ones(n, device=device), 0.5),
             torch.poisson(torch.full((n,), 4.0, device=device)), torch.randn_like(x), x.clone().random_(0, 5), F.alpha_dropout(torch.ones(n, device=device), 0.3),
             torch.distributions.Gamma(torch.tensor(2.0, device=device), torch.tensor(1.0, device=device)).sample((n,)), torch.distributions.Beta(torch.tensor(2.0, device=device), 2.0).sample((n,))]
    order = torch.randperm(100, device=device)
    return [each.numel() for each in drawn], order.sort()[0], [
        abs(each.mean().item() - mean) < 0.1 for each, mean in zip(drawn, (3, 3, 0.3, 2, 4, 1.03, 0.5, 0, 4.5, 0.7, 1, 2, 1, 4, 0, 2))]


@program
def distributions(device):
    import torch.distributions as d

    mean, scale = randn(4).to(device).requires_grad_(), randn(4, seed=1).exp().to(device).requires_grad_()
    value, logits = randn(4, seed=2).to(device), randn(5, 3).to(device)
    normal, categorical = d.Normal(mean, scale), d.Categorical(logits=logits)
    covariance = torch.eye(4, device=device) * 2 + 0.5
    return [gradients(each, mean, scale) for each in (normal.log_prob(value), d.kl_divergence(normal, d.Normal(value, 1.0)), normal.entropy() + mean, normal.cdf(value) * mean,
                                                      d.Laplace(mean, scale).log_prob(value), d.StudentT(scale + 1, mean).log_prob(value), d.Beta(scale, scale + 1).log_prob(value.sigmoid()) + mean,
                                                      d.Gamma(scale, scale).log_prob(value.exp()) * mean, d.MultivariateNormal(mean, covariance).log_prob(value) * scale,
                                                      d.TransformedDistribution(normal, [d.TanhTransform()]).log_prob(value.tanh()))], [
        categorical.log_prob(integers(0, 3, 5).to(device)), categorical.entropy(), d.Bernoulli(logits=logits).log_prob((logits > 0).float()), d.Dirichlet(logits.exp()).entropy(),
        d.Poisson(logits.exp()).log_prob(logits.abs().floor()), d.Independent(normal, 1).log_prob(value), d.OneHotCategorical(logits=logits).mode, normal.rsample().shape, categorical.sample((7,)).shape]


@program
def losses_of_all_kinds(device):
    x, y = randn(6, 5).to(device).requires_grad_(), integers(0, 5, 6).to(device)
    picture, labels = randn(2, 5, 4, 4).to(device).requires_grad_(), integers(0, 5, 2, 4, 4).to(device)
    adaptive = made(lambda: nn.AdaptiveLogSoftmaxWithLoss(5, 12, [3, 6]), device)
    weight = torch.arange(1.0, 6, device=device)
    probability = picture.softmax(1)
    wanted = F.one_hot(labels, 5).permute(0, 3, 1, 2)
    dice = 1 - 2 * (probability * wanted).sum((2, 3)) / (probability + wanted).sum((2, 3))
    focal = ((1 - x.softmax(1).gather(1, y[:, None])) ** 2 * F.cross_entropy(x, y, reduction="none")[:, None]).mean()
    return [gradients(each, picture) for each in (F.cross_entropy(picture, labels, weight, ignore_index=2), F.nll_loss(picture.log_softmax(1), labels, reduction="none"), dice)] + [
        gradients(each, x) for each in (adaptive(x, integers(0, 12, 6).to(device)).loss, focal, F.soft_margin_loss(x, x.detach().sign()), F.l1_loss(x, x.detach() + 1), F.huber_loss(x, x.detach() * 3),
                                        F.multilabel_margin_loss(x, integers(0, 5, 6, 5).to(device)), F.cross_entropy(x, y, weight, label_smoothing=0.1), F.binary_cross_entropy(x.sigmoid(), (x > 0).float()),
                                        F.triplet_margin_with_distance_loss(x, x.detach() + 1, x.detach() - 2), F.ctc_loss(x.log_softmax(1)[:, None], y[None, :2] % 4 + 1, [6], [2]),
                                        (x @ x.T / 0.1).logsumexp(1).mean())], adaptive.log_prob(x), adaptive.predict(x)


@program
def layers_of_all_kinds(device):
    torch.manual_seed(0)
    x, picture = randn(3, 6).to(device).requires_grad_(), randn(2, 4, 6, 6).to(device).requires_grad_()
    flat = nn.Sequential(nn.LazyLinear(6), nn.Hardshrink(), nn.LazyBatchNorm1d(), nn.RReLU(), nn.AlphaDropout(), nn.Hardsigmoid(), nn.LogSigmoid(), nn.PReLU(6), nn.ReLU6(), nn.Threshold(-1, 2),
                         nn.GELU("tanh"), nn.Unflatten(1, (2, 3)), nn.Flatten())
    deep = nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(4, 6, 3, groups=2), nn.Softmax2d(), nn.ChannelShuffle(2), nn.LPPool2d(2, 2), nn.Upsample(scale_factor=2, mode="bilinear"), nn.InstanceNorm2d(6),
                         nn.ReflectionPad2d(1), nn.Dropout2d(), nn.CircularPad2d(1), nn.AvgPool2d(2, count_include_pad=False), nn.UpsamplingNearest2d(4), nn.ReplicationPad2d(1))
    results = []
    for module, given in ((flat, x), (deep, picture)):
        torch.manual_seed(0)
        module(given.detach().cpu())
        results.append(gradients(made(lambda: module, device, training=False)(given), given))
    return results, made(lambda: nn.Bilinear(6, 6, 2), device)(x, x), nn.CosineSimilarity()(x, x + 1), nn.PairwiseDistance()(x, x + 1), nn.Unfold(2)(picture), nn.Embedding.from_pretrained(randn(5, 3))(
        torch.tensor([1, 2])).to(device), nn.Embedding(5, 3, padding_idx=0, max_norm=1.0, _weight=randn(5, 3)).to(device)(torch.tensor([0, 3], device=device))


@program
def bags_of_embeddings(device):
    words, starts = integers(0, 10, 9).to(device), torch.tensor([0, 4, 4, 7], device=device)
    factors = randn(9, seed=5).to(device).requires_grad_()
    results = []
    for options in (dict(mode="sum"), dict(mode="mean"), dict(mode="max"), dict(mode="mean", padding_idx=3), dict(mode="sum", include_last_offset=True),
                    dict(mode="max", padding_idx=3)):
        bag = made(lambda: nn.EmbeddingBag(10, 4, **options), device)
        given = torch.cat([starts, torch.tensor([9], device=device)]) if "include_last_offset" in options else starts
        results.append(gradients(bag(words, given), bag.weight))
        if options == dict(mode="sum"):
            results.append(gradients(bag(words, starts, factors), bag.weight, factors))
            results.append(gradients(bag(words.int(), starts.int()), bag.weight))
    thin = made(lambda: nn.EmbeddingBag(10, 4, mode="sum", sparse=True), device)
    thin(words, starts).square().sum().backward()
    return results, bag(words.view(3, 3)), thin.weight.grad.to_dense()


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_embeddings_whose_gradients_are_scaled(mode, device):
    """By how often each index occurs. Not against the CPU, whose counts are those of other indices."""
    words, starts = torch.tensor([4, 9, 3, 0, 3, 9, 7, 3, 7], device=device), torch.tensor([0, 4, 7], device=device)
    bag = nn.EmbeddingBag(10, 2, mode=mode, scale_grad_by_freq=True).to(device)
    bag(words, starts).sum().backward()
    sizes, expected = torch.tensor([4.0] * 4 + [3.0] * 3 + [2.0] * 2), torch.zeros(10)
    for word, size in zip(words.tolist(), sizes):
        expected[word] += (1 / size if mode == "mean" else 1) / (words == word).sum().item()
    torch.testing.assert_close(bag.weight.grad.cpu(), expected[:, None].expand(10, 2))


@program
def a_variational_autoencoder(device):
    encoder, decoder = made(lambda: nn.Linear(8, 6), device), made(lambda: nn.Sequential(nn.Linear(3, 8), nn.Sigmoid()), device)
    optimizer, x, losses = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01), randn(10, 8).sigmoid().to(device), []
    for step in range(4):
        mean, log_variance = encoder(x).chunk(2, 1)
        z = mean + (log_variance / 2).exp() * randn(10, 3, seed=step).to(device)
        loss = F.binary_cross_entropy(decoder(z), x, reduction="sum") - 0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


@program
def two_that_compete(device):
    maker, judge = made(lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Unflatten(1, (4, 2, 2)), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Tanh()), device), made(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(16, 1)), device)
    optimizers, real = [torch.optim.Adam(m.parameters(), lr=0.01, betas=(0.5, 0.9)) for m in (maker, judge)], randn(6, 1, 4, 4).to(device)
    for step in range(3):
        fake = maker(randn(6, 4, seed=step).to(device))
        optimizers[1].zero_grad()
        (F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        F.softplus(-judge(fake)).mean().backward()
        optimizers[0].step()
    return fake, [list(m.parameters()) for m in (maker, judge)]


@program
def learning_from_rewards(device):
    policy, target = made(network, device), made(network, device)
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=0.01)
    states, actions, rewards, ended = randn(16, 4).to(device), integers(0, 3, 16).to(device), randn(16, seed=3).to(device), integers(0, 2, 16).bool().to(device)
    for _ in range(3):
        value = policy(states).gather(1, actions[:, None]).squeeze(1)
        with torch.no_grad():
            best = target(states.roll(1, 0)).max(1).values
            best[ended] = 0
        optimizer.zero_grad()
        F.smooth_l1_loss(value, rewards + 0.9 * best).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0, foreach=True)
        optimizer.step()
        for slow, fast in zip(target.parameters(), policy.parameters()):
            slow.data.lerp_(fast.data, 0.1)
    returns = (rewards * 0.9 ** torch.arange(16, device=device)).flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
    ratio = (policy(states).log_softmax(1).gather(1, actions[:, None]).squeeze(1)).exp()
    return value, gradients(-torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean(), *policy.parameters()), list(target.parameters())


@program
def layouts_of_pictures(device):
    model = made(lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()), device)
    model = model.to(memory_format=torch.channels_last)
    x = randn(2, 3, 8, 8).to(device).to(memory_format=torch.channels_last).requires_grad_()
    assert x.is_contiguous(memory_format=torch.channels_last) and model[0].weight.is_contiguous(memory_format=torch.channels_last)
    y = model(x)
    y.square().sum().backward()
    return y, x.grad, [p.grad for p in model.parameters()], (x * 2).is_contiguous(memory_format=torch.channels_last), x.contiguous().stride(), x.clone().stride(), torch.empty_like(x).stride()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, device):
    assert_same(PROGRAMS[name], device, rtol=1e-3, atol=1e-3)
