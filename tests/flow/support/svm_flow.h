// Shared virtual memory in a context of three devices: the processor, and two that may have it or not.
#pragma once

#include "flow.h"

#include <algorithm>

namespace polder::test {

inline constexpr size_t host = 0, first = 1, second = 2;  // devices
inline constexpr size_t count = 4096;
inline constexpr size_t bytes = count * sizeof(cl_int);

class SvmFlow : public FlowTest {
protected:
    void SetUp() override {
        FlowTest::SetUp();
        svm = allocate();
        ASSERT_NE(svm, nullptr);
    }
    void TearDown() override { clSVMFree(context, svm); }

    bool has_svm(size_t device) {
        cl_device_svm_capabilities capabilities = 0;
        EXPECT_EQ(
            clGetDeviceInfo(devices[device], CL_DEVICE_SVM_CAPABILITIES, sizeof capabilities, &capabilities, nullptr),
            CL_SUCCESS);
        return capabilities & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    }
    // Nothing moves to or from a device that uses the memory in place.
    size_t moved_by(size_t device, size_t size) { return has_svm(device) ? 0 : size; }

    cl_int* allocate(size_t size = bytes) {
        return static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0));
    }

    void run_svm(const char* name, cl_int* pointer, size_t items, cl_int value) {
        const OwnedKernel kernel = make_kernel(program, name);
        ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, pointer), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
    void map(cl_map_flags flags, cl_int* pointer, size_t size = bytes) {
        ASSERT_EQ(clEnqueueSVMMap(queues[host], CL_TRUE, flags, pointer, size, 0, nullptr, nullptr), CL_SUCCESS);
    }
    void unmap(cl_int* pointer) {
        ASSERT_EQ(clEnqueueSVMUnmap(queues[host], pointer, 0, nullptr, nullptr), CL_SUCCESS);
    }
    void finish() {
        for (const OwnedQueue& one : queues)
            ASSERT_EQ(clFinish(one), CL_SUCCESS);
    }
    // Through a map of the pointer.
    std::vector<cl_int> values(cl_int* pointer, size_t number = count) {
        map(CL_MAP_READ, pointer, number * sizeof(cl_int));
        const std::vector<cl_int> seen(pointer, pointer + number);
        unmap(pointer);
        finish();
        return seen;
    }
    void set(cl_int* pointer, const std::vector<cl_int>& to) {
        map(CL_MAP_WRITE_INVALIDATE_REGION, pointer);
        std::ranges::copy(to, pointer);
        unmap(pointer);
        finish();
    }

    cl_int* svm = nullptr;
};

}  // namespace polder::test
