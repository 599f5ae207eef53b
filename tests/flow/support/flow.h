// A context over a CPU and two devices with memories of their own, and a look at the bytes that moved.
#pragma once

#include "../../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <array>
#include <numeric>

namespace polder::test {

inline constexpr const char* flow_kernels = R"(
kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
kernel void add_sum(global const int* from, global int* to, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i)
        sum += from[i];
    to[0] = sum;
}
kernel void copy_first(global const int* from, global int* to) { to[0] = from[0]; }
kernel void set_every_second(global int* data, int value) { data[2 * get_global_id(0)] = value; }
kernel void ignore(global int* unused, global int* data) { data[get_global_id(0)] = 7; }
)";

class FlowTest : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 3u) << "POCL_DEVICES must be \"cpu discrete discrete\"";
        for (size_t i = 0; i < 3; ++i)
            queues[i] = make_queue(devices[i]);
        program = build(flow_kernels);
        transfers_ = reinterpret_cast<clGetMemoryTransfersPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryTransfersPOLDER"));
        ASSERT_NE(transfers_, nullptr);
    }

    // Bytes moved between memories since the last call, by commands enqueued so far; also checks that no more moved
    // than a perfect plan would have.
    cl_ulong moved() {
        for (const OwnedQueue& each : queues)
            if (each) {
                EXPECT_EQ(clFinish(each), CL_SUCCESS);
            }
        cl_uint count = 0;
        EXPECT_EQ(transfers_(context, 0, nullptr, &count), CL_SUCCESS);
        std::vector<cl_memory_transfers_polder> entries(count);
        if (count > 0) {
            EXPECT_EQ(transfers_(context, count, entries.data(), nullptr), CL_SUCCESS);
        }
        cl_ulong total = 0;
        for (const cl_memory_transfers_polder& entry : entries) {
            total += entry.moved_bytes;
            EXPECT_LE(entry.moved_bytes, entry.needed_bytes);
        }
        return total - std::exchange(moved_before_, total);
    }

    // Sets the arguments in order and runs `items` work-items.
    template <class... Arguments>
    OwnedEvent run(size_t device, const char* name, size_t items, const std::vector<cl_event>& waits,
                   const Arguments&... arguments) {
        OwnedKernel kernel = make_kernel(program, name);
        cl_uint index = 0;
        const auto set = [&](const auto& value) {
            EXPECT_EQ(clSetKernelArg(kernel, index++, sizeof(value), &value), CL_SUCCESS);
        };
        (set(arguments), ...);
        OwnedEvent done;
        EXPECT_EQ(clEnqueueNDRangeKernel(queues[device], kernel, 1, nullptr, &items, nullptr,
                                         static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(),
                                         done.out()),
                  CL_SUCCESS);
        return done;
    }
    static cl_mem mem(const OwnedMem& buffer) { return buffer; }

    static std::vector<cl_int> numbers(size_t count) {
        std::vector<cl_int> values(count);
        std::iota(values.begin(), values.end(), 1);
        return values;
    }

    static cl_ulong profiling_ns(cl_event event, cl_profiling_info name) {
        cl_ulong time = 0;
        EXPECT_EQ(clGetEventProfilingInfo(event, name, sizeof time, &time, nullptr), CL_SUCCESS);
        return time;
    }

    std::array<OwnedQueue, 3> queues;
    OwnedProgram program;

private:
    clGetMemoryTransfersPOLDER_fn transfers_ = nullptr;
    cl_ulong moved_before_ = 0;
};

}  // namespace polder::test
