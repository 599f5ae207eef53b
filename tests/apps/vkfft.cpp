// VkFFT on OpenCL: batches of complex transforms whose lengths have small factors, large primes (Bluestein, Rader) and
// need several kernels, checked against sums in double precision.
#define CL_TARGET_OPENCL_VERSION 120
#define VKFFT_BACKEND 3
#include <CL/cl.h>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>
#include <vkFFT.h>

namespace {

using Values = std::vector<std::complex<float>>;

constexpr uint64_t batch = 3;
constexpr double error_max = 1e-5;

struct OpenCl {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    OpenCl() {
        cl_int error = CL_SUCCESS;
        clGetPlatformIDs(1, &platform, nullptr);
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        queue = clCreateCommandQueue(context, device, 0, &error);
    }
};

Values some_values(uint64_t count) {
    Values values(count);
    for (uint64_t i = 0; i < count; ++i)
        values[i] = {static_cast<float>(i * 7919 % 101) / 101 - 0.5f, static_cast<float>(i * 104729 % 97) / 97 - 0.5f};
    return values;
}

// Transforms in place; false when VkFFT reports an error.
bool transform(OpenCl& cl, Values& values, uint64_t length) {
    uint64_t bytes = values.size() * sizeof values[0];
    cl_int error = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, values.data(), &error);
    VkFFTConfiguration configuration{};
    configuration.FFTdim = 1;
    configuration.size[0] = length;
    configuration.numberBatches = batch;
    configuration.platform = &cl.platform;
    configuration.device = &cl.device;
    configuration.context = &cl.context;
    configuration.buffer = &buffer;
    configuration.bufferSize = &bytes;
    VkFFTApplication application{};
    bool is_fine = initializeVkFFT(&application, configuration) == VKFFT_SUCCESS;
    if (is_fine) {
        VkFFTLaunchParams launch{};
        launch.buffer = &buffer;
        launch.commandQueue = &cl.queue;
        is_fine =
            VkFFTAppend(&application, -1, &launch) == VKFFT_SUCCESS &&
            clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr) == CL_SUCCESS;
        deleteVkFFT(&application);
    }
    clReleaseMemObject(buffer);
    return is_fine;
}

// The largest error of some elements of the last transform of the batch, relative to the largest of them.
double error_of(const Values& input, const Values& output, uint64_t length) {
    const uint64_t base = (batch - 1) * length;
    double error = 0;
    double largest = 0;
    for (uint64_t k = 0; k < length; k += length / 37 + 1) {
        std::complex<double> sum = 0;
        for (uint64_t i = 0; i < length; ++i)
            sum += std::complex<double>(input[base + i]) *
                   std::polar(1.0, -2 * M_PI * static_cast<double>(k * i % length) / static_cast<double>(length));
        error = std::max(error, std::abs(sum - std::complex<double>(output[base + k])));
        largest = std::max(largest, std::abs(sum));
    }
    return error / largest;
}

} // namespace

int main() {
    OpenCl cl;
    if (!cl.queue)
        return 1;
    bool is_fine = true;
    for (const uint64_t length : {8, 1001, 243, 97, 8192}) {
        const Values input = some_values(length * batch);
        Values output = input;
        const bool is_done = transform(cl, output, length);
        const double error = is_done ? error_of(input, output, length) : 1;
        std::printf("length %llu: %s, error %.1e\n", static_cast<unsigned long long>(length),
                    is_done ? "done" : "refused", error);
        is_fine = is_fine && error < error_max;
    }
    return is_fine ? 0 : 1;
}
