"""What PyTorch's users write with numbers alone: each program gives on the device what it gives on the CPU. Operators may run on the CPU here."""
import math

import numpy
import pytest
import torch
import torch.nn.functional as F

from programs import assert_same, gradients, integers, randn

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def complexes(*shape, seed=0):
    return torch.view_as_complex(randn(*shape, 2, seed=seed))


@program
def complex_arithmetic(device):
    a, b, real = complexes(4, 5).to(device), complexes(4, 5, seed=1).to(device), randn(5).to(device)
    results = [a + b, a - b, a * b, a / b, -a, a + 1, 2 * a, a * 1j, 1j - a, 1 / a, a / 2, a + real, real * a, a - real, real / a,
               a.add(b, alpha=2), a.sub(b, alpha=1j), a.conj() * b, a.t().conj() @ b, a.abs(), a.angle(), a.real, a.imag, a.sgn(),
               a.reciprocal(), a.square(), a ** 2, a ** 0.5, a == b, a != b, a == a, a.isnan(), a.isfinite(), a.addcmul(a, b, value=0.5)]
    results += [getattr(a, name)() for name in "exp log sqrt sin cos tanh sigmoid".split()]
    c = a.clone()
    c += b
    c *= real
    c[1] = 3 - 1j
    c[:, 2].fill_(2j)
    c.real.mul_(2)
    c.imag[0] = 7
    return results, c, c.zero_(), torch.full_like(c, 1 + 2j), torch.ones_like(c), torch.zeros(3, dtype=torch.complex64, device=device)


@program
def complex_reductions_and_places(device):
    a, index = complexes(4, 5).to(device), integers(0, 4, 7).to(device)
    return [a.sum(), a.sum(0), a.sum(1, keepdim=True), a.mean(), a.mean(1), a.prod(0), a.cumsum(1), a.cumprod(0), a.norm(), a.abs().max(),
            torch.linalg.vector_norm(a, dim=1), a[index], a.index_select(0, index), a.gather(0, index[None, :5]), a.t().contiguous(), a.flip(0),
            torch.cat([a, a]), torch.stack([a, a.conj()]), torch.where(a.real > 0, a, 0j), a.masked_fill(a.real > 0, 1j), a.tril(),
            a.index_add(0, index, a[index]), a.scatter_add(0, index[None, :5], a[:1]), a.to(torch.complex128), a.real.to(torch.complex64),
            a.repeat(2, 1), a.roll(1, 0), a.diagonal(), a[:, ::2] * 2, a.view(-1)[3:8].tolist(), a[1, 2].item(), a.var(), a.allclose(a)]


@program
def complex_gradients(device):
    w, x = complexes(3, 4).to(device).requires_grad_(), randn(3, 4).to(device).requires_grad_()
    z = torch.complex(x, x.square())
    return [gradients(each, w, x) for each in (w * z, w / (z + 2), (w * z).exp() + w.conj(), torch.polar(x.exp(), x) * w, (w + z).real * w.imag,
                                               torch.view_as_real(w * z), w.t() @ z, torch.einsum("ij,kj->ik", w, z), w.abs() * z.angle())]


@program
def complex_weights_that_learn(device):
    w = complexes(6).to(device).requires_grad_()
    target, losses = complexes(6, seed=2).to(device), []
    for optimizer in (torch.optim.SGD([w], lr=0.1, momentum=0.9), torch.optim.Adam([w], lr=0.1), torch.optim.AdamW([w], lr=0.1)):
        for _ in range(3):
            optimizer.zero_grad()
            loss = (w * w - target).abs().square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
    return losses, w


@program
def rotary_places(device):
    """Attention's places as rotations of the complex plane."""
    q = randn(2, 6, 4, 8).to(device).requires_grad_()
    frequencies = 1.0 / 10000 ** (torch.arange(0, 8, 2, device=device).float() / 8)
    angles = torch.outer(torch.arange(6, device=device).float(), frequencies)
    rotations = torch.polar(torch.ones_like(angles), angles)
    rotated = torch.view_as_real(torch.view_as_complex(q.reshape(2, 6, 4, 4, 2)) * rotations.view(1, 6, 1, 4)).flatten(3)
    return gradients(rotated.type_as(q), q)


@program
def a_fractal(device):
    y, x = torch.meshgrid(torch.linspace(-1.2, 1.2, 24, device=device), torch.linspace(-2, 0.6, 32, device=device), indexing="ij")
    c = torch.complex(x, y)
    z, count = torch.zeros_like(c), torch.zeros(24, 32, dtype=torch.int64, device=device)
    for _ in range(8):
        z = torch.where(z.abs() < 4, z * z + c, z)
        count += z.abs() < 4
    return count


@program
def fourier_transforms(device):
    x = randn(3, 32).to(device).requires_grad_()
    return [gradients(each, x) for each in (
        torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x) * torch.arange(17, device=device)), torch.fft.fft(x, norm="ortho"), torch.fft.fft2(x),
        torch.fft.fftshift(torch.fft.fftn(x)), torch.fft.irfft2(torch.fft.rfft2(x)[:, :9]), torch.fft.hfft(torch.fft.ihfft(x)),
        torch.stft(x, 16, 4, window=torch.hann_window(16, device=device), return_complex=True))], torch.fft.fftfreq(8, device=device)


@program
def spectrograms(device):
    x, window = randn(2, 256).to(device), torch.hamming_window(64, device=device)
    spectrum = torch.stft(x, 64, 16, window=window, return_complex=True)
    return torch.istft(spectrum * 2, 64, 16, window=window), spectrum.abs().pow(2).clamp(min=1e-6).log10()


@program
def windows(device):
    return [getattr(torch, name + "_window")(size, periodic=periodic, device=device) for name in "kaiser hann hamming blackman bartlett".split()
            for size in (1, 2, 13) for periodic in (True, False)]


@program
def rarer_functions(device):
    x, n = randn(40).to(device), integers(-4, 5, 40).to(device)
    unit = x.sigmoid()
    one = "i0 i0e i1 i1e digamma entr ndtr log_ndtr erfcx bessel_j0 bessel_j1 bessel_y0 sinc expit spherical_bessel_j0".split()
    return [x.ldexp(n), torch.ldexp(n, n), x.frexp(), torch.logaddexp2(x, unit), x.float_power(2), torch.xlogy(n, unit), torch.special.xlog1py(x, unit),
            torch.heaviside(x, unit), torch.gcd(n, n + 2), torch.lcm(n, n + 2), n << 2, n >> 1, (n + 4) << (n + 4), x.nan_to_num(), unit.logit(), x.rad2deg(),
            x.positive(), torch.polygamma(1, unit + 1), torch.mvlgamma(unit + 3, 2), x.hypot(unit), torch.special.zeta(unit + 2, unit + 1), x.round(decimals=2),
            unit.erfinv(), torch.special.gammainc(unit, unit), torch.special.gammaln(unit), x.clip(max=unit), x.copysign(-unit), x.lerp(unit, 0.3),
            torch.special.ndtri(unit), x.trunc(), x.fix(), torch.float_power(2, n), n.pow(2), 2 ** n.abs(), x.logical_xor(n), torch.nextafter(x, unit)] + [
                getattr(torch.special, name)(unit) for name in one]


@program
def linear_algebra(device):
    a = (randn(2, 4, 4) + 4 * torch.eye(4)).to(device).requires_grad_()
    b, symmetric = randn(2, 4, 3).to(device), a + a.mT
    positive = a @ a.mT + torch.eye(4, device=device)
    values = [torch.linalg.inv(a), torch.linalg.solve(a, b), torch.linalg.cholesky(positive), torch.linalg.det(a), torch.linalg.slogdet(positive)[1],
              torch.linalg.eigvalsh(symmetric), torch.linalg.svdvals(a), torch.linalg.matrix_exp(a / 8), torch.linalg.pinv(a), torch.linalg.norm(a, "nuc", (1, 2)),
              torch.linalg.norm(a, 2, (1, 2)), torch.linalg.matrix_norm(a), torch.linalg.qr(a)[1].abs(), torch.linalg.lstsq(a, b).solution,
              torch.cholesky_solve(b, torch.linalg.cholesky(positive)), torch.linalg.solve_triangular(a.triu(), b, upper=True), torch.linalg.multi_dot([a[0], b[0], b[0].mT]),
              torch.linalg.cross(b, 2 + b), torch.linalg.matrix_power(a, 3), torch.kron(a[0], b[0]), torch.trace(a[0]), torch.linalg.vander(b[0, 0])]
    return [gradients(each, a)[:2] if each.requires_grad else each for each in values], torch.linalg.matrix_rank(a), torch.linalg.eigvals(a).abs().sort()[0]


@program
def principal_components(device):
    x = randn(60, 6).to(device) * torch.arange(1.0, 7, device=device)
    centred = x - x.mean(0)
    _, s, v = torch.linalg.svd(centred, full_matrices=False)
    return s, (centred @ v[:2].mT).abs(), torch.cov(x.T), torch.corrcoef(x.T), centred.T.std(1)


@program
def statistics(device):
    x = randn(5, 8).to(device).requires_grad_()
    with_nan = x.detach().masked_fill(x > 1, float("nan"))
    differentiable = [x.quantile(0.3), x.quantile(torch.tensor([0.1, 0.5], device=device), dim=1), x.median(), x.median(1)[0], x.kthvalue(3, 1)[0], x.logsumexp(0),
                      x.cummax(1)[0], x.cummin(0)[0], x.logcumsumexp(1), x.diff(dim=1), torch.trapezoid(x, dim=1), x.cumsum(0), x.cumprod(1), x.std(1),
                      x.sort(1, descending=True)[0], x.topk(3, 1)[0], x.renorm(2, 0, 1.0), x.amax((0, 1)), torch.var_mean(x, 0)[0], torch.cumulative_trapezoid(x), x.unfold(1, 3, 2)]
    return [gradients(each, x) for each in differentiable], [
        with_nan.nansum(), with_nan.nanmean(1), with_nan.nanmedian(), with_nan.nanquantile(0.5, 1), integers(0, 3, 9).to(device).mode(), x.detach().histc(5, -2, 2),
        torch.gradient(x.detach())[0], x.count_nonzero(1), torch.bincount(integers(0, 5, 20).to(device), minlength=9),
        torch.bincount(integers(0, 5, 6).to(device), weights=randn(6).to(device)), torch.msort(x), x.detach().aminmax(dim=0), x.argsort(1), x.argmax(), x.max(1).indices, x.min(0).indices]


@program
def searches(device):
    edges, x = torch.linspace(-2, 2, 9, device=device), randn(4, 6).to(device)
    n = integers(0, 6, 12).to(device)
    return (torch.searchsorted(edges, x), torch.searchsorted(edges, x, right=True), torch.bucketize(x, edges), torch.isin(n, torch.tensor([1, 4], device=device)),
            n.unique(return_counts=True), n.view(4, 3).unique(dim=0), torch.cartesian_prod(n[:3], n[3:5]), torch.combinations(n[:4]), x.nonzero(as_tuple=True),
            torch.argwhere(x > 0), x.take(n), x.take_along_dim(x.argsort(1), 1), torch.triu_indices(4, 4, device=device), torch.block_diag(x, x), torch.tensordot(x, x, 2),
            x.sign(), torch.unravel_index(n, (3, 4)), torch.allclose(x, x), torch.equal(x, x + 1), x.argmax(1).tolist())


@program
def scattered_reductions(device):
    x, index, source = randn(5, 4).to(device).requires_grad_(), integers(0, 5, 7, 4).to(device), randn(7, 4, seed=1).to(device).requires_grad_()
    modes = [gradients(x.scatter_reduce(0, index, source, mode, include_self=own), x, source) for mode in ("sum", "mean", "amax", "amin", "prod") for own in (True, False)]
    rows = integers(0, 5, 3, seed=4).to(device)
    return modes, [x.index_copy(0, rows[:1], source[:1]), x.index_fill(1, rows[:2] % 4, 3.0), x.index_reduce(0, rows, source[:3], "mean"), x.put(index[0], source[0]),
                   x.masked_scatter(x > 0, source), x.detach().put_(index[0], source[0].detach(), accumulate=True), torch.segment_reduce(x, "max", lengths=torch.tensor([2, 3], device=device)),
                   x.scatter(0, index[:1], 2.0), x.slice_scatter(source[:2], 0, 1, 3), x.select_scatter(source[0], 0, 2), x.diagonal_scatter(torch.ones(4, device=device)),
                   x.index_put((rows,), source[:3], accumulate=True)]


@program
def distances(device):
    a, b = randn(5, 3).to(device).requires_grad_(), randn(4, 3, seed=1).to(device).requires_grad_()
    return [gradients(torch.cdist(a, b, p), a, b) for p in (1.0, 2.0, 3.0, math.inf)] + [gradients(each, a, b) for each in (
        F.pairwise_distance(a[:4], b), F.cosine_similarity(a[:4], b), F.pdist(a) + b.sum(), a[:4].dist(b))], torch.cdist(a, b).topk(2, largest=False).indices


@program
def images(device):
    x = randn(2, 4, 8, 6).to(device).requires_grad_()
    theta = torch.tensor([[[0.8, 0.1, 0.2], [-0.1, 0.9, 0.0]]]).repeat(2, 1, 1).to(device)
    sizes = [dict(size=(5, 9), mode=mode) for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")] + [
        dict(size=(4, 3), mode="bilinear", antialias=True), dict(size=(4, 3), mode="bicubic", antialias=True), dict(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)]
    return [gradients(F.interpolate(x, **each), x) for each in sizes] + [gradients(each, x) for each in (
        F.grid_sample(x, F.affine_grid(theta, (2, 4, 5, 5), align_corners=False), align_corners=False), F.unfold(x, 3, padding=1), F.fold(F.unfold(x, 2, stride=2), (8, 6), 2, stride=2),
        F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2), F.pad(x, (1, 2, 3, 0), "reflect"), F.pad(x, (1, 2, 3, 0), "circular"), F.pad(x, (-1, 2), value=3),
        F.lp_pool2d(x, 2, 3), F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), F.local_response_norm(x, 2), F.avg_pool2d(x, 3, 2, 1), F.normalize(x, dim=1),
        torch.rot90(x, 1, (2, 3)), F.max_pool2d(x, 3, 1, 1, 1, ceil_mode=True), F.conv2d(x, x[:1, :, :3, :3]))]


@program
def volumes(device):
    x = randn(1, 2, 4, 5, 6).to(device).requires_grad_()
    grid = (randn(1, 3, 4, 4, 3) * 0.6).to(device)
    return [gradients(each, x) for each in (F.grid_sample(x, grid, align_corners=True), F.pad(x, (1, 1, 0, 2, 1, 0), "replicate"), F.interpolate(x, scale_factor=2, mode="trilinear"),
                                            F.max_pool3d(x, 2), F.conv3d(x, x[:, :, :2, :2, :2]), x.flip((2, 4)), F.instance_norm(x))]


@program
def products_of_tensors(device):
    a, b, c = randn(2, 3, 4).to(device).requires_grad_(), randn(2, 4, 5).to(device).requires_grad_(), randn(3, 4).to(device).requires_grad_()
    return [gradients(each, a) for each in (
        torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,ij->b", a, c), torch.einsum("bij->ji", a), torch.einsum("bij,bkj->bik", a, a), a @ b[0], torch.tensordot(a, c, ([1, 2], [0, 1])),
        torch.bmm(a, b), torch.baddbmm(torch.ones(3, 5, device=device), a, b, beta=0.5), a.matmul(c.t()), torch.inner(a, c), torch.outer(a[0, 0], a[1, 1]), torch.vdot(a[0, 0], c[0]),
        torch.chain_matmul(a[0], b[0], b[0].t()), torch.addr(c, a[0, :, 0], a[0, 0]), torch.mv(a[0], c[0]), (a[0] * c).sum(), F.bilinear(a[0], c, randn(5, 4, 4).to(device)))]


@program
def sparse_matrices(device):
    dense = (randn(5, 6) * (randn(5, 6, seed=3) > 0.5)).to(device)
    x = randn(6, 3).to(device)
    coo = torch.sparse_coo_tensor(torch.tensor([[0, 2, 2], [1, 0, 1]]), torch.tensor([3.0, 4, 5]), (5, 6), device=device)
    return coo.to_dense(), coo.coalesce().values(), coo.coalesce().indices(), (coo + coo).to_dense(), (coo * 2).to_dense(), dense.to_sparse().to_dense(), dense + coo.to_dense(), dense @ x


@program
def types_that_mix(device):
    results, kinds = [], (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for a in kinds:
        for b in kinds:
            x, y = integers(0, 2, 6).to(a).to(device), integers(1, 2, 6, seed=1).to(b).to(device)
            results += [x + y, x * y, x == y, torch.where(x == y, x, y), x / y]
        x = integers(0, 2, 6).to(a).to(device)
        results += [x + 1, x * 2.5, x.sum(), x.cumsum(0), x.to(torch.float32), x.bool(), x + True] + ([x.mean()] if a.is_floating_point else [])
    return results


@program
def integers_without_kernels(device):
    results = []
    for kind in (torch.uint16, torch.uint32, torch.uint64):
        x = torch.tensor([1, 5, 200], dtype=kind, device=device)
        results += [x.to(torch.int64), x.clone(), x[1:].to(torch.float32), x == x, torch.cat([x, x]).to(torch.int64), x.view(3, 1).expand(3, 2).contiguous().to(torch.int32)]
    x = torch.tensor([250, 7], dtype=torch.uint8, device=device)
    return results, x + 10, x - 251, -x, ~x, x << 1, x // 4, x.float() / 3, torch.tensor([127], dtype=torch.int8, device=device) + 1


@program
def eight_bit_floats(device):
    x = randn(16).to(device)
    return [x.to(kind).to(torch.float32) for kind in (torch.float8_e4m3fn, torch.float8_e5m2)]


@program
def outputs_given(device):
    a, b = randn(4, 5).to(device), randn(5, seed=1).to(device)
    out = torch.empty(0, device=device)
    torch.add(a, b, out=out)
    wide = torch.zeros(5, 8, device=device)
    torch.mul(a.t(), 2, out=wide[:, ::2])
    both = torch.empty(4, device=device), torch.empty(4, dtype=torch.int64, device=device)
    torch.max(a, 1, out=both)
    sums = torch.empty(5, dtype=torch.float64, device=device)
    torch.sum(a, 0, dtype=torch.float64, out=sums)
    return out, wide, both, sums, torch.matmul(a, b, out=torch.empty(4, device=device)), torch.cat([a, a], out=torch.empty(8, 5, device=device))


@program
def conversions(device):
    x = randn(2, 3).to(device)
    y = torch.as_tensor(numpy.arange(6.0).reshape(2, 3), device=device)
    assert repr(x).endswith(f"device='{x.device}')" if device.type == "opencl" else ")") and bool((x == x).all()) and len(x) == 2
    if device.type == "opencl":
        with pytest.raises(TypeError, match="can't convert opencl"):
            x.numpy()
    numbers = [float(x[0, 0]), int(y[1, 2]), x.tolist(), [row.sum().item() for row in x], 3.0 in y, complex(x[0, 0]), float(f"{y[0, 1]:.2f}"), numpy.asarray(y.cpu()).sum()]
    return numbers, torch.tensor(x), torch.asarray(x), x.new_tensor([1, 2]), x.new_zeros(2), torch.tensor([y[0, 0], 2.0]), x.type(torch.float64), y.float(), x.type_as(y), x.to(y)


@program
def shapes_that_change(device):
    x = randn(2, 3, 4).to(device)
    return (x.permute(2, 0, 1), x.movedim(0, -1), x.swapaxes(0, 1), x.flatten(1), x.unflatten(2, (2, 2)), x.tile(2, 1, 1), x.repeat_interleave(2, 1),
            x.repeat_interleave(torch.tensor([1, 2], device=device), 0), x.chunk(2, 2), x.split([1, 2], 1), x.tensor_split(3, 2), x.hsplit(3), torch.vstack([x, x]), torch.hstack([x, x]),
            torch.dstack([x, x]), torch.column_stack([x[0], x[0]]), x.narrow(1, 1, 2), x[..., None, :], x[:, [0, 2]], x[x > 0], x.squeeze(), x.mT, x.ravel(), torch.broadcast_tensors(x, x[:1])[1],
            torch.atleast_3d(x[0]), x.expand(2, 2, 3, 4), torch.meshgrid(x[0, 0], x[0, 1], indexing="xy"), x.view(torch.int32), x.as_strided((2, 2), (1, 2)), torch.diag_embed(x[0]),
            torch.diag(x[0, 0]), x.unbind(1), x.index_select(2, torch.tensor([3, 0], device=device)), x.stride(), x.transpose(0, 2).contiguous().stride())


@program
def a_game_of_life(device):
    board = (randn(12, 12) > 0.3).to(device)
    for _ in range(5):
        neighbours = sum(board.int().roll((dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
        board = (neighbours == 3) | (board & (neighbours == 2))
    return board, board.sum()


@program
def clusters(device):
    x = torch.cat([randn(20, 2, seed=n) + 6 * n for n in range(3)]).to(device)
    centres = x[[0, 25, 45]].clone()
    for _ in range(4):
        nearest = torch.cdist(x, centres).argmin(1)
        centres = torch.zeros_like(centres).index_add(0, nearest, x) / torch.bincount(nearest, minlength=3)[:, None]
    return centres, nearest


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, device):
    if not torch.opencl.get_device_properties(device).has_fp64 and name in ("types_that_mix", "conversions", "outputs_given", "complex_reductions_and_places"):
        pytest.skip("no double precision")
    assert_same(PROGRAMS[name], device, rtol=1e-3, atol=1e-3)


def test_the_choice_of_tokens_stays_on_the_device(device):
    """What the generation of texts computes after each token."""
    def choices(device):
        cache, place = torch.zeros(2, 3, 8, 4).to(device), torch.tensor([5], device=device)
        cache.index_copy_(2, place, randn(2, 3, 1, 4).to(device))
        cache.index_copy_(1, torch.tensor([2, 0, 2], device=device), randn(2, 3, 8, 4, seed=1).to(device))
        token = integers(0, 9, 2, 5).to(device)
        ends = torch.tensor([3, 7], device=device)
        counts = torch.histc(token.int(), 4, 0, 8) if device.type != "cpu" else torch.histc(token.float(), 4, 0, 8).int()
        return (cache, torch.isin(token, ends), torch.isin(token[0], ends[0]), torch.isin(token, ends, invert=True), torch.isin(token.half(), ends.half()), counts,
                torch.index_copy(token, 1, place - 5, token[:, 1:2]))

    torch.opencl.reset_fallbacks()
    weights = torch.tensor([[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 2.0, 1.0]], device=device)
    for dtype in (torch.float32, torch.float16):
        drawn = weights.to(dtype).repeat(2000, 1).multinomial(1).view(2000, 2)
        assert set(drawn[:, 0].tolist()) == {1, 2} and set(drawn[:, 1].tolist()) == {0, 2, 3}
        assert abs((drawn[:, 1] == 2).float().mean().item() - 0.5) < 0.06 and abs((drawn[:, 0] == 2).float().mean().item() - 0.5) < 0.06
    assert sorted(weights[1].multinomial(3).tolist()) == [0, 2, 3]
    generator = torch.Generator(device).manual_seed(7)
    first = weights.multinomial(2, generator=generator)
    assert torch.equal(first, weights.multinomial(2, generator=generator.manual_seed(7)))
    for wrong in (torch.tensor([1.0, -1.0]), torch.tensor([1.0, float("nan")]), torch.zeros(2)):
        with pytest.raises(RuntimeError, match="probabilit"):
            wrong.to(device).multinomial(1)
    choices(torch.device(device))
    assert torch.opencl.fallbacks() == {}
    assert_same(choices, device)
    assert weights[1].multinomial(50, replacement=True).max() < 4  # on the CPU
