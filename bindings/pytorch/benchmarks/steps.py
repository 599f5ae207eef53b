"""Times of training steps against PyTorch's own CPU backend, in turns in one process: steps.py [DEVICE [ROUNDS [TASK…]]].

For each model: milliseconds of a step on the CPU, eager and compiled on the device, the ratios between them, and for the device kernels and
copies between host and device a step, the peak of allocated memory, and peak reserved over it. A figure is the minimum of the rounds,
each of which takes at least a tenth of a second.

STEPS_TIME=processor measures processor time with one thread on either side, which other programs on the machine disturb less. Set
POCL_MAX_COMPUTE_UNITS=1 with it. Otherwise a second line has the processor time of all threads, the least of the same rounds. Memory that a device takes from the host is reserved as address space, 64 MiB at first, and has
pages only where it was written: for small models the last figure is not meaningful.
"""
import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
import models

# With the sizes of the tests, most of the time is for calls; with the larger ones, which have the goals, for arithmetic.
SIZES = {
    **models.TASKS,
    "transformer-128": (lambda: models.Transformer(width=128, layers=4, heads=4, length=64), lambda: models.texts(64, 64),
                        models.TASKS["transformer"][2], 16),
    "resnet18-16": (lambda: models.resnet18(16), lambda: models.images(64), models.TASKS["resnet18"][2], 16),
    # The published sizes: ResNet-18 (He et al., 2015; images of CIFAR-10's size), and nanoGPT's small model (train_shakespeare_char: 65 letters).
    "resnet18-64": (lambda: models.resnet18(64), lambda: models.images(64), models.TASKS["resnet18"][2], 16),
    "nanogpt": (lambda: models.Transformer(letters=65, width=384, layers=6, heads=6, length=256), lambda: models.texts(4, 256, 65),
                models.TASKS["transformer"][2], 4),
}
# Rounds of at least five steps of these would take minutes.
LONG = ("resnet18-64", "nanogpt")


ROUND_MILLISECONDS = 100
IN_PROCESSOR_TIME = os.environ.get("STEPS_TIME") == "processor"
now = time.process_time if IN_PROCESSOR_TIME else time.perf_counter


class Training:
    """A model that can be trained a few steps at a time."""

    def __init__(self, task, device, compiled=False):
        make_model, make_data, make_optimizer, self.batch = SIZES[task]
        torch.manual_seed(0)
        self.device = device
        self.model = make_model().to(device)
        # The optimizer with one call for all parameters is the fastest one on either device.
        self.optimizer = make_optimizer(self.model.parameters(), fused=True)
        self.inputs, self.targets = (part.to(device) for part in make_data())
        self.loss_of = torch.compile(models.loss_of, dynamic=False) if compiled else models.loss_of

    def step(self):
        self.optimizer.zero_grad()
        self.loss_of(self.model, self.inputs[:self.batch], self.targets[:self.batch]).backward()
        self.optimizer.step()

    def wait(self):
        if self.device != "cpu":
            torch.opencl.synchronize(self.device)

    def times(self, steps):
        """Milliseconds of a step: by the wall clock (or as STEPS_TIME says), and of processor time."""
        self.wait()
        begin = now(), time.process_time()
        for _ in range(steps):
            self.step()
        self.wait()
        return [1e3 * (end - start) / steps for start, end in zip(begin, (now(), time.process_time()))]

    def milliseconds(self, steps):
        return self.times(steps)[0]


def per_step(count, training):
    before = count()
    training.step()
    return count() - before


def main(device="opencl", rounds="5", *tasks):
    if IN_PROCESSOR_TIME:
        torch.set_num_threads(1)
    print(f"{torch.opencl.get_device_name(device)}, {torch.get_num_threads()} threads of the CPU backend")
    print(f"{'':18}{'cpu ms':>9}{'eager ms':>10}{'compiled':>10}{'eager/cpu':>11}{'compiled/cpu':>14}{'compiled/eager':>16}"
          f"{'kernels':>9}{'compiled':>10}{'copies':>8}{'MiB':>8}{'reserved/allocated':>20}")
    for task in tasks or SIZES:
        trainings = [Training(task, "cpu"), Training(task, device), Training(task, device, compiled=True)]
        for training in trainings:
            training.milliseconds(3)
        kernels = [per_step(torch.opencl.kernel_launches, training) for training in trainings[1:]]
        copies = sum(per_step(torch.opencl.host_copies, training) for training in trainings[1:])
        torch.opencl.empty_cache()
        torch.opencl.reset_peak_memory_stats(device)
        trainings[1].milliseconds(2)
        allocated = torch.opencl.max_memory_allocated(device)
        memory = torch.opencl.max_memory_reserved(device) / allocated
        # The first step after a pause takes longer, because threads sleep then: a round has many steps of a small model.
        least = 1 if task in LONG else 5
        steps = [max(least, int(ROUND_MILLISECONDS / training.milliseconds(least))) for training in trainings]
        times = [[training.times(steps[place]) for place, training in enumerate(trainings)] for _ in range(int(rounds))]
        (cpu, processor_cpu), (eager, processor_eager), (compiled, processor_compiled) = (
            [min(figures) for figures in zip(*rounds_of_one)] for rounds_of_one in zip(*times))
        print(f"{task:18}{cpu:9.2f}{eager:10.2f}{compiled:10.2f}{eager / cpu:11.2f}{compiled / cpu:14.2f}{compiled / eager:16.2f}"
              f"{kernels[0]:9}{kernels[1]:10}{copies:8}{allocated / 2**20:8.1f}{memory:20.2f}", flush=True)
        if not IN_PROCESSOR_TIME:
            print(f"{'  processor time':18}{processor_cpu:9.2f}{processor_eager:10.2f}{processor_compiled:10.2f}"
                  f"{processor_eager / processor_cpu:11.2f}{processor_compiled / processor_cpu:14.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
