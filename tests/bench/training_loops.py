"""Three training loops with PyOpenCL, written as frameworks execute them: every result is a new buffer, activations live until
the backward pass has used them, and the optimizer's state lives as long as the model. For memory traces (utilisation.py).

training_loops.py perceptron|convolution|attention [STEPS]
"""
import sys

import numpy as np
import pyopencl as cl

SOURCE = """
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int k, int flags) {
    const int row = get_global_id(1), column = get_global_id(0), m = get_global_size(1), n = get_global_size(0);
    float sum = 0;
    for (int i = 0; i < k; ++i)
        sum += a[flags & 1 ? i * m + row : row * k + i] * b[flags & 2 ? column * k + i : i * n + column];
    c[row * n + column] = sum;
}
__kernel void relu(__global const float *x, __global float *y) { int i = get_global_id(0); y[i] = fmax(x[i], 0.0f); }
__kernel void relu_back(__global const float *y, __global const float *dy, __global float *dx) {
    int i = get_global_id(0);
    dx[i] = y[i] > 0 ? dy[i] : 0;
}
__kernel void softmax(__global const float *x, __global float *y, int n) {
    __global const float *in = x + get_global_id(0) * n;
    __global float *out = y + get_global_id(0) * n;
    float most = in[0], sum = 0;
    for (int i = 1; i < n; ++i) most = fmax(most, in[i]);
    for (int i = 0; i < n; ++i) sum += out[i] = exp(in[i] - most);
    for (int i = 0; i < n; ++i) out[i] /= sum;
}
__kernel void softmax_back(__global const float *y, __global const float *dy, __global float *dx, int n) {
    const int at = get_global_id(0) * n;
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += y[at + i] * dy[at + i];
    for (int i = 0; i < n; ++i) dx[at + i] = y[at + i] * (dy[at + i] - sum);
}
__kernel void loss_back(__global const float *y, __global const float *t, __global float *d, __global float *loss) {
    int i = get_global_id(0);
    d[i] = (y[i] - t[i]) / get_global_size(0);
    loss[i] = (y[i] - t[i]) * (y[i] - t[i]);
}
__kernel void unfold(__global const float *x, __global float *y, int side) {  /* 3x3 patches of images of one channel */
    const int i = get_global_id(0), image = i / (side * side), row = i / side % side, column = i % side;
    for (int tap = 0; tap < 9; ++tap) {
        const int r = row + tap / 3 - 1, c = column + tap % 3 - 1;
        const bool inside = r >= 0 && r < side && c >= 0 && c < side;
        y[i * 9 + tap] = inside ? x[(image * side + r) * side + c] : 0;
    }
}
__kernel void adam(__global float *w, __global const float *g, __global float *m, __global float *v) {
    int i = get_global_id(0);
    m[i] = 0.9f * m[i] + 0.1f * g[i];
    v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
    w[i] -= 0.01f * m[i] / (sqrt(v[i]) + 1e-6f);
}
"""


class Machine:
    """One device, its queue and the kernels. Matrices are (buffer, rows, columns)."""

    def __init__(self):
        device = cl.get_platforms()[0].get_devices()[0]
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        program = cl.Program(self.context, SOURCE).build()
        self.kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
        self.random = np.random.default_rng(1)

    def new(self, rows, columns):
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4 * rows * columns), rows, columns

    def put(self, array):
        made = self.new(*array.shape)
        cl.enqueue_copy(self.queue, made[0], np.ascontiguousarray(array, np.float32))
        return made

    def run(self, name, size, *arguments):
        self.kernels[name](self.queue, size, None, *[a[0] if isinstance(a, tuple) else a for a in arguments])

    def matmul(self, a, b, transposed=""):
        m, k = (a[2], a[1]) if "a" in transposed else (a[1], a[2])
        n = b[1] if "b" in transposed else b[2]
        made = self.new(m, n)
        flags = ("a" in transposed) + 2 * ("b" in transposed)
        self.run("matmul", (n, m), a, b, made, np.int32(k), np.int32(flags))
        return made

    def same(self, name, x, *others, rows_only=False):
        """An elementwise kernel, or one over rows, whose result has the shape of x."""
        made = self.new(x[1], x[2])
        self.run(name, (x[1],) if rows_only else (x[1] * x[2],), x, *others, made,
                 *([np.int32(x[2])] if rows_only else []))
        return made

    def loss(self, y, target):
        gradient, losses = self.new(y[1], y[2]), self.new(y[1], y[2])
        self.run("loss_back", (y[1] * y[2],), y, target, gradient, losses)
        values = np.empty(y[1] * y[2], np.float32)
        cl.enqueue_copy(self.queue, values, losses[0])
        return gradient, float(values.mean())


class Model:
    """Weights with Adam's two moments each."""

    def __init__(self, machine, *shapes):
        self.machine = machine
        scale = [machine.random.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes]
        self.weights = [machine.put(value) for value in scale]
        self.moments = [(machine.put(np.zeros(shape)), machine.put(np.zeros(shape))) for shape in shapes]

    def step(self, gradients):
        for weight, gradient, (m, v) in zip(self.weights, gradients, self.moments):
            self.machine.run("adam", (weight[1] * weight[2],), weight, gradient, m, v)


def perceptron(machine, steps):
    """Nine narrow layers, a fixed batch."""
    model = Model(machine, *[(32, 32)] * 8, (32, 16))
    data = machine.random.normal(size=(24_000, 32))
    target = np.tanh(data[:, :16])
    for _ in range(steps):
        x, wanted = machine.put(data), machine.put(target)
        inputs = [x]
        for weight in model.weights[:-1]:
            inputs.append(machine.same("relu", machine.matmul(inputs[-1], weight)))
        gradient, loss = machine.loss(machine.matmul(inputs[-1], model.weights[-1]), wanted)
        gradients = []
        for weight in reversed(model.weights):
            value = inputs.pop()
            gradients.insert(0, machine.matmul(value, gradient, "a"))
            if inputs:
                passed = machine.matmul(gradient, weight, "b")
                gradient = relu_back(machine, value, passed)
        model.step(gradients)
        yield loss


def relu_back(machine, value, gradient):
    made = machine.new(value[1], value[2])
    machine.run("relu_back", (value[1] * value[2],), value, gradient, made)
    return made


def convolution(machine, steps):
    """A convolution of images as patches and a product, then a layer per pixel; the batch grows and shrinks."""
    model = Model(machine, (9, 16), (16, 1))
    side = 32
    for step in range(steps):
        images = machine.random.normal(size=((48, 144, 240, 84)[step % 4] * side, side))
        x, wanted = machine.put(images), machine.put(np.roll(images, 1, axis=1).reshape(-1, 1))
        patches = machine.new(x[1] * x[2], 9)
        machine.run("unfold", (x[1] * x[2],), x, patches, np.int32(side))
        hidden = machine.same("relu", machine.matmul(patches, model.weights[0]))
        gradient, loss = machine.loss(machine.matmul(hidden, model.weights[1]), wanted)
        of_output = machine.matmul(hidden, gradient, "a")
        back = relu_back(machine, hidden, machine.matmul(gradient, model.weights[1], "b"))
        model.step([machine.matmul(patches, back, "a"), of_output])
        yield loss


def attention(machine, steps):
    """One head over sequences of another length in each step."""
    width = 32
    model = Model(machine, *[(width, width)] * 4)
    for _ in range(steps):
        length = int(machine.random.integers(600, 2000))
        tokens = machine.random.normal(size=(length, width))
        x, wanted = machine.put(tokens), machine.put(np.tanh(tokens))
        q, k, v = (machine.matmul(x, weight) for weight in model.weights[:3])
        scores = machine.same("softmax", machine.matmul(q, k, "b"), rows_only=True)
        mixed = machine.matmul(scores, v)
        gradient, loss = machine.loss(machine.matmul(mixed, model.weights[3]), wanted)
        of_output = machine.matmul(mixed, gradient, "a")
        of_mixed = machine.matmul(gradient, model.weights[3], "b")
        of_v = machine.matmul(scores, of_mixed, "a")
        of_scores = machine.matmul(of_mixed, v, "b")
        of_logits = machine.new(length, length)
        machine.run("softmax_back", (length,), scores, of_scores, of_logits, np.int32(length))
        of_q, of_k = machine.matmul(of_logits, k), machine.matmul(of_logits, q, "a")
        model.step([machine.matmul(x, part, "a") for part in (of_q, of_k, of_v)] + [of_output])
        yield loss


LOOPS = {"perceptron": perceptron, "convolution": convolution, "attention": attention}

if __name__ == "__main__":
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    losses = list(LOOPS[sys.argv[1]](Machine(), steps))
    print(f"{sys.argv[1]}: loss {losses[0]:.4f}, after {steps} steps {losses[-1]:.4f}")
    assert np.isfinite(losses).all(), losses
