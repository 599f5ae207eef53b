// A device that computes in host memory, coherently: its buffers and the host's are one block, in every order of first use.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t count = 1 << 16;
constexpr size_t bytes = count * sizeof(cl_int);

class Linked : public ContextTest {
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
    cl_memory_space_polder host_memory() {
        const auto function = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        std::vector<cl_memory_space_polder> all(3);
        EXPECT_EQ(function(context, 3, all.data(), nullptr), CL_SUCCESS);
        return all[0];
    }

    static constexpr size_t host = 0, coherent = 1, separate = 2;  // devices
    std::vector<OwnedQueue> queues_;
    OwnedProgram program_;
};

TEST_F(Linked, OneBlockAndNoBytes) {
    for (const size_t first : {host, coherent}) {
        const cl_uint blocks = host_memory().live_blocks;
        const OwnedMem buffer = make_buffer(bytes);
        const cl_int zero = 0;
        ASSERT_EQ(clEnqueueFillBuffer(queues_[first], buffer, &zero, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues_[first]), CL_SUCCESS);
        add(coherent, buffer, 1);
        add(host, buffer, 2);
        add(coherent, buffer, 4);
        auto* const mapped = static_cast<cl_int*>(map(coherent, buffer, CL_MAP_READ | CL_MAP_WRITE));
        EXPECT_EQ(mapped[count - 1], 7);
        mapped[0] = 100;
        unmap(coherent, buffer, mapped);
        add(coherent, buffer, 1);
        void* const again = map(host, buffer, CL_MAP_READ);
        EXPECT_EQ(static_cast<cl_int*>(again)[0], 101);
        EXPECT_EQ(again, mapped);
        unmap(host, buffer, again);
        EXPECT_TRUE(transfers().empty());
        EXPECT_EQ(host_memory().live_blocks, blocks + 1);
    }
}

TEST_F(Linked, TheApplicationsMemoryIsUsedInPlace) {
    std::vector<cl_int> memory(count + 64, 5);
    auto* const mine = reinterpret_cast<cl_int*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) & ~uintptr_t{127});
    const cl_uint blocks = host_memory().live_blocks;
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mine);
    add(coherent, buffer, 1);
    EXPECT_EQ(map(coherent, buffer, CL_MAP_READ), mine);
    EXPECT_EQ(mine[17], 6);
    unmap(coherent, buffer, mine);
    EXPECT_TRUE(transfers().empty());
    EXPECT_EQ(host_memory().live_blocks, blocks);
}

TEST_F(Linked, ToADeviceWithAMemoryOfItsOwnThereIsOneCopy) {
    const OwnedMem buffer = make_buffer(bytes);
    const cl_int zero = 0;
    ASSERT_EQ(clEnqueueFillBuffer(queues_[coherent], buffer, &zero, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    add(coherent, buffer, 1);
    add(separate, buffer, 2);
    ASSERT_EQ(transfers().size(), 1u);
    EXPECT_EQ(transfers()[0].from_space, 0u);
    EXPECT_EQ(transfers()[0].moved_bytes, bytes);
    add(coherent, buffer, 4);
    ASSERT_EQ(transfers().size(), 2u);
    EXPECT_EQ(transfers()[1].to_space, 0u);
    EXPECT_EQ(transfers()[1].moved_bytes, bytes);
    EXPECT_EQ(read<cl_int>(buffer, count, queues_[coherent]), std::vector<cl_int>(count, 7));
}

}  // namespace
}  // namespace polder::test
