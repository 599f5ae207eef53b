// Private memory over barriers and the size of work-groups.
#include <runtime/group_memory.h>

#include <gtest/gtest.h>
#include <limits>

namespace polder::runtime {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr uint64_t GiB = uint64_t{1} << 30;

driver::DeviceInfo device(uint64_t memory_bytes, uint32_t compute_units) {
    driver::DeviceInfo info;
    info.memory_bytes = memory_bytes;
    info.compute_units = compute_units;
    info.max_work_group_size = 4096;
    info.code.format = driver::CodeFormat::host_function;
    return info;
}

compiler::KernelInfo kernel(uint64_t private_bytes) {
    compiler::KernelInfo info;
    info.private_bytes_over_barriers = private_bytes;
    return info;
}

TEST(GroupMemory, GroupsOfAllThreadsUseAQuarterOfTheMemory) {
    EXPECT_EQ(group_items_max(kernel(4 * MiB), device(32 * GiB, 2)), 1024u);
    EXPECT_EQ(group_items_max(kernel(4 * MiB), device(32 * GiB, 8)), 256u);
    EXPECT_EQ(group_items_max(kernel(4 * MiB - 1), device(32 * GiB, 8)), 256u);
    EXPECT_EQ(group_items_max(kernel(4 * MiB + 1), device(32 * GiB, 8)), 255u);
}

TEST(GroupMemory, AGroupMayUseWhatAStackHas) {
    EXPECT_EQ(group_items_max(kernel(4096), device(64 * MiB, 64)), 4096u);
    EXPECT_EQ(group_items_max(kernel(8192), device(64 * MiB, 64)), 2048u);
}

TEST(GroupMemory, OneWorkItemIsAlwaysAllowed_AndNeverMoreThanTheDeviceAllows) {
    for (const uint64_t bytes : {17 * MiB, 64 * GiB, std::numeric_limits<uint64_t>::max()}) {
        EXPECT_EQ(group_items_max(kernel(bytes), device(64 * MiB, 64)), 1u);
        EXPECT_EQ(group_items_target(kernel(bytes), device(64 * MiB, 64), 16), 1u);
    }
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1024}}) {
        EXPECT_EQ(group_items_max(kernel(bytes), device(32 * GiB, 2)), 4096u);
        EXPECT_EQ(group_items_target(kernel(bytes), device(32 * GiB, 2), 16), 4096u);
    }
}

TEST(GroupMemory, AChosenSizeHas64MiBOrAVector) {
    EXPECT_EQ(group_items_target(kernel(256 << 10), device(32 * GiB, 2), 16), 256u);
    EXPECT_EQ(group_items_target(kernel(1 * MiB), device(32 * GiB, 2), 16), 64u);
    EXPECT_EQ(group_items_target(kernel(16 * MiB), device(32 * GiB, 2), 16), 16u);
    EXPECT_EQ(group_items_target(kernel(16 * MiB), device(32 * GiB, 2), 8), 8u);
    EXPECT_EQ(group_items_target(kernel(512 * MiB), device(32 * GiB, 2), 16), 8u) << "no more than is allowed";
}

TEST(GroupMemory, DevicesWithOtherCodeHaveLimitsOfTheirOwn) {
    driver::DeviceInfo gpu = device(1 * GiB, 64);
    gpu.code.format = driver::CodeFormat::ptx;
    EXPECT_EQ(group_items_max(kernel(64 * MiB), gpu), 4096u);
    EXPECT_EQ(group_items_target(kernel(64 * MiB), gpu, 32), 4096u);
}

}  // namespace
}  // namespace polder::runtime
