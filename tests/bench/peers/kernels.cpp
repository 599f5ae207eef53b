// Rows about the code that kernels become.
#include "workload.h"

namespace bench {
namespace {

constexpr char source[] = R"(
kernel void mandelbrot(global uint* out, uint size) {
    const uint x = get_global_id(0), y = get_global_id(1);
    const float cx = 3.0f * x / size - 2.0f, cy = 3.0f * y / size - 1.5f;
    float zx = 0, zy = 0;
    uint i = 0;
    for (; i < 500 && zx * zx + zy * zy < 4.0f; ++i) {
        const float next = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = next;
    }
    out[y * size + x] = i;
}
kernel void nbody(global float4* forces, global const float4* bodies, uint count) {
    const float4 own = bodies[get_global_id(0)];
    float4 sum = 0;
    for (uint j = 0; j < count; ++j) {
        float4 d = bodies[j] - own;
        d.w = 0;
        const float inverse = rsqrt(dot(d, d) + 0.01f);
        sum += d * (bodies[j].w * inverse * inverse * inverse);
    }
    forces[get_global_id(0)] = sum;
}
#define TILE 16
kernel void matmul(global float* c, global const float* a, global const float* b, uint n) {
    local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const uint x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
    float sum = 0;
    for (uint t = 0; t < n; t += TILE) {
        tile_a[ly][lx] = a[y * n + t + lx];
        tile_b[ly][lx] = b[(t + ly) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < TILE; ++k)
            sum += tile_a[ly][k] * tile_b[k][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = sum;
}
kernel void stencil(global float* out, global const float* in, uint size) {
    const int x = get_global_id(0), y = get_global_id(1), last = size - 1;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += in[clamp(y + dy, 0, last) * size + clamp(x + dx, 0, last)];
    out[y * size + x] = sum / 9;
}
float normal_cdf(float x) {
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float w = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f +
                    k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228f * exp(-0.5f * x * x) * w;
    return x > 0 ? 1.0f - tail : tail;
}
kernel void black_scholes(global float* call, global float* put, global const float* price) {
    const uint i = get_global_id(0);
    const float s = 10.0f + 90.0f * price[i], strike = 50.0f, t = 1.0f, r = 0.02f, v = 0.3f;
    const float d1 = (log(s / strike) + (r + 0.5f * v * v) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    const float discount = strike * exp(-r * t);
    const float value = s * normal_cdf(d1) - discount * normal_cdf(d2);
    call[i] = value;
    put[i] = value + discount - s;
}
kernel void transcendental(global float* out, global const float* in) {
    const uint i = get_global_id(0);
    out[i] = sin(in[i]) * cos(in[i]) + pow(in[i], 1.7f);
}
kernel void reduce(global float* out, global const float* in, local float* partial) {
    const uint l = get_local_id(0);
    partial[l] = in[get_global_id(0)];
    for (uint s = get_local_size(0) / 2; s > 0; s /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s)
            partial[l] += partial[l + s];
    }
    if (l == 0)
        out[get_group_id(0)] = partial[0];
}
)";

constexpr size_t streamed = size_t{1} << 22;

cl_mem filled_buffer(const Session& session, size_t floats) {
    std::vector<float> host(floats);
    for (size_t i = 0; i < floats; ++i)
        host[i] = 0.1f + static_cast<float>(i % 1000) * 0.0009f;
    cl_mem object = session.buffer(floats * sizeof(float));
    check(clEnqueueWriteBuffer(session.queue, object, CL_TRUE, 0, floats * sizeof(float), host.data(), 0, nullptr,
                               nullptr),
          "clEnqueueWriteBuffer");
    return object;
}

double time_1d(const Session& session, cl_kernel kernel, size_t items, size_t group) {
    return best_of(3, 1, [&] {
        session.launch(kernel, items, group);
        session.finish();
    });
}
double time_2d(const Session& session, cl_kernel kernel, size_t items, size_t group) {
    return best_of(2, 1, [&] {
        session.launch_2d(kernel, items, group);
        session.finish();
    });
}

double mandelbrot() {
    const Session session;
    constexpr cl_uint size = 1024;
    cl_kernel kernel = session.kernel(source, "mandelbrot");
    set_arguments(kernel, session.buffer(size_t{4} * size * size), size);
    return time_2d(session, kernel, size, 0);
}
double nbody() {
    const Session session;
    constexpr cl_uint count = 8192;
    cl_kernel kernel = session.kernel(source, "nbody");
    set_arguments(kernel, session.buffer(size_t{16} * count), filled_buffer(session, size_t{4} * count), count);
    return time_1d(session, kernel, count, 0);
}
double matmul() {
    const Session session;
    constexpr cl_uint n = 1024;
    cl_kernel kernel = session.kernel(source, "matmul");
    set_arguments(kernel, session.buffer(size_t{4} * n * n), filled_buffer(session, size_t{n} * n),
                  filled_buffer(session, size_t{n} * n), n);
    return time_2d(session, kernel, n, 16);
}
double stencil() {
    const Session session;
    constexpr cl_uint size = 2048;
    cl_kernel kernel = session.kernel(source, "stencil");
    set_arguments(kernel, session.buffer(4 * streamed), filled_buffer(session, streamed), size);
    return time_2d(session, kernel, size, 8);
}
double black_scholes() {
    const Session session;
    cl_kernel kernel = session.kernel(source, "black_scholes");
    set_arguments(kernel, session.buffer(4 * streamed), session.buffer(4 * streamed), filled_buffer(session, streamed));
    return time_1d(session, kernel, streamed, 0);
}
double transcendental() {
    const Session session;
    cl_kernel kernel = session.kernel(source, "transcendental");
    set_arguments(kernel, session.buffer(4 * streamed), filled_buffer(session, streamed));
    return time_1d(session, kernel, streamed, 0);
}
double reduction() {
    const Session session;
    constexpr size_t group = 256;
    cl_kernel kernel = session.kernel(source, "reduce");
    set_arguments(kernel, session.buffer(4 * streamed / group), filled_buffer(session, streamed));
    check(clSetKernelArg(kernel, 2, 4 * group, nullptr), "clSetKernelArg");
    return time_1d(session, kernel, streamed, group);
}

constexpr double two_thirds = 2.0 / 3.0;  // the goal for the geometric mean of these
constexpr Row rows[] = {
    {"mandelbrot 1024^2 x 500", two_thirds, mandelbrot},    {"n-body 8192", two_thirds, nbody},
    {"tiled matrix product 1024", two_thirds, matmul},      {"Black-Scholes 2^22", two_thirds, black_scholes},
    {"sin * cos + pow 2^22", two_thirds, transcendental},   {"local reduction 2^22", two_thirds, reduction},
    {"stencil 2048^2, groups of 8x8", two_thirds, stencil},
};

} // namespace

std::span<const Row> kernel_rows() { return rows; }

} // namespace bench
