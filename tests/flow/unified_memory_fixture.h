// A context of the processor, a device with unified memory, and a device with a memory of its own. Included by tests of memory that
// the host and a device share.
#pragma once

#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <vector>

namespace polder::test {

inline constexpr size_t count = 1 << 16;
inline constexpr size_t bytes = count * sizeof(cl_int);

class UnifiedMemoryTest : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 3u) << "POCL_DEVICES must be \"cpu discrete discrete\"";
        for (const cl_device_id device : devices)
            queues_.push_back(make_queue(device));
        program_ = build("kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }");
    }
    void add(size_t device, cl_mem buffer, cl_int value) {
        const OwnedKernel kernel = make_kernel(program_, "add");
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queues_[device], kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clFinish(queues_[device]), CL_SUCCESS);
    }
    void* map(size_t device, cl_mem buffer, cl_map_flags flags) {
        cl_int error = CL_INVALID_VALUE;
        void* const mapped =
            clEnqueueMapBuffer(queues_[device], buffer, CL_TRUE, flags, 0, bytes, 0, nullptr, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return mapped;
    }
    void unmap(size_t device, cl_mem buffer, void* mapped) {
        ASSERT_EQ(clEnqueueUnmapMemObject(queues_[device], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues_[device]), CL_SUCCESS);
    }
    // Bytes moved since the context was made, but those of reads and writes.
    std::vector<cl_memory_transfers_polder> transfers() {
        const auto function = reinterpret_cast<clGetMemoryTransfersPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryTransfersPOLDER"));
        cl_uint entries = 0;
        EXPECT_EQ(function(context, 0, nullptr, &entries), CL_SUCCESS);
        std::vector<cl_memory_transfers_polder> all(entries);
        if (entries > 0) {
            EXPECT_EQ(function(context, entries, all.data(), nullptr), CL_SUCCESS);
        }
        return all;
    }

    static constexpr size_t host = 0, shared = 1, separate = 2;  // devices
    std::vector<OwnedQueue> queues_;
    OwnedProgram program_;
};

}  // namespace polder::test
