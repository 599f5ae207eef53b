// Migrations that do not fit: several buffers, and host memory for one of them.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <array>

namespace polder::test {
namespace {

constexpr size_t bytes = size_t{40} << 20;

class Migration : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu discrete\"";
        queue = make_queue(devices[1]);
    }
    cl_ulong host_bytes() {
        const auto spaces = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        std::array<cl_memory_space_polder, 4> entries{};
        EXPECT_EQ(spaces(context, entries.size(), entries.data(), nullptr), CL_SUCCESS);
        EXPECT_EQ(entries[0].space, 0u);
        return entries[0].used_bytes;
    }
    OwnedMem filled(cl_uint value) {
        OwnedMem buffer = make_buffer(bytes);
        EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &value, sizeof value, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        return buffer;
    }
};

TEST_F(Migration, ToTheHostTakesMemoryForAllBuffersOrForNone) {
    const OwnedMem first = filled(1), second = filled(2);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    const cl_ulong before = host_bytes();
    const cl_mem both[] = {first, second};
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 2, both, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr),
              CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(host_bytes(), before);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 1, both, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_GE(host_bytes(), before + bytes);
    EXPECT_EQ(read<cl_uint>(first, 16), std::vector<cl_uint>(16, 1));
    EXPECT_EQ(read<cl_uint>(second, 16), std::vector<cl_uint>(16, 2));
}

} // namespace
} // namespace polder::test
