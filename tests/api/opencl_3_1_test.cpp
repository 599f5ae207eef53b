// What OpenCL 3.1 adds to 3.0: the versions, the functions and queries that it made mandatory, OpenCL C 3.1, local arguments
// without memory. Its appendix E lists them.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <cstring>

namespace polder::test {
namespace {

// Constants of the headers since 3.1.
constexpr cl_device_info max_work_group_sizes = 0x1005;
constexpr cl_device_info spirv_extended_instruction_sets = 0x12B9;
constexpr cl_device_info spirv_extensions = 0x12BA;
constexpr cl_device_info spirv_capabilities = 0x12BB;

class OpenCL31 : public ContextTest {
protected:
    template <class T>
    std::vector<T> device_list(cl_device_id device, cl_device_info name) {
        size_t size = 0;
        EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size), CL_SUCCESS) << std::hex << name;
        std::vector<T> list(size / sizeof(T));
        EXPECT_EQ(clGetDeviceInfo(device, name, size, list.data(), nullptr), CL_SUCCESS) << std::hex << name;
        return list;
    }

    std::string device_text(cl_device_id device, cl_device_info name) {
        const auto text = device_list<char>(device, name);
        return text.empty() ? "" : text.data();
    }

    std::vector<std::string> device_names(cl_device_id device, cl_device_info name) {
        const auto list = device_list<const char*>(device, name);
        return {list.begin(), list.end()};
    }

    bool has_device_queues(cl_device_id device) {
        return device_list<cl_device_device_enqueue_capabilities>(device, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES).at(0) &
               CL_DEVICE_QUEUE_SUPPORTED;
    }

    std::string platform_extensions() {
        size_t size = 0;
        EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS, 0, nullptr, &size), CL_SUCCESS);
        std::string text(size, '\0');
        EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS, size, text.data(), nullptr), CL_SUCCESS);
        return " " + text.substr(0, text.find('\0')) + " ";
    }

    // Runs the program's kernel `k` with one buffer of integers as its first argument; the others have to be set.
    std::vector<cl_int> run(cl_kernel kernel, size_t count, cl_command_queue on) {
        OwnedMem out = make_buffer(count * sizeof(cl_int));
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_int>(out, count, on);
    }
};

bool contains(const std::vector<std::string>& names, const char* name) {
    return std::ranges::find(names, name) != names.end();
}

TEST_F(OpenCL31, VersionsAgree) {
    char text[64] = {};
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_VERSION, sizeof text, text, nullptr), CL_SUCCESS);
    EXPECT_EQ(std::string{text}.substr(0, 18), "OpenCL 3.1 Polder ");
    cl_version version = 0;
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_NUMERIC_VERSION, sizeof version, &version, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(version, cl_version{CL_MAKE_VERSION(3, 1, 0)});
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_text(device, CL_DEVICE_VERSION).substr(0, 18), "OpenCL 3.1 Polder ");
        EXPECT_EQ(device_list<cl_version>(device, CL_DEVICE_NUMERIC_VERSION),
                  std::vector<cl_version>{CL_MAKE_VERSION(3, 1, 0)});
        std::vector<cl_version> languages;
        for (const cl_name_version& language : device_list<cl_name_version>(device, CL_DEVICE_OPENCL_C_ALL_VERSIONS)) {
            EXPECT_STREQ(language.name, "OpenCL C");
            languages.push_back(language.version);
        }
        // Every device has all optional features of OpenCL C but queues on the device (decision 170).
        std::vector<cl_version> expected{CL_MAKE_VERSION(1, 0, 0), CL_MAKE_VERSION(1, 1, 0), CL_MAKE_VERSION(1, 2, 0)};
        const bool is_complete = has_device_queues(device);
        if (is_complete)
            expected.push_back(CL_MAKE_VERSION(2, 0, 0));
        expected.insert(expected.end(), {CL_MAKE_VERSION(3, 0, 0), CL_MAKE_VERSION(3, 1, 0)});
        EXPECT_EQ(languages, expected);
        EXPECT_EQ(device_text(device, CL_DEVICE_OPENCL_C_VERSION),
                  is_complete ? "OpenCL C 3.1 Polder" : "OpenCL C 1.2 Polder");
        const cl_version newest = is_complete ? CL_MAKE_VERSION(3, 1, 0) : CL_MAKE_VERSION(1, 2, 0);
        EXPECT_EQ(device_list<cl_version>(device, CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR),
                  std::vector<cl_version>{newest});
    }
    build("#if __OPENCL_C_VERSION__ != 120\n#error without -cl-std, programs still are OpenCL C 1.2\n#endif\n");
}

TEST_F(OpenCL31, MandatoryExtensionsAndFeaturesAreReported) {
    for (const cl_device_id device : devices) {
        const std::string extensions = " " + device_text(device, CL_DEVICE_EXTENSIONS) + " ";
        for (const std::string name :
             {"cl_khr_device_uuid", "cl_khr_extended_bit_ops", "cl_khr_integer_dot_product", "cl_khr_spirv_queries",
              "cl_khr_subgroup_extended_types", "cl_khr_subgroup_rotate", "cl_khr_subgroup_shuffle",
              "cl_khr_subgroup_shuffle_relative", "cl_khr_suggested_local_work_size"})
            EXPECT_NE(extensions.find(" " + name + " "), std::string::npos) << name;
        EXPECT_GE(device_list<cl_uint>(device, CL_DEVICE_MAX_NUM_SUB_GROUPS).at(0), 1u);
        EXPECT_TRUE(device_list<cl_device_integer_dot_product_capabilities_khr>(
                        device, CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR)
                        .at(0) &
                    CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR);
        EXPECT_EQ(device_list<size_t>(device, max_work_group_sizes).size(), 3u);
        const std::string il = device_text(device, CL_DEVICE_IL_VERSION);
        for (const char* name : {"SPIR-V_1.0", "SPIR-V_1.1", "SPIR-V_1.2", "SPIR-V_1.3", "SPIR-V_1.4"})
            EXPECT_NE(il.find(name), std::string::npos) << name;
    }
}

// Applications look for an extension in the platform's list before they ask for its functions.
TEST_F(OpenCL31, PlatformReportsWhatAllDevicesHave) {
    const std::string of_platform = platform_extensions();
    for (const std::string name : {"cl_ext_image_requirements_info", "cl_ext_image_from_buffer", "cl_khr_depth_images",
                                   "cl_khr_subgroup_shuffle", "cl_khr_spirv_queries"})
        EXPECT_NE(of_platform.find(" " + name + " "), std::string::npos) << name;
}

TEST_F(OpenCL31, SpirvQueriesNameWhatModulesMayDeclare) {
    for (const cl_device_id device : devices) {
        EXPECT_TRUE(contains(device_names(device, spirv_extended_instruction_sets), "OpenCL.std"));
        const std::vector<std::string> extensions = device_names(device, spirv_extensions);
        // Mandatory for OpenCL 3.1.
        for (const char* name : {"SPV_KHR_bit_instructions", "SPV_KHR_integer_dot_product", "SPV_KHR_subgroup_rotate",
                                 "SPV_KHR_linkonce_odr", "SPV_KHR_no_integer_wrap_decoration"})
            EXPECT_TRUE(contains(extensions, name)) << name;
        const auto capabilities = device_list<cl_uint>(device, spirv_capabilities);
        // Addresses, Float64, Int64, Int16, Int8, Linkage, Kernel, Vector16, Groups, GenericPointer, SubgroupDispatch,
        // GroupNonUniformShuffle and …ShuffleRelative, BitInstructions, DotProduct, …Input4x8BitPacked, …RotateKHR.
        for (const cl_uint number :
             {4u, 10u, 11u, 22u, 39u, 5u, 6u, 7u, 18u, 38u, 58u, 65u, 66u, 6025u, 6019u, 6018u, 6026u})
            EXPECT_EQ(std::ranges::count(capabilities, number), 1) << number;
        EXPECT_EQ(std::ranges::count(capabilities, 9u), 1) << "Float16";
        const bool has_float_atomics =
            device_text(device, CL_DEVICE_EXTENSIONS).find("cl_ext_float_atomics") != std::string::npos;
        // AtomicFloat16AddEXT and …MinMaxEXT.
        for (const cl_uint number : {6095u, 5616u})
            EXPECT_EQ(std::ranges::count(capabilities, number), has_float_atomics ? 1 : 0) << number;
        // Shader is another environment's.
        EXPECT_EQ(std::ranges::count(capabilities, 1u), 0);
    }
}

TEST_F(OpenCL31, SpirvQueriesReportTooSmallASize) {
    char* names[1];
    cl_uint number = 0;
    for (const cl_device_info name : {spirv_extensions, spirv_extended_instruction_sets})
        EXPECT_EQ(clGetDeviceInfo(devices[0], name, sizeof names[0] - 1, static_cast<void*>(names), nullptr),
                  CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceInfo(devices[0], spirv_capabilities, sizeof number, &number, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetDeviceInfo(foreign_handle<cl_device_id>(context), spirv_capabilities, 0, nullptr, nullptr),
              CL_INVALID_DEVICE);
}

TEST_F(OpenCL31, SuggestedLocalSizeHasItsCoreNameAndPlace) {
    const auto core = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSize"));
    const auto khr = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    ASSERT_NE(core, nullptr);
    ASSERT_NE(khr, nullptr);
    // A loader of 3.1 calls through the place behind those of 3.0, of which there are 149.
    void* const* table = nullptr;
    std::memcpy(&table, static_cast<cl_context>(context), sizeof table);
    constexpr size_t place_of_3_1 = 149;
    EXPECT_EQ(table[place_of_3_1], reinterpret_cast<void*>(core));

    OwnedProgram program = build("kernel void k(global int* out) { out[get_global_id(0)] = (int)get_local_size(0); }");
    OwnedKernel kernel = make_kernel(program, "k");
    const size_t size = 96, none = 0, far = ~size_t{0};
    size_t one = 0, other = 0;
    EXPECT_EQ(core(queue, kernel, 1, nullptr, &size, &one), CL_INVALID_KERNEL_ARGS);
    const std::vector<cl_int> used = run(kernel, size, queue);  // releases the buffer, which is no error of the query
    ASSERT_EQ(core(queue, kernel, 1, nullptr, &size, &one), CL_SUCCESS);
    ASSERT_EQ(khr(queue, kernel, 1, nullptr, &size, &other), CL_SUCCESS);
    EXPECT_EQ(one, other);
    EXPECT_EQ(used, std::vector<cl_int>(size, static_cast<cl_int>(one)));
    EXPECT_EQ(core(foreign_handle<cl_command_queue>(context), kernel, 1, nullptr, &size, &one),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(core(queue, foreign_handle<cl_kernel>(context), 1, nullptr, &size, &one), CL_INVALID_KERNEL);
    EXPECT_EQ(core(queue, kernel, 0, nullptr, &size, &one), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(core(queue, kernel, 4, nullptr, &size, &one), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(core(queue, kernel, 1, nullptr, nullptr, &one), CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(core(queue, kernel, 1, nullptr, &none, &one), CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(core(queue, kernel, 1, &far, &size, &one), CL_INVALID_GLOBAL_OFFSET);
    EXPECT_EQ(core(queue, kernel, 1, nullptr, &size, nullptr), CL_INVALID_VALUE);
}

// The launch reports a buffer that was released after it was set; the query does not need it.
TEST_F(OpenCL31, SuggestedLocalSizeReportsNoReleasedBuffer) {
    int reports = 0;
    const auto count = [](const char*, const void*, size_t, void* user) { ++*static_cast<int*>(user); };
    cl_int error = CL_INVALID_VALUE;
    context = clCreateContext(nullptr, 1, devices.data(), count, &reports, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedQueue on = make_queue(devices[0]);
    const OwnedProgram program = build("kernel void k(global int* out) { out[get_global_id(0)] = 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    {
        const OwnedMem released = make_buffer(64);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), released.in()), CL_SUCCESS);
    }
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    const size_t size = 16;
    size_t local = 0;
    EXPECT_EQ(suggest(on, kernel, 1, nullptr, &size, &local), CL_SUCCESS);
    EXPECT_EQ(reports, 0);
    EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
    EXPECT_EQ(reports, 1);
}

TEST_F(OpenCL31, LocalArgumentsMayHaveNoMemory) {
    OwnedProgram program = build(R"(
        kernel void k(global int* out, local int* none, local int* some, uint count) {
            if (count) none[get_local_id(0)] = 1;
            some[get_local_id(0)] = (int)get_global_id(0);
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = some[get_local_id(0)];
        })");
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedKernel kernel = make_kernel(program, "k");
        const cl_uint count = 0;
        ASSERT_EQ(clSetKernelArg(kernel, 1, 0, nullptr), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 2, 64 * sizeof(cl_int), nullptr), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 3, sizeof count, &count), CL_SUCCESS);
        cl_ulong used = 0;
        ASSERT_EQ(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof used, &used, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(used, 64 * sizeof(cl_int));
        const std::vector<cl_int> out = run(kernel, 64, on);
        for (int i = 0; i < 64; ++i)
            EXPECT_EQ(out[static_cast<size_t>(i)], i);
        // The size may change between launches; a value still is an error.
        EXPECT_EQ(clSetKernelArg(kernel, 1, 16, nullptr), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, 0, nullptr), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, 0, &count), CL_INVALID_ARG_VALUE);
    }
}

TEST_F(OpenCL31, LanguageHasItsMacrosAndFunctions) {
    // No #pragma and no look at the extensions' macros: in OpenCL C 3.1 the functions are there.
    OwnedProgram program = build(R"(
        #if __OPENCL_C_VERSION__ != 310 || CL_VERSION_3_1 != 310 || __OPENCL_VERSION__ != 310
        #error "the macros of OpenCL C 3.1"
        #endif
        kernel void k(global int* out) {
            const uint lane = get_sub_group_local_id(), size = get_sub_group_size();
            const int i = (int)get_global_id(0);
            out[i] = bitfield_extract_signed(bitfield_insert(0, -3, 4u, 8u), 4u, 8u) + (int)bit_reverse(0x80000000u)
                   + dot((char4)(1, 2, 3, 4), (char4)(1, 1, 1, 1)) + dot_4x8packed_uu_uint(0x01010101u, 0x02020202u)
                   + (sub_group_rotate(i, 1) == sub_group_shuffle(i, (lane + 1) % size) ? 100 : 0)
                   + (sub_group_shuffle_up(i, 0) == i ? 1000 : 0)
                   + (sub_group_broadcast((char2)(5, 6), 0).y == 6 ? 10000 : 0);
        })",
                                 "-cl-std=CL3.1 -Werror");
    OwnedKernel kernel = make_kernel(program, "k");
    for (const cl_device_id device : devices)
        EXPECT_EQ(run(kernel, 64, make_queue(device)), std::vector<cl_int>(64, -3 + 1 + 10 + 8 + 11100));
    // The version of the platform, not of the language.
    build("#if __OPENCL_C_VERSION__ != 300 || defined(CL_VERSION_3_1) || __OPENCL_VERSION__ != 310\n#error\n#endif\n",
          "-cl-std=CL3.0");
}

// Reported as a version, so what it makes mandatory has to be there without a look at features.
TEST_F(OpenCL31, ProgramsOfOpenCLC2_0HaveAllThatItMakesMandatory) {
    if (!std::ranges::all_of(devices, [&](cl_device_id device) { return has_device_queues(device); }))
        GTEST_SKIP() << "a device does not report OpenCL C 2.0";
    OwnedProgram program = build(R"(
        #if __OPENCL_C_VERSION__ != 200
        #error "the version"
        #endif
        global atomic_int count = ATOMIC_VAR_INIT(5);
        int first(const int* p) { return p[0]; }
        kernel void pass(read_only pipe int in, write_only pipe int out, read_write image2d_t image, write_only image3d_t volume) {
            int word;
            if (read_pipe(in, &word) == 0)
                write_pipe(out, &word);
            write_imagef(image, (int2)(0), read_imagef(image, (int2)(1)));
            write_imagef(volume, (int4)(0), (float4)(1));
        }
        kernel void k(global int* out) {
            local int here;
            int mine = 2;
            here = 3;
            work_group_barrier(CLK_LOCAL_MEM_FENCE);
            const int sum = work_group_reduce_add(1);
            if (get_global_id(0) == 0) {
                atomic_fetch_add_explicit(&count, 1, memory_order_acq_rel, memory_scope_all_svm_devices);
                out[1] = first(&here) + 10 * first(&mine) + 100 * atomic_load(&count);
                out[2] = sum;
                enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{ out[3] = 7; });
            }
            if (get_global_id(0) == 0)
                out[0] = -1;
        })",
                                 "-cl-std=CL2.0 -Werror");
    OwnedKernel kernel = make_kernel(program, "k");
    const cl_queue_properties on_device[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0};
    for (const cl_device_id device : devices) {
        cl_int error = CL_INVALID_VALUE;
        OwnedQueue on_the_device = clCreateCommandQueueWithProperties(context, device, on_device, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(run(kernel, 4, make_queue(device)), (std::vector<cl_int>{-1, 623, 4, 7}));
    }
}

TEST_F(OpenCL31, PrintfTakesSizesAndDifferences) {
    OwnedProgram program = build(R"(
        kernel void k(global int* out) {
            const size_t size = 0x123456789abcdeful;
            const ptrdiff_t difference = -5000000000l;
            printf("<%zu %zx %td %ti %#zX %-4zd|>\n", size, size, difference, difference, size, (size_t)7);
            out[get_global_id(0)] = 0;
        })",
                                 "-cl-std=CL3.1 -Werror");
    OwnedKernel kernel = make_kernel(program, "k");
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        testing::internal::CaptureStdout();
        run(kernel, 1, on);
        EXPECT_EQ(testing::internal::GetCapturedStdout(),
                  "<81985529216486895 123456789abcdef -5000000000 -5000000000 0X123456789ABCDEF 7   |>\n");
    }
}

// Drivers that collect what kernels print keep more than the characters: Khronos' suite prints 16,384 times up to five of them.
TEST_F(OpenCL31, PrintfOfManyWorkItemsLosesNothing) {
    OwnedProgram program = build("kernel void k(global int* out) { printf(\"%c\", 'x'); out[get_global_id(0)] = 0; }");
    OwnedKernel kernel = make_kernel(program, "k");
    constexpr size_t items = 33000;
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        testing::internal::CaptureStdout();
        run(kernel, items, on);
        run(kernel, 2, on);
        EXPECT_EQ(testing::internal::GetCapturedStdout().size(), items + 2);
    }
}

}  // namespace
}  // namespace polder::test
