// cl_ext_buffer_device_address: buffers whose addresses the application knows.
#include "support/fixture.h"

#include <CL/cl_ext_buffer_device_address.h>
#include <numeric>
#include <set>

namespace polder::test {
namespace {

constexpr const char* kernels = R"(
kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
kernel void follow(global ulong* table, int value) { ((global int*)table[0])[get_global_id(0)] += value; }
kernel void other(constant int* data, local int* scratch, int value) {}
)";

class DeviceAddress : public ContextTest {
protected:
    static constexpr size_t count = 1024;
    static constexpr size_t bytes = count * sizeof(cl_int);

    void SetUp() override {
        ContextTest::SetUp();
        program = build(kernels);
        set_pointer = reinterpret_cast<clSetKernelArgDevicePointerEXT_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clSetKernelArgDevicePointerEXT"));
        ASSERT_NE(set_pointer, nullptr);
    }
    OwnedMem make(cl_mem_flags flags = 0, void* host = nullptr, size_t size = bytes) {
        const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
        cl_int error = CL_INVALID_VALUE;
        cl_mem made = clCreateBufferWithProperties(context, properties, flags, size, host, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    std::vector<cl_mem_device_address_ext> addresses(cl_mem buffer) {
        std::vector<cl_mem_device_address_ext> values(devices.size());
        size_t size = 0;
        EXPECT_EQ(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, values.size() * sizeof values[0], values.data(),
                                     &size),
                  CL_SUCCESS);
        EXPECT_EQ(size, values.size() * sizeof values[0]);
        return values;
    }
    void add(cl_command_queue on, cl_mem_device_address_ext address, cl_int value, size_t items) {
        const OwnedKernel kernel = make_kernel(program, "add");
        ASSERT_EQ(set_pointer(kernel, 0, address), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
    }
    static std::vector<cl_int> numbers(cl_int first) {
        std::vector<cl_int> values(count);
        std::iota(values.begin(), values.end(), first);
        return values;
    }

    OwnedProgram program;
    clSetKernelArgDevicePointerEXT_fn set_pointer = nullptr;
};

TEST_F(DeviceAddress, EachDeviceHasAnAddressThatStays) {
    const OwnedMem buffer = make();
    const auto first = addresses(buffer);
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), devices.size());
    write(buffer, numbers(0));
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        EXPECT_EQ(read<cl_int>(buffer, count, on), numbers(0));
    }
    EXPECT_EQ(addresses(buffer), first);
    const cl_buffer_region region{512, 512};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (size_t i = 0; i < devices.size(); ++i)
        EXPECT_EQ(addresses(part)[i], first[i] + 512);
}

TEST_F(DeviceAddress, KernelsUseTheBytesWhereverTheyWereWrittenLast) {
    const OwnedMem buffer = make();
    const auto at = addresses(buffer);
    write(buffer, numbers(0));
    cl_int added = 0;
    for (int round = 0; round < 2; ++round)
        for (size_t i = 0; i < devices.size(); ++i) {
            const OwnedQueue on = make_queue(devices[i]);
            add(on, at[i], 1, count);
            ++added;
        }
    EXPECT_EQ(read<cl_int>(buffer, count), numbers(added));
    const OwnedQueue last = make_queue(devices.back());
    add(last, at.back() + 256 * sizeof(cl_int), 1000, 256);  // into the buffer
    std::vector<cl_int> expected = numbers(added);
    for (size_t i = 256; i < 512; ++i)
        expected[i] += 1000;
    EXPECT_EQ(read<cl_int>(buffer, count), expected);
}

TEST_F(DeviceAddress, KernelsFollowAddressesInMemoryThatTheyWereGiven) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        const OwnedMem buffer = make();
        const cl_mem_device_address_ext at = addresses(buffer)[i];
        const OwnedMem table = make_buffer(sizeof at, CL_MEM_READ_WRITE);
        write(table, std::vector{at});
        write(buffer, numbers(0));
        const OwnedKernel kernel = make_kernel(program, "follow");
        const cl_int value = 4;
        const size_t items = count;
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), table.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT, sizeof at, &at), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(buffer, count), numbers(4)) << i;
    }
}

TEST_F(DeviceAddress, MemoryOfTheHostAndOfSvmHasAddressesToo) {
    std::vector<cl_int> start = numbers(3);
    const OwnedMem copied = make(CL_MEM_COPY_HOST_PTR, start.data());
    EXPECT_EQ(read<cl_int>(copied, count), start);
    auto* const svm = static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0));
    ASSERT_NE(svm, nullptr);
    {
        const OwnedMem over = make(CL_MEM_USE_HOST_PTR, svm);
        EXPECT_EQ(addresses(over)[0], reinterpret_cast<uintptr_t>(svm));
        write(over, start);
        for (size_t i = 0; i < devices.size(); ++i) {
            const OwnedQueue on = make_queue(devices[i]);
            add(on, addresses(over)[i], 1, count);
        }
        EXPECT_EQ(read<cl_int>(over, count), numbers(3 + static_cast<cl_int>(devices.size())));
    }
    clSVMFree(context, svm);
}

TEST_F(DeviceAddress, AnArgumentOutlivesItsBuffer) {
    const OwnedKernel kernel = make_kernel(program, "add");
    const cl_int value = 1;
    {
        const OwnedMem buffer = make();
        ASSERT_EQ(set_pointer(kernel, 0, addresses(buffer)[0]), CL_SUCCESS);
    }
    const OwnedMem next = make();
    ASSERT_EQ(set_pointer(kernel, 0, addresses(next)[0]), CL_SUCCESS);
    write(next, numbers(0));
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    const size_t items = count;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(next, count), numbers(1));
}

TEST_F(DeviceAddress, PropertiesAndQueriesReportBadArguments) {
    const auto error_of = [&](const std::vector<cl_mem_properties>& properties) {
        cl_int error = CL_SUCCESS;
        const OwnedMem made = clCreateBufferWithProperties(context, properties.data(), 0, 64, nullptr, &error);
        return error;
    };
    const cl_mem_properties name = CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT;
    EXPECT_EQ(error_of({name, CL_TRUE, name, CL_TRUE, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({name, 2, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({1, CL_TRUE, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({name, CL_FALSE, 0}), CL_SUCCESS);
    const OwnedMem plain = make_buffer(64);
    cl_mem_device_address_ext value = 0;
    EXPECT_EQ(clGetMemObjectInfo(plain, CL_MEM_DEVICE_ADDRESS_EXT, sizeof value, &value, nullptr),
              CL_INVALID_OPERATION);
    const OwnedMem buffer = make();
    EXPECT_EQ(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, 1, &value, nullptr), CL_INVALID_VALUE);
    cl_mem_properties kept[3] = {1, 1, 1};
    ASSERT_EQ(clGetMemObjectInfo(buffer, CL_MEM_PROPERTIES, sizeof kept, kept, nullptr), CL_SUCCESS);
    EXPECT_EQ(kept[0], name);
    EXPECT_EQ(kept[1], cl_mem_properties{CL_TRUE});
    EXPECT_EQ(kept[2], 0u);
}

TEST_F(DeviceAddress, ArgumentsReportBadIndices) {
    const OwnedKernel kernel = make_kernel(program, "other");
    EXPECT_EQ(set_pointer(foreign_handle<cl_kernel>(context), 0, 0), CL_INVALID_KERNEL);
    for (const cl_uint index : {0u, 1u, 2u, 3u})  // constant, local, a value, none
        EXPECT_EQ(set_pointer(kernel, index, 0), CL_INVALID_ARG_INDEX) << index;
    const OwnedKernel add_kernel = make_kernel(program, "add");
    EXPECT_EQ(set_pointer(add_kernel, 0, 12345), CL_SUCCESS);  // as long as it is not followed
    const cl_mem_device_address_ext address = 0;
    EXPECT_EQ(clSetKernelExecInfo(add_kernel, CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT, 7, &address), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(add_kernel, CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT, 8, nullptr), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace polder::test
