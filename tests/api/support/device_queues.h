// What tests of queues on the device share: one program with a kernel `kernel_name(queue_t, global int*, int)`, run on each device that has such queues.
#pragma once

#include "fixture.h"

#include <cstring>
#include <string>
#include <vector>

namespace polder::test {

class DeviceQueueTest : public ContextTest {
protected:
    static constexpr size_t count = 96;

    // Calls `check` for each device, with a program of `source`, a queue on the host and one on the device.
    template <class Check>
    void run(const char* source, Check check, const char* options = "-cl-std=CL3.0") {
        on_each_device([&] {
            program = build(source, options);
            check();
        });
    }
    // The same without a program.
    template <class Check>
    void on_each_device(Check check) {
        size_t tried = 0;
        for (const cl_device_id each : devices) {
            cl_device_device_enqueue_capabilities capabilities = 0;
            EXPECT_EQ(clGetDeviceInfo(each, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, sizeof capabilities, &capabilities,
                                      nullptr),
                      CL_SUCCESS);
            if (!(capabilities & CL_DEVICE_QUEUE_SUPPORTED))
                continue;
            ++tried;
            device = each;
            queue = make_queue(device);
            device_queue = make_device_queue();
            result = make_buffer(count * sizeof(cl_int));
            check();
        }
        EXPECT_GT(tried, 0u);
    }
    OwnedQueue make_device_queue(cl_queue_properties more = 0) {
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                                  CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | more,
                                                  CL_QUEUE_SIZE, queue_bytes, 0};
        cl_int error = CL_INVALID_VALUE;
        const cl_command_queue made = clCreateCommandQueueWithProperties(context, device, properties, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    cl_int creation_error(cl_queue_properties bits, cl_queue_properties size) {
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, bits, CL_QUEUE_SIZE, size, 0};
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clCreateCommandQueueWithProperties(context, device, properties, &error), nullptr);
        return error;
    }
    cl_command_queue default_queue() {
        cl_command_queue found = nullptr;
        EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof found, &found, nullptr), CL_SUCCESS);
        return found;
    }
    OwnedKernel test_kernel() {
        OwnedKernel kernel = make_kernel(program, kernel_name);
        const cl_int n = static_cast<cl_int>(count);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_command_queue), device_queue.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), result.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof n, &n), CL_SUCCESS);
        return kernel;
    }
    cl_int enqueue(size_t items, cl_event* event = nullptr) {
        const OwnedKernel kernel = test_kernel();
        return clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, event);
    }
    // What the kernel leaves in a buffer of zeros.
    std::vector<cl_int> launch(size_t items) {
        write(result, std::vector<cl_int>(count, 0));
        OwnedEvent done;
        EXPECT_EQ(enqueue(items, done.out()), CL_SUCCESS);
        EXPECT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
        return read<cl_int>(result, count);
    }
    void reload_from_binary() {
        std::vector<size_t> sizes(devices.size());
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
            CL_SUCCESS);
        std::vector<std::vector<unsigned char>> binaries;
        std::vector<unsigned char*> places;
        for (const size_t size : sizes)
            places.push_back(binaries.emplace_back(size).data());
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof places[0], places.data(), nullptr),
            CL_SUCCESS);
        const std::vector<const unsigned char*> given(places.begin(), places.end());
        cl_int error = CL_INVALID_VALUE;
        program = clCreateProgramWithBinary(context, static_cast<cl_uint>(devices.size()), devices.data(), sizes.data(),
                                            const_cast<const unsigned char**>(given.data()), nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    }

    cl_device_id device = nullptr;
    cl_queue_properties queue_bytes = 1 << 20;
    OwnedQueue device_queue;
    const char* kernel_name = "test";
    OwnedMem result;  // the kernel's second argument
    OwnedProgram program;
};

}  // namespace polder::test
