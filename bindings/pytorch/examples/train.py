"""Trains a model on an OpenCL device, and plots loss and memory of each step: train.py [MODEL [DEVICE [STEPS]]].

MODEL is perceptron, resnet18 or transformer. The plot is written to train.png if matplotlib is there; the figures are printed in any case.
"""
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
import models

# %% What to train, and where
task = sys.argv[1] if len(sys.argv) > 1 else "transformer"
device = sys.argv[2] if len(sys.argv) > 2 else "opencl"
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 50
print(torch.opencl.get_device_properties(device))

# %% Train
allocated, reserved, times, kernels = [], [], [], []


def watch(step):
    torch.accelerator.synchronize(device)
    times.append(time.perf_counter())
    kernels.append(torch.opencl.kernel_launches())
    allocated.append(torch.opencl.max_memory_allocated(device))
    reserved.append(torch.opencl.memory_reserved(device))
    torch.opencl.reset_peak_memory_stats(device)


losses = models.train(task, device, steps, watch)

# %% Figures
half = steps // 2
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; "
      f"{1e3 * (times[-1] - times[half - 1]) / (steps - half):.2f} ms and {kernels[-1] - kernels[-2]} kernels a step")
print(f"peak of a step: {max(allocated) / 2**20:.1f} MiB; reserved: {max(reserved) / 2**20:.1f} MiB")
print("operators that ran on the CPU:", torch.opencl.fallbacks() or "none")

# %% Plot
try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit()
figure, (top, bottom) = plt.subplots(2, sharex=True)
top.plot(losses)
top.set_ylabel("loss")
bottom.plot([size / 2**20 for size in allocated], label="peak of tensors")
bottom.plot([size / 2**20 for size in reserved], label="reserved")
bottom.set_ylabel("MiB")
bottom.set_xlabel("step")
bottom.legend()
figure.savefig("train.png")
