// A device with unified memory that is not coherent: its buffers and the host's are one block, in every order of first use, which
// changes its owner instead of being copied.
#include "unified_memory_fixture.h"

namespace polder::test {
namespace {

class Mapped : public UnifiedMemoryTest {
protected:
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
        // One block and not two. In a build with the address sanitizer, some bytes behind it are for finding faults.
        EXPECT_GE(budget(0).committed_bytes, committed + bytes);
        EXPECT_LT(budget(0).committed_bytes, committed + 2 * bytes);
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
