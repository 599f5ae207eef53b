// Which thread computes gradients. PyTorch has a thread for the backward passes of each device but the CPU. With one device it only
// costs: the calling thread waits for it, so that a small step has two changes of threads, each of which may wake a processor that sleeps.
#pragma once

namespace torch_opencl {

// Lets the calling thread compute the gradients of its backward passes itself, where the device is the only one. Only the first call of a
// thread changes anything, so what the program sets afterwards (torch.autograd.set_multithreading_enabled) remains.
void compute_gradients_here();

}  // namespace torch_opencl
