// Rows about one buffer that two devices of a context use in turns. They need two devices that are no processors.
#include "workload.h"

namespace bench {
namespace {

constexpr size_t kibibyte = 1 << 10, mebibyte = 1 << 20;

// The first two devices of the first platform that are no processors, in one context.
class TwoDevices {
public:
    TwoDevices() {
        cl_platform_id platform = nullptr;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        cl_device_id all[64];
        cl_uint count = 0;
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, all, &count), "clGetDeviceIDs");
        cl_uint found = 0;
        for (cl_uint i = 0; i < count && found < 2; ++i) {
            cl_device_type type = 0;
            check(clGetDeviceInfo(all[i], CL_DEVICE_TYPE, sizeof type, &type, nullptr), "clGetDeviceInfo");
            if (!(type & CL_DEVICE_TYPE_CPU))
                devices_[found++] = all[i];
        }
        if (found < 2) {
            std::fprintf(stderr, "needs two devices that are no processors\n");
            std::exit(1);
        }
        cl_int status = CL_SUCCESS;
        context_ = clCreateContext(nullptr, 2, devices_, nullptr, nullptr, &status);
        check(status, "clCreateContext");
        for (int i = 0; i < 2; ++i) {
            queues_[i] = clCreateCommandQueueWithProperties(context_, devices_[i], nullptr, &status);
            check(status, "clCreateCommandQueueWithProperties");
        }
        const char* source = "kernel void change(global int* data) { data[0] += 1; }";
        cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
        check(status, "clCreateProgramWithSource");
        check(clBuildProgram(program, 2, devices_, "", nullptr, nullptr), "clBuildProgram");
        kernel_ = clCreateKernel(program, "change", &status);
        check(status, "clCreateKernel");
    }

    [[nodiscard]] cl_mem buffer(size_t bytes) const {
        cl_int status = CL_SUCCESS;
        cl_mem object = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &status);
        check(status, "clCreateBuffer");
        const cl_int zero = 0;
        check(clEnqueueFillBuffer(queues_[0], object, &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), "fill");
        check(clFinish(queues_[0]), "clFinish");
        return object;
    }
    void change(int device, cl_mem object) const {
        set_arguments(kernel_, object);
        const size_t one = 1;
        check(clEnqueueNDRangeKernel(queues_[device], kernel_, 1, nullptr, &one, &one, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
        check(clFinish(queues_[device]), "clFinish");
    }
    void write(int device, cl_mem object, size_t offset, cl_int value) const {
        check(clEnqueueWriteBuffer(queues_[device], object, CL_TRUE, offset, sizeof value, &value, 0, nullptr, nullptr),
              "clEnqueueWriteBuffer");
    }

private:
    cl_device_id devices_[2] = {};
    cl_context context_ = nullptr;
    cl_command_queue queues_[2] = {};
    cl_kernel kernel_ = nullptr;
};

// A kernel on each device in turns: one move and one launch.
template <size_t bytes>
double changed_in_turns() {
    const TwoDevices both;
    cl_mem object = both.buffer(bytes);
    int turn = 0;
    return best_of(4, 10, [&] { both.change(turn++ % 2, object); });
}

// Four bytes of 64 MiB, written by the queue of each device in turns.
double written_in_turns() {
    const TwoDevices both;
    cl_mem object = both.buffer(64 * mebibyte);
    for (int device : {0, 1, 0, 1})
        both.change(device, object);
    int turn = 0;
    return best_of(4, 10, [&] {
        both.write(turn % 2, object, 4096 + 4 * static_cast<size_t>(turn % 64), turn);
        ++turn;
    });
}

constexpr Row rows[] = {
    {"64 MiB changed on two devices in turns", 0.01, changed_in_turns<64 * mebibyte>},
    {"4 KiB changed on two devices in turns", 0.22, changed_in_turns<4 * kibibyte>},
    {"4 of 64 Mi bytes written on two devices", 0.001, written_in_turns},
};

}  // namespace

std::span<const Row> two_device_rows() { return rows; }

}  // namespace bench
