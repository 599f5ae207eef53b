#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>

namespace polder::test {
namespace {

using Devices = ContextTest;

template <class T>
T device_value(cl_device_id device, cl_device_info name) {
    T value{};
    size_t size = 0;
    EXPECT_EQ(clGetDeviceInfo(device, name, sizeof value, &value, &size), CL_SUCCESS) << std::hex << name;
    EXPECT_EQ(size, sizeof value) << std::hex << name;
    return value;
}

template <class T>
std::vector<T> device_list(cl_device_id device, cl_device_info name) {
    size_t size = 0;
    EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size), CL_SUCCESS) << std::hex << name;
    std::vector<T> values(size / sizeof(T));
    EXPECT_EQ(clGetDeviceInfo(device, name, size, values.data(), nullptr), CL_SUCCESS) << std::hex << name;
    return values;
}

std::string device_text(cl_device_id device, cl_device_info name) {
    const std::vector<char> text = device_list<char>(device, name);
    EXPECT_FALSE(text.empty());
    return text.empty() ? "" : text.data();
}

// Programs distinguish devices by name and version, and cache compiled code under these.
TEST_F(Devices, NamesDistinguishDevicesAndProcessors) {
    std::vector<std::string> names;
    for (const cl_device_id device : devices) {
        // GPUs have their model's name; code for one runs on others of the model.
        if (!is_gpu(device))
            names.push_back(device_text(device, CL_DEVICE_NAME));
        const std::string version = device_text(device, CL_DRIVER_VERSION);
        EXPECT_NE(version.find(" build "), std::string::npos) << version;
    }
    if (device_value<cl_device_type>(devices[0], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) {
        EXPECT_NE(names[0].find("model "), std::string::npos) << names[0];
    }
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << names.back();
}

TEST_F(Devices, IdsReportEveryBadArgument) {
    cl_device_id found = nullptr;
    cl_uint count = 0;
    EXPECT_EQ(clGetDeviceIDs(foreign_handle<cl_platform_id>(context), CL_DEVICE_TYPE_ALL, 1, &found, &count),
              CL_INVALID_PLATFORM);
    EXPECT_EQ(clGetDeviceIDs(platform(), 0, 1, &found, &count), CL_INVALID_DEVICE_TYPE);
    EXPECT_EQ(clGetDeviceIDs(platform(), 1u << 20, 1, &found, &count), CL_INVALID_DEVICE_TYPE);
    EXPECT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, &found, &count), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 1, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_CUSTOM, 1, &found, &count), CL_DEVICE_NOT_FOUND);
}

TEST_F(Devices, DefaultIsTheFirst) {
    cl_device_id found = nullptr;
    cl_uint count = 0;
    ASSERT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_DEFAULT, 1, &found, &count), CL_SUCCESS);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(found, devices[0]);
}

TEST_F(Devices, QueriesReportEveryBadArgument) {
    cl_uint value = 0;
    EXPECT_EQ(clGetDeviceInfo(foreign_handle<cl_device_id>(context), CL_DEVICE_MAX_COMPUTE_UNITS, sizeof value, &value,
                              nullptr),
              CL_INVALID_DEVICE);
    EXPECT_EQ(clGetDeviceInfo(devices[0], 0x1, sizeof value, &value, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_COMPUTE_UNITS, 1, &value, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_COMPUTE_UNITS, 0, nullptr, nullptr), CL_SUCCESS);
}

TEST_F(Devices, EveryQueryOfOpenCL3Answers) {
    std::vector<cl_device_info> names;
    for (cl_device_info name = CL_DEVICE_TYPE; name <= CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED; ++name)
        names.push_back(name);
    // Numbers without a query, or of extensions that the device does not have.
    for (const cl_device_info gap : {0x102F + 5, 0x105F + 0xB, 0x106A, 0x106B, 0x106C, 0x106D, 0x106E})
        std::erase(names, static_cast<cl_device_info>(gap));
    for (const cl_device_info name : names)
        for (const cl_device_id device : devices) {
            size_t size = 0;
            EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size), CL_SUCCESS) << std::hex << name;
        }
}

TEST_F(Devices, LimitsAreAtLeastThoseOfTheSpecification) {
    for (const cl_device_id device : devices) {
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
        EXPECT_EQ(device_value<cl_uint>(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS), 3u);
        for (const size_t size : device_list<size_t>(device, CL_DEVICE_MAX_WORK_ITEM_SIZES))
            EXPECT_GE(size, 1u);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE), 1u);
        const cl_ulong global = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
        const cl_ulong one = device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
        EXPECT_GE(one, std::max<cl_ulong>(global / 4, 32 << 20));
        EXPECT_LE(one, global);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_MAX_PARAMETER_SIZE), 1024u);
        EXPECT_GE(device_value<cl_ulong>(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE), 64u << 10);
        // Constant memory, which should be fast to read, is less than all memory.
        EXPECT_LE(device_value<cl_ulong>(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE), 4u << 20);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_CONSTANT_ARGS), 8u);
        EXPECT_GE(device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE), 32u << 10);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_PRINTF_BUFFER_SIZE), 1u << 20);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN), 1024u);
        const auto single = device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
        EXPECT_EQ(single & (CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN),
                  cl_device_fp_config{CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN});
        EXPECT_EQ(device_value<cl_bool>(device, CL_DEVICE_AVAILABLE), cl_bool{CL_TRUE});
        EXPECT_EQ(device_value<cl_platform_id>(device, CL_DEVICE_PLATFORM), platform());
        EXPECT_EQ(device_text(device, CL_DEVICE_VERSION).substr(0, 11), "OpenCL 3.1 ");
        EXPECT_EQ(device_text(device, CL_DEVICE_OPENCL_C_VERSION).substr(0, 9), "OpenCL C ");
    }
}

// OpenCL 3.1, table "Device Queries": the least values of a full profile.
TEST_F(Devices, LimitsOfImagesAreAtLeastThoseOfTheSpecification) {
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_value<cl_bool>(device, CL_DEVICE_IMAGE_SUPPORT), cl_bool{CL_TRUE});
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_READ_IMAGE_ARGS), 128u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_WRITE_IMAGE_ARGS), 64u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS), 64u);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_IMAGE2D_MAX_WIDTH), 16384u);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_IMAGE2D_MAX_HEIGHT), 16384u);
        for (const cl_device_info extent :
             {CL_DEVICE_IMAGE3D_MAX_WIDTH, CL_DEVICE_IMAGE3D_MAX_HEIGHT, CL_DEVICE_IMAGE3D_MAX_DEPTH})
            EXPECT_GE(device_value<size_t>(device, extent), 2048u);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE), 65536u);
        EXPECT_GE(device_value<size_t>(device, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE), 2048u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_SAMPLERS), 16u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT), 1u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT), 1u);
    }
}

TEST_F(Devices, PipesHaveTheLimitsOfTheSpecification) {
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_value<cl_bool>(device, CL_DEVICE_PIPE_SUPPORT), cl_bool{CL_TRUE});
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_MAX_PIPE_ARGS), 16u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS), 1u);
        EXPECT_GE(device_value<cl_uint>(device, CL_DEVICE_PIPE_MAX_PACKET_SIZE), 1024u);
    }
}

TEST_F(Devices, ExtensionsNeedNoneThatIsMissing) {
    for (const cl_device_id device : devices) {
        const std::string text = device_text(device, CL_DEVICE_EXTENSIONS);
        std::string names;
        for (const cl_name_version& entry : device_list<cl_name_version>(device, CL_DEVICE_EXTENSIONS_WITH_VERSION))
            names += (names.empty() ? "" : " ") + std::string(entry.name);
        EXPECT_EQ(names, text);
        // Those that OpenCL 1.1 has made part of the core.
        for (const char* name : {"cl_khr_byte_addressable_store", "cl_khr_global_int32_base_atomics",
                                 "cl_khr_global_int32_extended_atomics", "cl_khr_local_int32_base_atomics",
                                 "cl_khr_local_int32_extended_atomics"})
            EXPECT_NE(text.find(name), std::string::npos) << name;
    }
}

// AMD's query of free memory, in KiB: all of it and the largest block. Programs use it without asking for the extension; some have room for
// the first number only.
TEST_F(Devices, FreeMemoryHasOneNumberOrTwo) {
    constexpr cl_device_info free_memory = 0x4039;  // CL_DEVICE_GLOBAL_FREE_MEMORY_AMD
    for (const cl_device_id device : devices) {
        const std::vector<size_t> both = device_list<size_t>(device, free_memory);
        ASSERT_EQ(both.size(), 2u);
        EXPECT_GT(both[0], 0u);
        EXPECT_LE(both[0], device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE) / 1024);
        EXPECT_LE(both[1], both[0]);
        size_t one[2] = {0, 7}, size = 0;
        EXPECT_EQ(clGetDeviceInfo(device, free_memory, sizeof one[0], one, &size), CL_SUCCESS);
        EXPECT_EQ(size, sizeof one[0]);
        EXPECT_GT(one[0], 0u);
        EXPECT_EQ(one[1], 7u);
        EXPECT_EQ(clGetDeviceInfo(device, free_memory, sizeof one[0] / 2, one, &size), CL_INVALID_VALUE);
    }
}

// cl_amd_device_attribute_query is not reported: programs take a device that reports it for one of AMD. The rest of its queries, which
// describe parts of AMD's GPUs, are invalid.
TEST_F(Devices, NoneIsTakenForOneOfAmd) {
    constexpr cl_device_info free_memory = 0x4039, firsts[] = {0x4030, 0x4040}, numbers = 16;
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_text(device, CL_DEVICE_EXTENSIONS).find("cl_amd_"), std::string::npos);
        for (const cl_device_info first : firsts)
            for (cl_device_info name = first; name < first + numbers; ++name) {
                size_t size = 0;
                EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size),
                          name == free_memory ? CL_SUCCESS : CL_INVALID_VALUE)
                    << std::hex << name;
            }
    }
}

TEST_F(Devices, RootDevicesAreNotCounted) {
    EXPECT_EQ(clRetainDevice(devices[0]), CL_SUCCESS);
    EXPECT_EQ(clReleaseDevice(devices[0]), CL_SUCCESS);
    EXPECT_EQ(clReleaseDevice(devices[0]), CL_SUCCESS);
    EXPECT_EQ(device_value<cl_uint>(devices[0], CL_DEVICE_REFERENCE_COUNT), 1u);
    EXPECT_EQ(clRetainDevice(foreign_handle<cl_device_id>(context)), CL_INVALID_DEVICE);
    EXPECT_EQ(clReleaseDevice(foreign_handle<cl_device_id>(context)), CL_INVALID_DEVICE);
}

TEST_F(Devices, TimersAdvanceTogether) {
    cl_ulong device_before = 0, host_before = 0, host_after = 0;
    ASSERT_EQ(clGetDeviceAndHostTimer(devices[0], &device_before, &host_before), CL_SUCCESS);
    ASSERT_EQ(clGetHostTimer(devices[0], &host_after), CL_SUCCESS);
    EXPECT_GE(host_after, host_before);
    EXPECT_EQ(clGetDeviceAndHostTimer(foreign_handle<cl_device_id>(context), &device_before, &host_before),
              CL_INVALID_DEVICE);
    EXPECT_EQ(clGetDeviceAndHostTimer(devices[0], nullptr, &host_before), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceAndHostTimer(devices[0], &device_before, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetHostTimer(foreign_handle<cl_device_id>(context), &host_after), CL_INVALID_DEVICE);
    EXPECT_EQ(clGetHostTimer(devices[0], nullptr), CL_INVALID_VALUE);
}

class SubDevices : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        for (const cl_device_id device : devices)
            if (device_value<cl_uint>(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) > 1)
                parent = device;
        if (!parent)
            GTEST_SKIP() << "no device can be partitioned";
        units = device_value<cl_uint>(parent, CL_DEVICE_MAX_COMPUTE_UNITS);
    }
    cl_int partition(const std::vector<cl_device_partition_property>& properties, cl_uint room = 0) {
        made.assign(room, nullptr);
        return clCreateSubDevices(parent, properties.data(), room, room ? made.data() : nullptr, &count);
    }
    cl_device_id parent = nullptr;
    cl_uint units = 0;
    cl_uint count = 0;
    std::vector<cl_device_id> made;
};

TEST_F(SubDevices, CreationReportsEveryBadArgument) {
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    EXPECT_EQ(clCreateSubDevices(foreign_handle<cl_device_id>(context), equally, 0, nullptr, &count),
              CL_INVALID_DEVICE);
    EXPECT_EQ(clCreateSubDevices(parent, nullptr, 0, nullptr, &count), CL_INVALID_VALUE);
    EXPECT_EQ(partition({0x7777, 1, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 0, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, units + 1, 0}), CL_INVALID_DEVICE_PARTITION_COUNT);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 1, 0}, 1), CL_INVALID_VALUE);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, 0, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, -1, 0, 0}), CL_INVALID_DEVICE_PARTITION_COUNT);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, units + 1, 0, 0}), CL_INVALID_DEVICE_PARTITION_COUNT);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, units, 1, 0, 0}), CL_INVALID_DEVICE_PARTITION_COUNT);
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, 0x7777, 0}), CL_INVALID_VALUE);
}

TEST_F(SubDevices, EquallyMakesAsManyAsFit) {
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 1, 0}), CL_SUCCESS);
    EXPECT_EQ(count, units);
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 1, 0}, units), CL_SUCCESS);
    for (const cl_device_id device : made) {
        EXPECT_EQ(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
        EXPECT_EQ(device_value<cl_device_id>(device, CL_DEVICE_PARENT_DEVICE), parent);
        EXPECT_EQ(device_list<cl_device_partition_property>(device, CL_DEVICE_PARTITION_TYPE),
                  (std::vector<cl_device_partition_property>{CL_DEVICE_PARTITION_EQUALLY, 1, 0}));
        EXPECT_EQ(device_value<cl_uint>(device, CL_DEVICE_REFERENCE_COUNT), 1u);
        EXPECT_EQ(clRetainDevice(device), CL_SUCCESS);
        EXPECT_EQ(device_value<cl_uint>(device, CL_DEVICE_REFERENCE_COUNT), 2u);
        EXPECT_EQ(clReleaseDevice(device), CL_SUCCESS);
        EXPECT_EQ(clReleaseDevice(device), CL_SUCCESS);
        EXPECT_EQ(clReleaseDevice(device), CL_INVALID_DEVICE);
    }
}

TEST_F(SubDevices, ByCountsGivesTheCounts) {
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, 1, units - 1, 0, 0}, 2), CL_SUCCESS);
    EXPECT_EQ(device_value<cl_uint>(made[0], CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
    EXPECT_EQ(device_value<cl_uint>(made[1], CL_DEVICE_MAX_COMPUTE_UNITS), units - 1);
    for (const cl_device_id device : made)
        EXPECT_EQ(clReleaseDevice(device), CL_SUCCESS);
}

// SYCL's OpenCL adapter ends the counts and leaves out the zero that ends the properties.
TEST_F(SubDevices, NothingIsReadBehindTheEndOfTheCounts) {
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0x7777}, 2),
              CL_SUCCESS);
    for (const cl_device_id device : made) {
        EXPECT_EQ(device_list<cl_device_partition_property>(device, CL_DEVICE_PARTITION_TYPE),
                  (std::vector<cl_device_partition_property>{CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, 0, 0}));
        EXPECT_EQ(clReleaseDevice(device), CL_SUCCESS);
    }
}

TEST_F(SubDevices, KernelsRunOnThem) {
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_BY_COUNTS, 1, 0, 0}, 1), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    context.reset();
    queue.reset();
    context = clCreateContext(nullptr, 1, made.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    devices = made;
    queue = make_queue(made[0]);
    OwnedProgram program = build("kernel void seven(global int* out) { out[get_global_id(0)] = 7; }");
    OwnedKernel kernel = make_kernel(program, "seven");
    OwnedMem buffer = make_buffer(64 * sizeof(cl_int));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    const size_t size = 64;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 64), std::vector<cl_int>(64, 7));
    EXPECT_EQ(clReleaseDevice(made[0]), CL_SUCCESS);
}

TEST_F(SubDevices, ArePartitionedNoFurtherThanTheyCan) {
    ASSERT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 1, 0}, units), CL_SUCCESS);
    const cl_device_partition_property again[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 0, 0};
    EXPECT_EQ(clCreateSubDevices(made[0], again, 0, nullptr, &count), CL_DEVICE_PARTITION_FAILED);
    EXPECT_EQ(clCreateSubDevices(made[0], counts, 0, nullptr, &count), CL_DEVICE_PARTITION_FAILED);
    EXPECT_EQ(device_list<cl_device_partition_property>(made[0], CL_DEVICE_PARTITION_PROPERTIES),
              (std::vector<cl_device_partition_property>{0}));
    for (const cl_device_id device : made)
        EXPECT_EQ(clReleaseDevice(device), CL_SUCCESS);
    // More parts than there can be.
    std::vector<cl_device_partition_property> many = {CL_DEVICE_PARTITION_BY_COUNTS};
    many.insert(many.end(), device_value<cl_uint>(parent, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) + 1, 1);
    many.insert(many.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
    EXPECT_EQ(partition(many), CL_INVALID_DEVICE_PARTITION_COUNT);
    // A list that does not end.
    EXPECT_EQ(partition({CL_DEVICE_PARTITION_EQUALLY, 1, CL_DEVICE_PARTITION_EQUALLY, 1, 0}), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace polder::test
