// A device with unified memory that is not coherent: its buffers and the host's are one block, in every order of first use, which
// changes its owner instead of being copied.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t count = 1 << 16;
constexpr size_t bytes = count * sizeof(cl_int);

class Mapped : public ContextTest {
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
    cl_memory_budget_polder budget(cl_uint space) {
        const auto function = reinterpret_cast<clGetMemoryBudgetsPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryBudgetsPOLDER"));
        std::vector<cl_memory_budget_polder> all(3);
        EXPECT_EQ(function(context, 3, all.data(), nullptr), CL_SUCCESS);
        return all[space];
    }
    // Since the last call.
    void expect_switches(cl_ulong maps, cl_ulong unmaps) {
        const cl_memory_budget_polder now = budget(1);
        EXPECT_EQ(now.maps - before_.maps, maps);
        EXPECT_EQ(now.unmaps - before_.unmaps, unmaps);
        before_ = now;
    }
    void fill(size_t device, cl_mem buffer, cl_int value) {
        ASSERT_EQ(clEnqueueFillBuffer(queues_[device], buffer, &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues_[device]), CL_SUCCESS);
    }

    static constexpr size_t host = 0, shared = 1, separate = 2;  // devices
    std::vector<OwnedQueue> queues_;
    OwnedProgram program_;
    cl_memory_budget_polder before_{};
};

TEST_F(Mapped, OneBlockExactSwitchesAndNoBytes) {
    for (const size_t first : {host, shared}) {
        before_ = budget(1);
        const cl_ulong committed = budget(0).committed_bytes;
        const OwnedMem buffer = make_buffer(bytes);
        fill(first, buffer, 0);
        expect_switches(0, first == shared ? 1 : 0);
        add(shared, buffer, 1);
        expect_switches(0, first == shared ? 0 : 1);
        add(host, buffer, 2);
        add(host, buffer, 0);
        expect_switches(1, 0);
        add(shared, buffer, 4);
        add(shared, buffer, 0);
        expect_switches(0, 1);
        auto* const mapped = static_cast<cl_int*>(map(shared, buffer, CL_MAP_READ | CL_MAP_WRITE));
        expect_switches(1, 0);
        EXPECT_EQ(mapped[count - 1], 7);
        mapped[0] = 100;
        unmap(shared, buffer, mapped);
        expect_switches(0, 0);
        add(shared, buffer, 1);
        expect_switches(0, 1);
        EXPECT_EQ(read<cl_int>(buffer, count, queues_[shared])[0], 101);
        expect_switches(1, 0);
        EXPECT_TRUE(transfers().empty());
        EXPECT_EQ(budget(0).committed_bytes, committed + bytes);
        EXPECT_EQ(budget(1).committed_bytes, 0u);
    }
}

TEST_F(Mapped, TheApplicationsMemoryIsUsedInPlace) {
    std::vector<cl_int> memory(count + 64, 5);
    auto* const mine = reinterpret_cast<cl_int*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) & ~uintptr_t{127});
    const cl_ulong committed = budget(0).committed_bytes;
    before_ = budget(1);
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mine);
    add(shared, buffer, 1);
    EXPECT_EQ(map(shared, buffer, CL_MAP_READ), mine);
    EXPECT_EQ(mine[17], 6);
    unmap(shared, buffer, mine);
    expect_switches(1, 1);
    EXPECT_TRUE(transfers().empty());
    EXPECT_EQ(budget(0).committed_bytes, committed);
}

// From a device that is not linked: map, one copy, unmap.
TEST_F(Mapped, ToADeviceWithAMemoryOfItsOwnThereIsOneCopy) {
    before_ = budget(1);
    const OwnedMem buffer = make_buffer(bytes);
    fill(shared, buffer, 0);
    add(shared, buffer, 1);
    expect_switches(0, 1);
    add(separate, buffer, 2);
    expect_switches(1, 0);
    ASSERT_EQ(transfers().size(), 1u);
    EXPECT_EQ(transfers()[0].from_space, 0u);
    EXPECT_EQ(transfers()[0].moved_bytes, bytes);
    add(shared, buffer, 4);
    expect_switches(0, 1);
    ASSERT_EQ(transfers().size(), 2u);
    EXPECT_EQ(transfers()[1].to_space, 0u);
    EXPECT_EQ(transfers()[1].moved_bytes, bytes);
    EXPECT_EQ(read<cl_int>(buffer, count, queues_[shared]), std::vector<cl_int>(count, 7));
}

TEST_F(Mapped, PartsSwitchByThemselves) {
    before_ = budget(1);
    const OwnedMem buffer = make_buffer(bytes);
    fill(shared, buffer, 3);
    expect_switches(0, 1);
    cl_int error = CL_INVALID_VALUE;
    auto* const mapped = static_cast<cl_int*>(
        clEnqueueMapBuffer(queues_[shared], buffer, CL_TRUE, CL_MAP_WRITE, 4096, 4096, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    mapped[0] = 50;
    ASSERT_EQ(clEnqueueUnmapMemObject(queues_[shared], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    add(shared, buffer, 1);
    expect_switches(1, 1);
    const auto words = read<cl_int>(buffer, count, queues_[shared]);
    EXPECT_EQ(words[1024], 51);
    EXPECT_EQ(words[1023], 4);
    EXPECT_EQ(words[2048], 4);
}

}  // namespace
}  // namespace polder::test
