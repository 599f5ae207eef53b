"""Products of matrices by whole work-groups, the way of GPUs, on every device: each order of the factors, each tile, parts of k."""
import os
import pathlib
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import itertools
import sys

import torch

device = sys.argv[1]
generator = torch.Generator().manual_seed(0)
# One element; less than a tile; more than one of each size; deep and narrow, so that k is divided; no k at all.
SIZES = [(1, 1, 1), (33, 65, 17), (130, 129, 70), (1, 100, 600), (100, 1, 600), (20, 30, 2000), (5, 5, 0),
         # Few rows or columns: each number of them that has its own kernel, and sums of sums.
         (2, 37, 150), (3, 37, 150), (8, 6, 100), (9, 21, 4500), (40, 2, 300), (40, 1, 5000)]


def ordered(matrix, order):
    if order == "rows":
        return matrix.to(device)
    if order == "columns":
        return matrix.t().contiguous().to(device).t()
    apart = torch.zeros(2 * matrix.size(0), 3 * matrix.size(1), dtype=matrix.dtype)
    apart[::2, ::3] = matrix
    return apart.to(device)[::2, ::3]


def compare(got, expected, tolerance):
    scale = expected.abs().max().item() + 1 if expected.numel() else 1
    torch.testing.assert_close(got.cpu().double(), expected, rtol=0, atol=tolerance * scale)


def compare_all(dtype, tolerance, orders):
    for m, n, k in SIZES:
        for first, second in orders:
            a, b, c = (torch.randn(shape, generator=generator).mul(4).to(dtype) for shape in ((m, k), (k, n), (n,)))
            on_device = ordered(a, first), ordered(b, second)
            expected = a.double() @ b.double()
            if dtype != torch.int32:
                compare(torch.addmm(c.to(device), *on_device, beta=0.5, alpha=2), 0.5 * c.double() + 2 * expected, tolerance)
            compare(on_device[0] @ on_device[1], expected, tolerance)


pairs = list(itertools.product(("rows", "columns", "apart"), repeat=2))
compare_all(torch.float32, 1e-5, pairs)
compare_all(torch.float64, 1e-12, pairs[1:4])
compare_all(torch.float16, 2e-3, pairs[:2])
compare_all(torch.bfloat16, 2e-2, pairs[:2])
compare_all(torch.int32, 0, pairs[:1])
a, b = torch.randn(3, 2, 40, 50, generator=generator), torch.randn(3, 2, 50, 30, generator=generator)
compare(a.to(device) @ b.to(device), a.double() @ b.double(), 1e-5)
for rows in (1, 7):
    a, b = torch.randn(3, 2, rows, 150, generator=generator), torch.randn(3, 1, 30, 150, generator=generator)
    compare(a.to(device) @ b.to(device).mT, a.double() @ b.double().mT, 1e-5)
    compare(b.to(device) @ a.to(device).mT, b.double() @ a.double().mT, 1e-5)
# Processors unfold images of float64 alone.
image, filters = torch.randn(2, 3, 20, 20, generator=generator).double(), torch.randn(8, 3, 3, 3, generator=generator).double()
convolved = torch.nn.functional.conv2d(image.to(device), filters.to(device), padding=1)
compare(convolved, torch.nn.functional.conv2d(image, filters, padding=1).double(), 1e-5)
# Parts of k are added in their order.
a, b = torch.randn(64, 4096, device=device), torch.randn(4096, 64, device=device)
assert all(torch.equal(a @ b, a @ b) for _ in range(3))
assert torch.opencl.fallbacks() == {}
"""


@pytest.mark.parametrize("way", ["groups", "blocks"])
def test_products(way, device):
    environment = {**os.environ, "TORCH_OPENCL_PRODUCTS": way}
    subprocess.run([sys.executable, "-c", PROGRAM, device], env=environment, check=True, timeout=900)


@pytest.mark.parametrize("rows", [8, 13, 16, 31, 32, 64, 65])
def test_tiles_for_few_rows(rows, device):
    """Tiles of 8 or 12 rows, whichever computes fewer of them for nothing: shallow and deep, in each order of the factors."""
    for columns, depth, batch in ((33, 20, 1), (40, 100, 3), (96, 300, 1), (700, 64, 2)):
        a, b, c = torch.randn(batch, rows, depth), torch.randn(batch, depth, columns), torch.randn(columns)
        for first in (False, True):
            for second in (False, True):
                factors = [matrix.transpose(1, 2).contiguous().to(device).transpose(1, 2) if turned else matrix.to(device)
                           for matrix, turned in ((a, first), (b, second))]
                torch.testing.assert_close((factors[0] @ factors[1]).cpu(), a @ b, rtol=1e-4, atol=1e-4)
                torch.testing.assert_close(torch.addmm(c.to(device), factors[0][0], factors[1][0]).cpu(), torch.addmm(c, a[0], b[0]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", (1, 5, 11))
def test_few_rows_are_added_in_lanes(rows, device):
    """Lanes along the columns of a weight read neighbours. It shows in what is lost: of ones after 2 ** 24, a single sum keeps none."""
    if torch.opencl.get_device_properties(device).is_gpu:
        pytest.skip("GPUs compute products by whole groups")
    if rows > 4 and "avx512f" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("vectors of 8 lanes have registers for fewer rows")
    x = torch.ones(rows, 256)
    x[:, 0] = 2 ** 24
    weight = torch.ones(6, 256)
    product = torch.nn.functional.linear(x.to(device), weight.to(device))
    assert product.shape == (rows, 6)
    assert (product.cpu().double() - (2 ** 24 + 255)).abs().max() <= 256 / 8
    assert (weight.to(device) @ x.to(device)[0]).cpu().double().sub(2 ** 24 + 255).abs().max() <= 256 / 8
