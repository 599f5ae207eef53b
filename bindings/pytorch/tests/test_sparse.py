"""Sparse gradients of embeddings: made, joined, coalesced and applied by optimizers on the device."""
import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def nothing_runs_on_the_cpu():
    torch.opencl.reset_fallbacks()
    yield
    assert torch.opencl.fallbacks() == {}


def sparse(device, sparse_dims=1):
    generator = torch.Generator().manual_seed(1)
    sizes = (5, 6)[:sparse_dims] + (3,)
    indices = torch.stack([torch.randint(0, size, (20,), generator=generator) for size in sizes[:sparse_dims]])
    values = torch.randn(20, 3, generator=generator)
    return torch.sparse_coo_tensor(indices, values, sizes), torch.sparse_coo_tensor(indices.to(device), values.to(device), sizes)


@pytest.mark.parametrize("sparse_dims", [1, 2])
def test_operators(sparse_dims, device):
    there, here = sparse(device, sparse_dims)
    assert here.device == torch.device(device) and here.layout == torch.sparse_coo
    assert here.is_coalesced() is False and here.coalesce().is_coalesced()
    assert torch.equal(here.coalesce().indices().cpu(), there.coalesce().indices())
    dense = torch.arange(there.numel(), dtype=torch.float32).reshape(there.shape)
    for work in (lambda s, d: s.coalesce().values(), lambda s, d: s.to_dense(), lambda s, d: (s + s).to_dense(),
                 lambda s, d: d + s, lambda s, d: d.clone().t().contiguous().t().add_(s, alpha=-2) if d.dim() == 2 else d - -s,
                 lambda s, d: (s * 3).to_dense(), lambda s, d: (s / 4).to_dense(), lambda s, d: s.clone().mul_(2).to_dense(),
                 lambda s, d: (-s).to_dense(), lambda s, d: d.sparse_mask(s.coalesce()).values(),
                 lambda s, d: s.clone().zero_().to_dense()):
        torch.testing.assert_close(work(here, dense.to(device)).cpu(), work(there, dense))
    torch.testing.assert_close(here.cpu().to_dense(), there.to_dense())
    torch.testing.assert_close(there.to(device).to_dense().cpu(), there.to_dense())


def test_what_sparse_tensors_cannot(device):
    _, here = sparse(device)
    with pytest.raises(RuntimeError, match="multiplied by numbers alone"):
        here * torch.ones(5, 3, device=device)
    with pytest.raises(RuntimeError, match="Use add\\(dense, sparse\\)"):
        here + torch.ones(5, 3, device=device)


def test_other_operators_run_on_the_cpu(device):
    there, here = sparse(device)
    matrix, factor = torch.eye(5).to_sparse(), torch.arange(15.0).reshape(5, 3)
    moved = matrix.to(device)
    for work in (lambda s, m, x: torch.sparse.mm(m, x), lambda s, m, x: m @ x, lambda s, m, x: torch.addmm(x, m, x), lambda s, m, x: m.t().to_dense(),
                 lambda s, m, x: torch.sparse.sum(s), lambda s, m, x: torch.sparse.softmax(m, 1).to_dense(), lambda s, m, x: s.coalesce().sqrt().to_dense()):
        torch.testing.assert_close(work(here, moved, factor.to(device)).cpu(), work(there, matrix, factor), equal_nan=True)
    assert "aten::addmm" in torch.opencl.fallbacks()
    torch.opencl.reset_fallbacks()


@pytest.mark.parametrize("optimizer,options", [(torch.optim.SGD, dict(lr=0.1)), (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
                                               (torch.optim.SparseAdam, dict(lr=0.01))])
def test_training_an_embedding_with_sparse_gradients(optimizer, options, device):
    losses = []
    for where in ("cpu", device):
        torch.manual_seed(0)
        embedding = nn.Embedding(30, 8, sparse=True, padding_idx=3).to(where)
        words = torch.randint(0, 30, (5, 16, 7), generator=torch.Generator().manual_seed(2)).to(where)
        trainer = optimizer(embedding.parameters(), **options)
        for batch in words:
            trainer.zero_grad()
            # Two uses of one embedding: gradients are added to each other.
            loss = (embedding(batch).mean(1) - embedding(batch[:, :2]).mean(1) - 1).square().mean()
            loss.backward()
            assert embedding.weight.grad.layout == torch.sparse_coo
            trainer.step()
        losses.append((loss.detach().cpu(), embedding.weight.detach().cpu()))
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
