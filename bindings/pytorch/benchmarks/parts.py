"""Where a training step's time goes: parts.py [DEVICE [TASK…]]. In turns, in one process:

- eager, compiled: whole steps.
- host: a compiled step until its last call returns, without waiting for the device. What the device does meanwhile takes processor time from it
  where the device is the processor.
- products: the matrix products, convolutions and attention of an eager step alone, from inputs that are there, with their results kept.

Compiling does not change the products, so a compiled step takes at least as long as these. A figure is the least of the rounds, in milliseconds.
"""
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from steps import Training, now

ROUNDS = 9
NAMES = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "_scaled_dot_product_fused_attention_overrideable",
         "_scaled_dot_product_fused_attention_overrideable_backward")


class Products(TorchDispatchMode):
    """Keeps the calls of products, with copies of what they read."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function._schema.name.removeprefix("aten::") in NAMES:
            kept = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (arguments, options or {}))
            self.calls.append((function, *kept))
        return function(*arguments, **(options or {}))


def milliseconds(work, device, steps, waits=True):
    torch.opencl.synchronize(device)
    begin = now()
    for _ in range(steps):
        work()
    if waits:
        torch.opencl.synchronize(device)
    return 1e3 * (now() - begin) / steps


def main(device="opencl", *tasks):
    print(f"{torch.opencl.get_device_name(device)}\n{'':18}{'eager':>9}{'compiled':>10}{'host':>8}{'products':>10}{'calls':>7}")
    for task in tasks or ("transformer", "resnet18"):
        eager, compiled = Training(task, device), Training(task, device, compiled=True)
        products = Products()
        for training in (eager, compiled):
            training.milliseconds(4)
        with products:
            eager.step()

        def multiply():
            for function, arguments, options in products.calls:
                function(*arguments, **options)

        multiply()
        works = [(eager.step, 20, True), (compiled.step, 20, True), (compiled.step, 3, False), (multiply, 20, True)]
        least = [min(figures) for figures in zip(*([milliseconds(work, device, steps, waits) for work, steps, waits in works] for _ in range(ROUNDS)))]
        print(f"{task:18}" + "".join(f"{value:{width}.2f}" for value, width in zip(least, (9, 10, 8, 10))) + f"{len(products.calls):7}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
