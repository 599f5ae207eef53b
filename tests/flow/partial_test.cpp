// A buffer that is larger than every device's memory, shared by sub-buffers: each device has memory for its part alone. And
// a map of one byte of a very large buffer.
#include "../api/support/fixture.h"
#include "../support/sanitizer.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <map>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;
constexpr size_t device_count = 8;
constexpr size_t part_bytes = 50 * MiB;
constexpr size_t part_items = part_bytes / sizeof(cl_int);

constexpr const char* kernels = R"(
kernel void number(global int* data, int first) { size_t i = get_global_id(0); data[i] = first + (int)i; }
kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
kernel void add_whole(global int* data, int value) { data[get_global_id(0) * 4096] += value; }
)";

class Partial : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 1 + device_count) << "POCL_DEVICES must be \"cpu\" and 8 times \"discrete\"";
        for (const cl_device_id device : devices)
            queues_.push_back(make_queue(device));
        program_ = build(kernels);
    }
    void run(size_t device, const char* name, size_t items, cl_mem buffer, cl_int value) {
        const OwnedKernel kernel = make_kernel(program_, name);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queues_[device], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
    std::map<cl_uint, cl_memory_space_polder> spaces() {
        const auto function = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        std::vector<cl_memory_space_polder> entries(1 + device_count);
        EXPECT_EQ(function(context, 1 + device_count, entries.data(), nullptr), CL_SUCCESS);
        std::map<cl_uint, cl_memory_space_polder> all;
        for (const cl_memory_space_polder& entry : entries)
            all[entry.space] = entry;
        return all;
    }
    // Bytes moved, by (from, to).
    std::map<std::pair<cl_uint, cl_uint>, cl_ulong> moved() {
        for (const OwnedQueue& each : queues_)
            EXPECT_EQ(clFinish(each), CL_SUCCESS);
        const auto function = reinterpret_cast<clGetMemoryTransfersPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryTransfersPOLDER"));
        cl_uint count = 0;
        EXPECT_EQ(function(context, 0, nullptr, &count), CL_SUCCESS);
        std::vector<cl_memory_transfers_polder> entries(count);
        if (count > 0) {
            EXPECT_EQ(function(context, count, entries.data(), nullptr), CL_SUCCESS);
        }
        std::map<std::pair<cl_uint, cl_uint>, cl_ulong> all;
        for (const cl_memory_transfers_polder& entry : entries)
            all[{entry.from_space, entry.to_space}] = entry.moved_bytes;
        return all;
    }

    std::vector<OwnedQueue> queues_;
    OwnedProgram program_;
};

TEST_F(Partial, EightDevicesOf64MiBShare400MiB) {
    const OwnedMem whole = make_buffer(device_count * part_bytes);
    std::vector<OwnedMem> parts;
    for (size_t i = 0; i < device_count; ++i) {
        parts.push_back(sub_buffer(whole, i * part_bytes, part_bytes));
        run(1 + i, "number", part_items, parts[i], static_cast<cl_int>(i * part_items));
    }
    EXPECT_TRUE(moved().empty());
    auto memory = spaces();
    const cl_ulong host_before = memory[0].used_bytes;
    for (cl_uint i = 1; i <= device_count; ++i)
        EXPECT_EQ(memory[i].used_bytes, part_bytes) << "space " << i;
    // The processor reads the whole buffer; the devices keep their parts.
    run(0, "add_whole", device_count * part_items / 4096, whole, 1000);
    auto transfers = moved();
    for (cl_uint i = 1; i <= device_count; ++i) {
        const auto pair = std::pair{i, cl_uint{0}};
        EXPECT_EQ(transfers[pair], part_bytes) << "space " << i;
    }
    EXPECT_EQ(transfers.size(), device_count);
    // Builds for the address sanitizer keep a few bytes behind each block.
    const cl_ulong slack = has_address_sanitizer ? 4096 : 0;
    EXPECT_GE(spaces()[0].used_bytes - host_before, device_count * part_bytes);
    EXPECT_LE(spaces()[0].used_bytes - host_before, device_count * part_bytes + slack);
    // A quarter of a part on a device that had another part.
    const OwnedMem quarter = sub_buffer(whole, 0, 8 * MiB);
    run(8, "add", 8 * MiB / sizeof(cl_int), quarter, 5);
    EXPECT_EQ(moved()[std::pair(cl_uint{0}, cl_uint{8})], 8 * MiB);
    EXPECT_EQ(spaces()[8].used_bytes, part_bytes + 8 * MiB);

    cl_int error = CL_INVALID_VALUE;
    const auto* const seen = static_cast<const cl_int*>(clEnqueueMapBuffer(
        queues_[0], whole, CL_TRUE, CL_MAP_READ, 0, device_count * part_bytes, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    size_t wrong = 0;
    for (size_t i = 0; i < device_count * part_items; ++i)
        wrong += seen[i] != static_cast<cl_int>(i) + (i % 4096 == 0 ? 1000 : 0) + (i < 2 * MiB ? 5 : 0);
    EXPECT_EQ(wrong, 0u);
    ASSERT_EQ(clEnqueueUnmapMemObject(queues_[0], whole, const_cast<cl_int*>(seen), 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queues_[0]), CL_SUCCESS);
}

// As large as the processor's memory allows, up to 16 GiB.
TEST_F(Partial, MappingOneByteOfAHugeBufferCostsOnePage) {
    cl_ulong most = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, nullptr), CL_SUCCESS);
    const size_t size = std::min<size_t>(most, size_t{16} << 30);
    const cl_ulong before = spaces()[0].used_bytes;
    const OwnedMem buffer = make_buffer(size);
    cl_int error = CL_INVALID_VALUE;
    auto* const byte = static_cast<char*>(clEnqueueMapBuffer(queues_[1], buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                             size / 2, 1, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    *byte = 42;
    EXPECT_EQ(spaces()[0].used_bytes - before, 4096u);
    ASSERT_EQ(clEnqueueUnmapMemObject(queues_[1], buffer, byte, 0, nullptr, nullptr), CL_SUCCESS);
    const OwnedMem part = sub_buffer(buffer, size / 2, 4096);
    run(1, "add", 1, part, 1);
    EXPECT_EQ(read<char>(part, 1, queues_[1])[0], 43);
    EXPECT_EQ(spaces()[1].used_bytes, 4096u);
}

}  // namespace
}  // namespace polder::test
