// A device of another OpenCL implementation in one context with ours: POCL_DEVICES="cpu proxy".
#include "support/images.h"

#include <CL/cl_icd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <numeric>
#include <string_view>

namespace polder::test {
namespace {

// The first platform of the implementation behind the proxy, used without Polder.
cl_platform_id platform_there() {
    const std::string_view parameters = std::getenv("POCL_PROXY0_PARAMETERS");
    void* const library = dlopen(std::string(parameters.substr(std::string_view("icd=").size())).c_str(), RTLD_NOW);
    const auto find = [&](const char* name) { return library ? dlsym(library, name) : nullptr; };
    void* get = find("clIcdGetPlatformIDsKHR");
    if (void* const by_name = get ? nullptr : find("clGetExtensionFunctionAddress"))
        get = reinterpret_cast<cl_api_clGetExtensionFunctionAddress>(by_name)("clIcdGetPlatformIDsKHR");
    cl_platform_id platform = nullptr;
    if (get)
        reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(get)(1, &platform, nullptr);
    return platform;
}

// What the implementation compiles there.
std::vector<unsigned char> binary_made_there(const char* source) {
    const cl_platform_id platform = platform_there();
    const cl_icd_dispatch& cl = **reinterpret_cast<const cl_icd_dispatch* const*>(platform);
    cl_device_id device = nullptr;
    EXPECT_EQ(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                                0};
    cl_int error = 1;
    const cl_context context = cl.clCreateContext(properties, 1, &device, nullptr, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    const cl_program program = cl.clCreateProgramWithSource(context, 1, &source, nullptr, &error);
    EXPECT_EQ(cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr), CL_SUCCESS);
    size_t size = 0;
    EXPECT_EQ(cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), CL_SUCCESS);
    std::vector<unsigned char> bytes(size);
    unsigned char* place = bytes.data();
    EXPECT_EQ(cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, static_cast<void*>(&place), nullptr),
              CL_SUCCESS);
    cl.clReleaseProgram(program);
    cl.clReleaseContext(context);
    return bytes;
}

class Proxy : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu proxy\"";
        foreign = make_queue(devices[1], CL_QUEUE_PROFILING_ENABLE);
    }

    std::string device_text(cl_device_id device, cl_device_info name) {
        size_t size = 0;
        EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size), CL_SUCCESS);
        std::string text(size, '\0');
        EXPECT_EQ(clGetDeviceInfo(device, name, size, text.data(), nullptr), CL_SUCCESS);
        text.resize(size - 1);
        return text;
    }
    std::string log_of(cl_program program, cl_device_id device) {
        std::array<char, 8192> log{};
        EXPECT_EQ(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr),
                  CL_SUCCESS);
        return log.data();
    }
    template <class... Arguments>
    void set(cl_kernel kernel, const Arguments&... arguments) {
        cl_uint index = 0;
        const auto set_one = [&](const auto& argument) {
            EXPECT_EQ(clSetKernelArg(kernel, index++, sizeof argument, &argument), CL_SUCCESS);
        };
        (set_one(arguments), ...);
    }
    void run(cl_command_queue on, cl_kernel kernel, size_t items, const size_t* local = nullptr,
             cl_event* event = nullptr) {
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, local, 0, nullptr, event), CL_SUCCESS);
    }

    OwnedQueue foreign;
};

TEST_F(Proxy, ReportsOnlyWhatPassesThrough) {
    const std::string extensions = " " + device_text(devices[1], CL_DEVICE_EXTENSIONS) + " ";
    EXPECT_NE(extensions.find(" cl_khr_byte_addressable_store "), std::string::npos);
    EXPECT_NE(extensions.find(" cl_polder_memory_statistics "), std::string::npos);
    for (const char* const absent : {" cl_khr_subgroups ", " cl_khr_initialize_memory ", " cl_khr_icd "})
        EXPECT_EQ(extensions.find(absent), std::string::npos) << absent;
    cl_bool images = CL_FALSE;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, nullptr), CL_SUCCESS);
    EXPECT_EQ(images, cl_bool{CL_TRUE});
    cl_device_svm_capabilities svm = 1;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
    EXPECT_EQ(svm, 0u);
    cl_ulong memory = 0;
    cl_ulong largest = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, nullptr), CL_SUCCESS);
    EXPECT_GT(largest, 0u);
    EXPECT_LE(largest, memory);
}

TEST_F(Proxy, ABufferIsChangedByBothDevicesInTurns) {
    constexpr size_t count = 100'000;
    const OwnedProgram program = build("kernel void add(global int* data, int value) {"
                                       " data[get_global_id(0)] += value; }");
    const OwnedKernel kernel = make_kernel(program, "add");
    const OwnedMem buffer = make_buffer(count * 4);
    std::vector<cl_int> expected(count);
    std::iota(expected.begin(), expected.end(), 0);
    write(buffer, expected);
    cl_int total = 0;
    for (cl_int turn = 1; turn <= 9; ++turn) {
        const cl_mem handle = buffer;
        set(kernel, handle, turn);
        run(turn % 2 ? foreign : queue, kernel, count);
        EXPECT_EQ(clFinish(turn % 2 ? foreign : queue), CL_SUCCESS);
        total += turn;
    }
    for (cl_int& value : expected)
        value += total;
    EXPECT_EQ(read<cl_int>(buffer, count), expected);
    EXPECT_EQ(read<cl_int>(buffer, count, foreign), expected);
}

TEST_F(Proxy, ArgumentsOfEveryKindArrive) {
    const OwnedProgram program = build(R"(
typedef struct { int a; float b; } Pair;
kernel void all_kinds(global int* out, constant int* table, Pair pair, char small, float3 vector, local int* first,
                local int* second, global int* absent) {
    const int i = get_local_id(0);
    first[i] = table[i] + pair.a + small;
    second[i] = (int)(pair.b + vector.x + vector.z);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int other = get_local_size(0) - 1 - i;
    out[get_global_id(0)] = first[other] * 1000 + second[other] + (absent ? 500 : 0);
})");
    const OwnedKernel kernel = make_kernel(program, "all_kinds");
    constexpr size_t items = 64;
    const OwnedMem out = make_buffer(items * 4);
    const OwnedMem table = make_buffer(16 * 4);
    std::vector<cl_int> numbers(16);
    std::iota(numbers.begin(), numbers.end(), 1);
    write(table, numbers);
    struct {
        cl_int a = 3;
        cl_float b = 1.5f;
    } const pair;
    const cl_float4 vector{{2.5f, 100.0f, 3.0f, 0.0f}};
    const cl_char small = -2;
    const cl_mem handles[] = {out, table};
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), &handles[0]), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), &handles[1]), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof pair, &pair), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 3, sizeof small, &small), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 4, sizeof vector, &vector), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 7, sizeof(cl_mem), nullptr), CL_SUCCESS);
    const size_t local = 16;
    std::vector<cl_int> expected;
    for (size_t i = 0; i < items; ++i)
        expected.push_back((numbers[15 - i % 16] + 1) * 1000 + 7);
    for (const size_t locals : {size_t{16}, size_t{16}, size_t{64}}) {
        EXPECT_EQ(clSetKernelArg(kernel, 5, locals * 4, nullptr), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 6, locals * 4, nullptr), CL_SUCCESS);
        run(foreign, kernel, items, &local);
        EXPECT_EQ(read<cl_int>(out, items, foreign), expected);
    }
}

TEST_F(Proxy, SubBuffersBeginWhereTheyAreCut) {
    cl_uint bits = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr), CL_SUCCESS);
    const size_t part_bytes = bits / 8;
    const OwnedMem whole = make_buffer(4 * part_bytes);
    write(whole, std::vector<cl_char>(4 * part_bytes, 0));
    const cl_buffer_region region{2 * part_bytes, part_bytes};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem part = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedProgram program = build("kernel void fill(global char* data) { data[get_global_id(0)] = 7; }");
    const OwnedKernel kernel = make_kernel(program, "fill");
    const cl_mem handle = part;
    set(kernel, handle);
    run(foreign, kernel, part_bytes);
    const std::vector<cl_char> seen = read<cl_char>(whole, 4 * part_bytes);
    for (size_t i = 0; i < seen.size(); ++i)
        ASSERT_EQ(seen[i], i / part_bytes == 2 ? 7 : 0) << i;
}

TEST_F(Proxy, ProgramsAreCompiledAndLinkedInParts) {
    const OwnedProgram header = from_source("#define AMOUNT 40\n");
    const OwnedProgram library = from_source("#include \"amount.h\"\nint more(int x) { return x + AMOUNT; }");
    const OwnedProgram user = from_source("int more(int x);\n"
                                          "kernel void k(global int* out) { out[0] = more(EXTRA); }");
    const cl_program headers[] = {header};
    const char* const names[] = {"amount.h"};
    ASSERT_EQ(clCompileProgram(library, 0, nullptr, "", 1, headers, const_cast<const char**>(names), nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clCompileProgram(user, 0, nullptr, "-DEXTRA=2", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    const cl_program inputs[] = {library, user};
    cl_int error = CL_INVALID_VALUE;
    const OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 2, inputs, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS) << log_of(linked, devices[1]);
    const OwnedKernel kernel = make_kernel(linked, "k");
    const OwnedMem out = make_buffer(4);
    const cl_mem handle = out;
    set(kernel, handle);
    for (const cl_command_queue on : {static_cast<cl_command_queue>(foreign), static_cast<cl_command_queue>(queue)}) {
        run(on, kernel, 1);
        EXPECT_EQ(read<cl_int>(out, 1, on)[0], 42);
        write(out, std::vector<cl_int>{0}, on);
    }
}

TEST_F(Proxy, ABinaryOfPolderHoldsTheSource) {
    const OwnedProgram program = build("kernel void k(global int* out) { out[get_global_id(0)] = 5; }");
    std::array<size_t, 2> sizes{};
    ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes.data(), nullptr), CL_SUCCESS);
    std::array<std::vector<unsigned char>, 2> bytes;
    std::array<unsigned char*, 2> places{};
    for (size_t i = 0; i < 2; ++i) {
        bytes[i].resize(sizes[i]);
        places[i] = bytes[i].data();
    }
    ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof places, places.data(), nullptr), CL_SUCCESS);
    const unsigned char* binaries[] = {places[0], places[1]};
    cl_int error = CL_INVALID_VALUE;
    const OwnedProgram again =
        clCreateProgramWithBinary(context, 2, devices.data(), sizes.data(), binaries, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(again, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(again, "k");
    const OwnedMem out = make_buffer(16);
    const cl_mem handle = out;
    set(kernel, handle);
    run(foreign, kernel, 4);
    EXPECT_EQ(read<cl_int>(out, 4), std::vector<cl_int>(4, 5));
}

TEST_F(Proxy, ABinaryOfTheImplementationRunsInAContextWithOurs) {
    constexpr size_t items = 64;
    const std::vector<unsigned char> bytes = binary_made_there(
        "kernel void every_kind(global int* out, constant int* table, local int* first, int more, float4 vector,"
        " ulong number, uchar small) {"
        " const int i = get_local_id(0);"
        " first[i] = table[i] + more + small;"
        " barrier(CLK_LOCAL_MEM_FENCE);"
        " out[get_global_id(0)] = first[get_local_size(0) - 1 - i] + (int)(vector.x + vector.w)"
        " + (int)number; }");
    cl_int status = 1;
    cl_int error = 1;
    const OwnedProgram program = from_binary(devices[1], bytes, &status, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(program, "every_kind");
    const OwnedMem out = make_buffer(items * 4);
    const OwnedMem table = make_buffer(16 * 4);
    std::vector<cl_int> numbers(16);
    std::iota(numbers.begin(), numbers.end(), 1);
    write(table, numbers);  // by the processor
    const cl_mem handles[] = {out, table};
    const cl_int more = 100;
    const cl_float4 vector{{20, 0, 0, 3}};
    const cl_ulong number = 1000;
    const cl_uchar small = 7;
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), &handles[0]), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), &handles[1]), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 2, 16 * sizeof(cl_int), nullptr), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 3, sizeof more, &more), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 4, sizeof vector, &vector), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 5, sizeof number, &number), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 6, sizeof small, &small), CL_SUCCESS);
    const size_t local = 16;
    run(foreign, kernel, items, &local);
    std::vector<cl_int> expected;
    for (size_t i = 0; i < items; ++i)
        expected.push_back(numbers[15 - i % 16] + 1130);
    EXPECT_EQ(read<cl_int>(out, items), expected);
    // The processor does not take it.
    EXPECT_EQ(from_binary(devices[0], bytes, &status, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BINARY);
}

// The processor has the bytes of the image, and the other implementation's kernel gets them.
TEST_F(Proxy, ABinaryOfTheImplementationMayHaveImagesAndSamplers) {
    const std::vector<unsigned char> bytes = binary_made_there(
        "kernel void turn(read_only image2d_t from, write_only image2d_t to, sampler_t edges, int shift) {"
        " const int2 at = (int2)(get_global_id(0), get_global_id(1));"
        " write_imageui(to, at, read_imageui(from, edges, at + (int2)(shift, 0)).wzyx); }");
    cl_int status = 1;
    cl_int error = 1;
    const OwnedProgram program = from_binary(devices[1], bytes, &status, &error);
    if (error == CL_INVALID_BINARY)
        GTEST_SKIP() << "this implementation takes an image of any type";
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(program, "turn");
    constexpr size_t width = 8, height = 4;
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = width;
    description.image_height = height;
    const OwnedMem from = clCreateImage(context, 0, &format, &description, nullptr, nullptr);
    const OwnedMem to = clCreateImage(context, 0, &format, &description, nullptr, nullptr);
    const OwnedSampler edges = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &error);
    const cl_mem images[] = {from, to};
    const cl_sampler sampler = edges;
    const cl_int shift = 1;
    const cl_int taken = clSetKernelArg(kernel, 0, sizeof(cl_mem), &images[0]);
    if (taken == CL_INVALID_ARG_VALUE)
        GTEST_SKIP() << "this implementation does not distinguish images from values";
    ASSERT_EQ(taken, CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), &images[1]), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof sampler, &sampler), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 3, sizeof shift, &shift), CL_SUCCESS);
    std::vector<cl_uint> elements(width * height);
    for (size_t i = 0; i < elements.size(); ++i)
        elements[i] = static_cast<cl_uint>(i * 0x01020304u);
    const size_t origin[] = {0, 0, 0}, region[] = {width, height, 1}, global[] = {width, height};
    ASSERT_EQ(clEnqueueWriteImage(queue, from, CL_TRUE, origin, region, 0, 0, elements.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(foreign, kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    std::vector<cl_uint> seen(elements.size());
    ASSERT_EQ(clEnqueueReadImage(foreign, to, CL_TRUE, origin, region, 0, 0, seen.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    std::vector<cl_uint> expected(elements.size());
    for (size_t i = 0; i < elements.size(); ++i)
        expected[i] = __builtin_bswap32(elements[i % width + 1 < width ? i + 1 : i]);
    EXPECT_EQ(seen, expected);
}

TEST_F(Proxy, ErrorsOfSourceAreInTheBuildLogOfEachDevice) {
    const OwnedProgram program = from_source("kernel void k(global int* out) { out[0] = nonsense; }");
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    for (const cl_device_id device : devices)
        EXPECT_NE(log_of(program, device).find("nonsense"), std::string::npos);
}

TEST_F(Proxy, WhatKernelsPrintGoesThroughTheImplementation) {
    const OwnedProgram program = build(R"(kernel void tell(int value) { printf("proxy %d %s\n", value, "text"); })");
    const OwnedKernel kernel = make_kernel(program, "tell");
    const cl_int value = 41;
    set(kernel, value);
    testing::internal::CaptureStdout();
    run(foreign, kernel, 1);
    EXPECT_EQ(clFinish(foreign), CL_SUCCESS);
    std::fflush(stdout);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "proxy 41 text\n");
}

TEST_F(Proxy, ProfilingTimesAreInOrder) {
    const OwnedProgram program = build("kernel void k(global int* out) { out[get_global_id(0)] += 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    const OwnedMem out = make_buffer(4096 * 4);
    const cl_mem handle = out;
    set(kernel, handle);
    cl_ulong last_end = 0;
    for (int i = 0; i < 5; ++i) {
        OwnedEvent event;
        run(foreign, kernel, 4096, nullptr, event.out());
        ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
        std::array<cl_ulong, 4> times{};
        for (cl_uint t = 0; t < 4; ++t)
            ASSERT_EQ(
                clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + t, sizeof(cl_ulong), &times[t], nullptr),
                CL_SUCCESS);
        EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
        EXPECT_GE(times[2], last_end);
        last_end = times[3];
    }
}

TEST_F(Proxy, EventsOrderCommandsOfBothDevices) {
    constexpr int links = 200;
    const OwnedProgram program = build("kernel void advance(global int* value, int from) {"
                                       " if (value[0] == from) value[0] = from + 1; }");
    const OwnedKernel kernel = make_kernel(program, "advance");
    const OwnedMem value = make_buffer(4);
    write(value, std::vector<cl_int>{0});
    const OwnedQueue second = make_queue(devices[1]);
    const cl_command_queue on[] = {foreign, queue, second};
    std::vector<OwnedEvent> events;
    const OwnedEvent gate = make_user_event();
    for (int i = 0; i < links; ++i) {
        const cl_mem handle = value;
        set(kernel, handle, i);
        const cl_event before = i == 0 ? static_cast<cl_event>(gate) : static_cast<cl_event>(events.back());
        const size_t one = 1;
        OwnedEvent event;
        ASSERT_EQ(clEnqueueNDRangeKernel(on[i % 3], kernel, 1, nullptr, &one, nullptr, 1, &before, event.out()),
                  CL_SUCCESS);
        events.push_back(std::move(event));
    }
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, events.back().in()), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(value, 1)[0], links);
}

} // namespace
} // namespace polder::test
