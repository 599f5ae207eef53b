#!/usr/bin/python3
"""pyopencl_test.py TOPIC: PyOpenCL's own algorithms on Polder, checked against NumPy."""
import multiprocessing
import os
import sys

SKIPPED = 77
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
try:
    import numpy as np
    import pyopencl as cl
    import pyopencl.array as cl_array
    import pyopencl.clmath as clmath
    import pyopencl.clrandom as clrandom
    import pyopencl.tools as cl_tools
    from pyopencl.algorithm import RadixSort, copy_if, partition, unique
    from pyopencl.elementwise import ElementwiseKernel
    from pyopencl.reduction import ReductionKernel
    from pyopencl.scan import ExclusiveScanKernel, GenericScanKernel, InclusiveScanKernel
except ImportError as error:
    print(f"skipped: {error} (packages python3-pyopencl, python3-numpy)")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)

SIZES = (1, 17, 4096, 100_003)


def arrays(queue, rng):
    """Arithmetic, slices, reshaping, assignment, conversion and comparison of arrays."""
    for size in SIZES:
        a_host = rng.standard_normal(size).astype(np.float32)
        b_host = rng.standard_normal(size).astype(np.float32)
        a, b = cl_array.to_device(queue, a_host), cl_array.to_device(queue, b_host)
        np.testing.assert_allclose((2 * a + b * a - b / 3).get(), 2 * a_host + b_host * a_host - b_host / 3,
                                   rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(a[size // 3:].get(), a_host[size // 3:])
        np.testing.assert_array_equal(cl_array.maximum(a, b).get(), np.maximum(a_host, b_host))
        np.testing.assert_array_equal((a > b).get().astype(bool), a_host > b_host)
        np.testing.assert_array_equal(cl_array.if_positive(a, a, b).get(), np.where(a_host > 0, a_host, b_host))
        np.testing.assert_array_equal(a.astype(np.float64).get(), a_host.astype(np.float64))
        a[: size // 2] = b[: size // 2]
        a_host[: size // 2] = b_host[: size // 2]
        np.testing.assert_array_equal(a.get(), a_host)
    np.testing.assert_array_equal(cl_array.arange(queue, 7, 5000, 3, dtype=np.int32).get(),
                                  np.arange(7, 5000, 3, dtype=np.int32))
    integers = rng.integers(-1000, 1000, 999).astype(np.int64)
    on_device = cl_array.to_device(queue, integers)
    np.testing.assert_array_equal((on_device * on_device - 3 * on_device).get(), integers * integers - 3 * integers)
    complex_host = (rng.standard_normal(500) + 1j * rng.standard_normal(500)).astype(np.complex64)
    complex_device = cl_array.to_device(queue, complex_host)
    np.testing.assert_allclose((complex_device * complex_device.conj()).get(), complex_host * complex_host.conj(),
                               rtol=1e-5, atol=1e-6)
    indices = rng.permutation(4096).astype(np.int32)
    source = cl_array.arange(queue, 0, 4096, 1, dtype=np.float32)
    np.testing.assert_array_equal(cl_array.take(source, cl_array.to_device(queue, indices)).get(),
                                  indices.astype(np.float32))


def images(queue, rng):
    """Images from arrays, reads with samplers, copies, fills, maps."""
    context = queue.context
    program = cl.Program(context, """
        constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
        kernel void transpose(read_only image2d_t from, write_only image2d_t to) {
            int2 at = (int2)(get_global_id(0), get_global_id(1));
            write_imagef(to, at.yx, read_imagef(from, nearest, at));
        }
        kernel void halve(read_only image2d_t from, sampler_t sampler, global float4 *to, int width) {
            int2 at = (int2)(get_global_id(0), get_global_id(1));
            to[at.y * width + at.x] = read_imagef(from, sampler, (float2)(2 * at.x + 1, 2 * at.y + 1));
        }
        kernel void slices(read_only image3d_t from, global float *to) {
            int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
            to[(at.z * get_image_height(from) + at.y) * get_image_width(from) + at.x] = read_imagef(from, nearest, at).x;
        }""").build()
    height, width = 48, 70
    pixels = rng.integers(0, 256, (height, width, 4)).astype(np.uint8)
    image = cl.image_from_array(context, pixels, 4, norm_int=True)
    turned = cl.Image(context, cl.mem_flags.READ_WRITE, image.format, shape=(height, width))
    program.transpose(queue, (width, height), None, image, turned)
    found = np.empty((width, height, 4), np.uint8)
    cl.enqueue_copy(queue, found, turned, origin=(0, 0), region=(height, width))
    np.testing.assert_array_equal(found, pixels.transpose(1, 0, 2))
    cl.enqueue_fill_image(queue, turned, np.array([1, 0, 1, 0], np.float32), origin=(0, 0), region=(3, 5))
    cl.enqueue_copy(queue, found, turned, origin=(0, 0), region=(height, width))
    np.testing.assert_array_equal(found[:5, :3], np.tile(np.array([255, 0, 255, 0], np.uint8), (5, 3, 1)))
    view = cl.enqueue_map_image(queue, turned, cl.map_flags.READ, (0, 0), (height, width), (width, height, 4),
                                np.uint8)[0]
    np.testing.assert_array_equal(view, found)
    view.base.release(queue)

    colors = rng.random((height, width, 4)).astype(np.float32)
    image = cl.image_from_array(context, colors, 4)
    small = cl_array.empty(queue, (height // 2, width // 2, 4), np.float32)
    sampler = cl.Sampler(context, False, cl.addressing_mode.CLAMP_TO_EDGE, cl.filter_mode.LINEAR)
    program.halve(queue, (width // 2, height // 2), None, image, sampler, small.data, np.int32(width // 2))
    expected = colors.reshape(height // 2, 2, width // 2, 2, 4).mean(axis=(1, 3))
    np.testing.assert_allclose(small.get(), expected, atol=1e-6)

    volume = rng.random((5, 6, 7)).astype(np.float32)
    image = cl.image_from_array(context, volume, 1)
    plain = cl_array.empty(queue, volume.shape, np.float32)
    program.slices(queue, (7, 6, 5), None, image, plain.data)
    np.testing.assert_array_equal(plain.get(), volume)


def elementwise(queue, rng):
    """Kernels made from an expression, and the math functions."""
    combine = ElementwiseKernel(queue.context, "float k, const float *x, const float *y, float *z",
                                "z[i] = k * x[i] + (y[i] > 0 ? sqrt(y[i]) : y[i])", "combine")
    for size in SIZES:
        x = rng.standard_normal(size).astype(np.float32)
        y = rng.standard_normal(size).astype(np.float32)
        z = cl_array.empty(queue, size, np.float32)
        combine(np.float32(1.5), cl_array.to_device(queue, x), cl_array.to_device(queue, y), z)
        expected = 1.5 * x + np.where(y > 0, np.sqrt(np.abs(y)), y)
        np.testing.assert_allclose(z.get(), expected, rtol=1e-5, atol=1e-6)
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        x = rng.uniform(0.01, 0.99, 4096).astype(dtype)
        device = cl_array.to_device(queue, x)
        for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "atan", "asin", "floor", "log10", "cbrt"):
            np.testing.assert_allclose(getattr(clmath, name)(device).get(),
                                       getattr(np, {"atan": "arctan", "asin": "arcsin"}.get(name, name))(x),
                                       rtol=tolerance, atol=tolerance, err_msg=name)


def reductions(queue, rng):
    """Sums, dot products, extrema and a reduction of one's own."""
    norm = ReductionKernel(queue.context, np.float64, neutral="0", reduce_expr="a+b", map_expr="x[i]*x[i]",
                           arguments="const double *x")
    for size in SIZES:
        x = rng.standard_normal(size)
        n = rng.integers(-50, 50, size).astype(np.int32)
        x_device, n_device = cl_array.to_device(queue, x), cl_array.to_device(queue, n)
        np.testing.assert_allclose(cl_array.sum(x_device).get(), x.sum(), rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(cl_array.dot(x_device, x_device).get(), x @ x, rtol=1e-10)
        np.testing.assert_allclose(norm(x_device).get(), x @ x, rtol=1e-10)
        assert cl_array.sum(n_device).get() == n.sum()
        assert cl_array.max(n_device).get() == n.max()
        assert cl_array.min(x_device).get() == x.min()


def scans(queue, rng):
    """Prefix sums, segmented sums, selection, uniqueness and radix sort."""
    context = queue.context
    inclusive = InclusiveScanKernel(context, np.int32, "a+b", neutral="0")
    exclusive = ExclusiveScanKernel(context, np.int32, "a+b", neutral="0")
    for size in SIZES:
        host = rng.integers(0, 10, size).astype(np.int32)
        device = cl_array.to_device(queue, host)
        np.testing.assert_array_equal(inclusive(device.copy()).get(), np.cumsum(host))
        np.testing.assert_array_equal(exclusive(device.copy()).get(), np.cumsum(host) - host)
        selected, count, _ = copy_if(device, "ary[i] > 4", queue=queue)
        np.testing.assert_array_equal(selected.get()[: int(count.get())], host[host > 4])
        small, large, count, _ = partition(device, "ary[i] < 3", queue=queue)
        np.testing.assert_array_equal(small.get()[: int(count.get())], host[host < 3])
        np.testing.assert_array_equal(large.get()[: size - int(count.get())], host[host >= 3])
        ordered = np.sort(host)
        distinct, count, _ = unique(cl_array.to_device(queue, ordered), queue=queue)
        np.testing.assert_array_equal(distinct.get()[: int(count.get())], np.unique(host))
    segmented = GenericScanKernel(context, np.int32, arguments="const int *x, const char *starts, int *out",
                                  input_expr="x[i]", scan_expr="across_seg_boundary ? b : a+b", neutral="0",
                                  is_segment_start_expr="starts[i]", output_statement="out[i] = item;")
    host = rng.integers(0, 10, 10_000).astype(np.int32)
    starts = (rng.uniform(size=10_000) < 0.01).astype(np.int8)
    result = cl_array.empty(queue, 10_000, np.int32)
    segmented(cl_array.to_device(queue, host), cl_array.to_device(queue, starts), result)
    expected = np.concatenate([np.cumsum(part) for part in np.split(host, np.flatnonzero(starts)) if len(part)])
    np.testing.assert_array_equal(result.get(), expected)
    sort = RadixSort(context, "int *keys", key_expr="keys[i]", sort_arg_names=["keys"])
    keys = rng.integers(0, 1 << 16, 5000).astype(np.int32)
    (ordered,), _ = sort(cl_array.to_device(queue, keys), key_bits=16)
    np.testing.assert_array_equal(ordered.get(), np.sort(keys))


def memory_pool(queue, rng):
    """PyOpenCL's pool over Polder's buffers: blocks are reused, contents stay right."""
    for _ in range(2):
        pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
        kept = []
        for size in rng.integers(1, 100_000, 60):
            host = rng.standard_normal(size)
            device = cl_array.to_device(queue, host, allocator=pool)
            doubled = device + device
            np.testing.assert_array_equal(doubled.get(), host + host)
            if size % 3 == 0:
                kept.append((device, host))
        for device, host in kept:
            np.testing.assert_array_equal(device.get(), host)
        assert pool.managed_bytes >= pool.active_bytes > 0
        del device, doubled
        kept.clear()
        assert pool.active_bytes == 0 and pool.held_blocks > 0
        pool.stop_holding()
        assert pool.managed_bytes == 0


def doubled_sum(size):
    """What a process of its own computes with a context of its own: the sum of 2 * size ones."""
    queue = cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1]))
    return float(cl_array.sum(2 * cl_array.zeros(queue, size, np.float32) + 2).get())


def processes(queue, rng):
    """Processes forked by one that has computed with OpenCL compute too, and it goes on."""
    del rng
    assert doubled_sum(1000) == 2000
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map_async(doubled_sum, SIZES).get(timeout=60) == [2 * size for size in SIZES]
    assert float(cl_array.sum(cl_array.arange(queue, 1000, dtype=np.int32)).get()) == 499500


def random_numbers(queue, rng):
    """Counter-based generators: their moments, their range, and that they repeat."""
    del rng
    for generator in (clrandom.PhiloxGenerator, clrandom.ThreefryGenerator):
        first = generator(queue.context, seed=12).uniform(queue, 200_000, np.float32).get()
        again = generator(queue.context, seed=12).uniform(queue, 200_000, np.float32).get()
        np.testing.assert_array_equal(first, again)
        assert 0 <= first.min() and first.max() <= 1
        assert abs(first.mean() - 0.5) < 0.005 and abs(first.var() - 1 / 12) < 0.005
        normal = generator(queue.context, seed=5).normal(queue, 200_000, np.float64, mu=3, sigma=2).get()
        assert abs(normal.mean() - 3) < 0.03 and abs(normal.std() - 2) < 0.03
        integers = generator(queue.context, seed=1).uniform(queue, 50_000, np.int32, a=10, b=20).get()
        assert 10 <= integers.min() and integers.max() <= 20 and len(np.unique(integers)) >= 10


TOPICS = {function.__name__: function
          for function in (arrays, images, elementwise, reductions, scans, memory_pool, processes,
                           random_numbers)}


def main():
    topic = TOPICS[sys.argv[1]]
    context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
    print(f"{sys.argv[1]} on {context.devices[0].platform.name}: {context.devices[0].name}")
    topic(cl.CommandQueue(context), np.random.default_rng(seed=2026))


main()
