// A processor and a GPU in one context, over the tests' own libcuda (tests/driver/fake_cuda): programs become PTX, which it interprets.
// Over the real library, the GPU executes them.
#include "support/command_buffer.h"
#include "support/images.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fake_cuda.h>
#include <string>
#include <thread>

// For the leak sanitizer: the process whose GPU is lost ends with what the test has made.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

// Null when it is the real library.
template <class Function>
Function of_library(const char* name) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function>(library ? dlsym(library, name) : nullptr);
}

class FakeCuda : public CommandBuffers {
protected:
    void SetUp() override {
        CommandBuffers::SetUp();
        ASSERT_EQ(devices.size(), 2u);
        gpu = devices[1];
        on_gpu = make_queue(gpu);
    }
    template <class T>
    T of_gpu(cl_device_info name) {
        T value{};
        EXPECT_EQ(clGetDeviceInfo(gpu, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    std::string text_of_gpu(cl_device_info name) {
        std::string text(8192, '\0');
        size_t size = 0;
        EXPECT_EQ(clGetDeviceInfo(gpu, name, text.size(), text.data(), &size), CL_SUCCESS);
        text.resize(size - 1);
        return text;
    }
    cl_device_id gpu = nullptr;
    OwnedQueue on_gpu;
};

TEST_F(FakeCuda, CommandBuffers_AreRecordedAndReplayedBesideTheProcessorsOwn) {
    const cl_uint seven = 7;
    std::vector<OwnedQueue> queues;
    std::vector<OwnedCommandBuffer> buffers;
    OwnedKernel add = with("add", a, 5), twice = with("twice", a, b);
    for (const cl_device_id device : devices) {
        queues.push_back(make_queue(device));
        buffers.push_back(make(queues.back(), CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR));
        cl_command_buffer_khr buffer = buffers.back();
        ASSERT_EQ(record(buffer, add), CL_SUCCESS);
        ASSERT_EQ(record_barrier(buffer), CL_SUCCESS);
        ASSERT_EQ(record(buffer, twice), CL_SUCCESS);
        ASSERT_EQ(record_copy(buffer, b, a, {0, bytes / 2, bytes / 2}), CL_SUCCESS);
        ASSERT_EQ(record_fill(buffer, b, seven, sizeof seven), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    }
    cl_uint low = 1, high = 1;
    for (int round = 0; round < 3; ++round)
        for (const OwnedCommandBuffer& buffer : buffers) {
            OwnedEvent done;
            ASSERT_EQ(enqueue(buffer, done.out()), CL_SUCCESS);
            ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
            low += 5;
            high = 2 * low;
            std::vector<cl_uint> expected(count, low);
            std::fill(expected.begin() + count / 2, expected.end(), high);
            EXPECT_EQ(read<cl_uint>(a, count, queues[0]), expected);
            EXPECT_EQ(read<cl_uint>(b, 1, queues[0])[0], seven);
        }
}

TEST_F(FakeCuda, ACommandBuffer_ThatIsUpdated_ExecutesTheNewArguments) {
    OwnedKernel add = with("add", a, 5);
    cl_mutable_command_khr command = nullptr;
    OwnedCommandBuffer buffer = make_mutable(on_gpu, add, command);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    const cl_uint hundred = 100;
    ASSERT_EQ(update_argument(buffer, command, {1, sizeof hundred, &hundred}), CL_SUCCESS);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count, on_gpu), std::vector<cl_uint>(count, 106));
}

TEST_F(FakeCuda, ACommandBuffer_CopiesAndFillsSharedVirtualMemory) {
    auto* const memory = static_cast<cl_uint*>(clSVMAlloc(context, CL_MEM_READ_WRITE, 64 * sizeof(cl_uint), 0));
    ASSERT_NE(memory, nullptr);
    std::fill_n(memory, 64, 1u);
    const cl_uint five = 5;
    OwnedCommandBuffer buffer = make(on_gpu);
    EXPECT_EQ(functions().SvmFill(buffer, nullptr, nullptr, memory, &five, sizeof five, 16 * sizeof five, 0, nullptr,
                                  nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(functions().SvmCopy(buffer, nullptr, nullptr, memory + 32, memory, 32 * sizeof five, 0, nullptr, nullptr,
                                  nullptr),
              CL_SUCCESS);
    // Memory that the device does not share with the host.
    cl_uint plain = 0;
    EXPECT_EQ(functions().SvmFill(buffer, nullptr, nullptr, &plain, &five, sizeof five, sizeof five, 0, nullptr,
                                  nullptr, nullptr),
              CL_INVALID_VALUE);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        ASSERT_EQ(clFinish(on_gpu), CL_SUCCESS);
        for (size_t i = 0; i < 64; ++i)
            EXPECT_EQ(memory[i], i % 32 < 16 ? 5u : 1u) << i;
        std::fill_n(memory, 64, 1u);
    }
    clSVMFree(context, memory);
}

TEST_F(FakeCuda, TheGpu_IsADeviceOfOpenCL31WithSubGroupsOf32) {
    EXPECT_EQ(of_gpu<cl_version>(CL_DEVICE_NUMERIC_VERSION), CL_MAKE_VERSION(3, 1, 0));
    EXPECT_EQ(text_of_gpu(CL_DEVICE_VERSION).rfind("OpenCL 3.1 ", 0), 0u);
    constexpr cl_device_info sub_group_sizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
    EXPECT_EQ(of_gpu<size_t>(sub_group_sizes), 32u);
    EXPECT_EQ(of_gpu<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS), of_gpu<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE) / 32);
    EXPECT_EQ(of_gpu<cl_bool>(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS), CL_TRUE);
    std::string host(8192, '\0');
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_EXTENSIONS, host.size(), host.data(), nullptr), CL_SUCCESS);
    const std::string has = " " + text_of_gpu(CL_DEVICE_EXTENSIONS) + " ";
    size_t found = 0;
    for (size_t at = host.find("subgroup"); at != std::string::npos; at = host.find("subgroup", at + 1)) {
        const size_t begin = host.rfind(' ', at) + 1;
        const std::string name = host.substr(begin, host.find_first_of(std::string(" \0", 2), at) - begin);
        EXPECT_NE(has.find(" " + name + " "), std::string::npos) << name;
        ++found;
    }
    EXPECT_GE(found, 13u);
    EXPECT_NE(has.find(" cl_khr_subgroups "), std::string::npos);
}

TEST_F(FakeCuda, SubGroupsOfAKernel_AreWarps) {
    OwnedKernel kernel = make_kernel(program, "add");
    const auto ask = [&](cl_kernel_sub_group_info name, std::vector<size_t> input) {
        size_t value = 0;
        EXPECT_EQ(clGetKernelSubGroupInfo(kernel, gpu, name, input.size() * sizeof(size_t), input.data(), sizeof value,
                                          &value, nullptr),
                  CL_SUCCESS);
        return value;
    };
    EXPECT_EQ(ask(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, {100, 2}), 32u);
    EXPECT_EQ(ask(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, {5, 2}), 10u);
    EXPECT_EQ(ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, {100, 2}), 7u);
    EXPECT_EQ(ask(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, {4}), 128u);
    EXPECT_EQ(ask(CL_KERNEL_MAX_NUM_SUB_GROUPS, {}), 32u);
}

TEST_F(FakeCuda, ARequiredSubGroupSize_IsThatOfAWarp) {
    for (const unsigned size : {32u, 16u}) {
        const std::string source = "kernel __attribute__((intel_reqd_sub_group_size(" + std::to_string(size) +
                                   "))) void add(global uint* a, uint v) { a[get_global_id(0)] += v; }";
        const char* text = source.c_str();
        OwnedProgram made = clCreateProgramWithSource(context, 1, &text, nullptr, nullptr);
        ASSERT_TRUE(made);
        EXPECT_EQ(clBuildProgram(made, 1, &devices[0], "", nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clBuildProgram(made, 1, &gpu, "", nullptr, nullptr),
                  size == 32 ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE);
        char log[1024] = {};
        EXPECT_EQ(clGetProgramBuildInfo(made, gpu, CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr), CL_SUCCESS);
        EXPECT_EQ(std::strstr(log, "requires sub-groups of 16") != nullptr, size == 16) << log;
    }
}

TEST_F(FakeCuda, AKernel_MayHaveMoreLocalMemoryThanProgramsPlanWith) {
    EXPECT_EQ(of_gpu<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE), cl_ulong{48} << 10);
    const char* const source =
        "kernel void own(global uint* a, uint v) { local uint s[100 << 8]; size_t l = get_local_id(0);"
        "  s[l * 800] = v + l; barrier(CLK_LOCAL_MEM_FENCE); a[l] = s[(31 - l) * 800]; }"
        "kernel void given(global uint* a, uint v, local uint* s) { size_t l = get_local_id(0);"
        "  s[l * 800] = v + l; barrier(CLK_LOCAL_MEM_FENCE); a[l] = s[(31 - l) * 800]; }";
    OwnedProgram made = clCreateProgramWithSource(context, 1, const_cast<const char**>(&source), nullptr, nullptr);
    ASSERT_EQ(clBuildProgram(made, 1, &gpu, "", nullptr, nullptr), CL_SUCCESS);
    const size_t items = 32;
    for (const char* const name : {"own", "given"}) {
        OwnedKernel kernel = make_kernel(made, name);
        const cl_uint v = name[0];
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), a.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof v, &v), CL_SUCCESS);
        const auto launch = [&] {
            return clEnqueueNDRangeKernel(on_gpu, kernel, 1, nullptr, &items, &items, 0, nullptr, nullptr);
        };
        if (name[0] == 'g') {
            ASSERT_EQ(clSetKernelArg(kernel, 2, (228 << 10) + 1, nullptr), CL_SUCCESS);
            EXPECT_EQ(launch(), CL_OUT_OF_RESOURCES);
            ASSERT_EQ(clSetKernelArg(kernel, 2, 200 << 10, nullptr), CL_SUCCESS);
        }
        ASSERT_EQ(launch(), CL_SUCCESS);
        std::vector<cl_uint> expected(items);
        for (cl_uint i = 0; i < items; ++i)
            expected[i] = v + 31 - i;
        EXPECT_EQ(read<cl_uint>(a, items, on_gpu), expected) << name;
    }
}

// Its bytes are a storage like a buffer's, which moves between the devices; its argument is a descriptor.
TEST_F(FakeCuda, AnImage_IsAnArgumentOnTheGpuAndOnTheProcessor) {
    EXPECT_EQ(of_gpu<cl_bool>(CL_DEVICE_IMAGE_SUPPORT), cl_bool{CL_TRUE});
    EXPECT_EQ(of_gpu<cl_uint>(CL_DEVICE_MAX_READ_IMAGE_ARGS), 128u);
    const char* const source =
        "kernel void invert(read_only image2d_t from, sampler_t s, write_only image2d_t to, global uint* seen) {"
        "  int x = get_global_id(0); for (int y = 0; y < get_image_height(from); ++y)"
        "    write_imageui(to, (int2)(x, y), 255 - read_imageui(from, s, (int2)(x, y)));"
        "  seen[0] = get_image_width(from); }";
    OwnedProgram made = clCreateProgramWithSource(context, 1, const_cast<const char**>(&source), nullptr, nullptr);
    ASSERT_EQ(clBuildProgram(made, 0, nullptr, "-cl-std=CL3.0", nullptr, nullptr), CL_SUCCESS);
    constexpr size_t width = 12, height = 5;
    std::vector<cl_uint> pixels(width * height);
    for (size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = static_cast<cl_uint>(i * 0x01020304u);
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc shape = describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1});
    OwnedMem from = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &shape, pixels.data(), nullptr);
    OwnedMem to = clCreateImage(context, 0, &format, &shape, nullptr, nullptr);
    OwnedMem seen = clCreateBuffer(context, 0, 7 * sizeof(cl_uint), nullptr, nullptr);
    OwnedSampler sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, nullptr);
    OwnedKernel kernel = make_kernel(made, "invert");
    const OwnedQueue on_cpu = make_queue(devices[0]);
    // There and back: twice inverted.
    for (cl_command_queue each : {static_cast<cl_command_queue>(on_gpu), static_cast<cl_command_queue>(on_cpu)}) {
        cl_uint index = 0;
        const auto set = [&](auto handle) {
            EXPECT_EQ(clSetKernelArg(kernel, index++, sizeof handle, &handle), CL_SUCCESS);
        };
        set(static_cast<cl_mem>(from));
        set(static_cast<cl_sampler>(sampler));
        set(static_cast<cl_mem>(to));
        set(static_cast<cl_mem>(seen));
        ASSERT_EQ(clEnqueueNDRangeKernel(each, kernel, 1, nullptr, &width, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        const size_t origin[3] = {}, region[3] = {width, height, 1};
        std::vector<cl_uint> found(pixels.size());
        ASSERT_EQ(clEnqueueReadImage(each, to, CL_TRUE, origin, region, 0, 0, found.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        for (cl_uint& pixel : pixels)
            pixel = ~pixel;
        EXPECT_EQ(found, pixels);
        std::swap(from, to);
        EXPECT_EQ(read<cl_uint>(seen, 1, on_gpu)[0], width);
    }
}

// A kernel object is enough for another thread to make the PTX and to load it; the first launch loads nothing more.
TEST_F(FakeCuda, CodeIsLoadedBeforeTheFirstLaunch) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "with one processor, nothing is made ahead";
    const auto calls = of_library<fake_cuda::CountCalls>("fake_cuda_calls");
    const auto found = [&] { return calls ? calls("cuModuleGetFunction") : 0; };
    OwnedProgram early = build("kernel void add(global uint* a, uint v) { a[get_global_id(0)] += v; } // early");
    const uint64_t before = found();
    OwnedKernel kernel = make_kernel(early, "add");
    for (int i = 0; calls && i < 60000 && found() == before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(!calls || found() == before + 1);
    // The kernel is kept after the call.
    std::this_thread::sleep_for(std::chrono::milliseconds(calls ? 50 : 500));
    const cl_uint five = 5;
    const cl_mem buffer = a;
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof five, &five), CL_SUCCESS);
    const std::vector<cl_uint> old = read<cl_uint>(a, count, on_gpu);
    const size_t all = count;
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(clEnqueueNDRangeKernel(on_gpu, kernel, 1, nullptr, &all, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    std::vector<cl_uint> expected = old;
    for (cl_uint& value : expected)
        value += 2 * five;
    EXPECT_EQ(read<cl_uint>(a, count, on_gpu), expected);
    EXPECT_TRUE(!calls || found() == before + 1);
}

// CUDA loses the GPU for the whole process: nothing of it hangs, and the processor works on, in this context and in others.
TEST_F(FakeCuda, AKernelThatTraps_FailsWhatTheGpuDoesAndNothingElse) {
    const auto fails_on = [](cl_command_queue on, cl_kernel kernel) {
        OwnedEvent event;
        const size_t one = 1;
        if (clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &one, nullptr, 0, nullptr, event.out()) != CL_SUCCESS)
            return true;
        const bool waited = clWaitForEvents(1, event.in()) == CL_SUCCESS;
        cl_int status = CL_QUEUED;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return !waited && status < 0;
    };
    // In a process of its own: a lost GPU stays lost.
    const auto body = [&] {
        OwnedProgram wild = build("kernel void trap(ulong at) { *(global uint*)at = 1; }");
        OwnedKernel trap = make_kernel(wild, "trap"), add = with("add", a, 5), add_to_b = with("add", b, 5);
        const cl_ulong nowhere = 64;
        EXPECT_EQ(clSetKernelArg(trap, 0, sizeof nowhere, &nowhere), CL_SUCCESS);
        const OwnedContext other_context =
            clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, nullptr);
        OwnedQueue other_gpu = clCreateCommandQueueWithProperties(other_context, gpu, nullptr, nullptr);
        OwnedQueue other_cpu = clCreateCommandQueueWithProperties(other_context, devices[0], nullptr, nullptr);
        OwnedMem other = clCreateBuffer(other_context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr);
        const size_t all = count;
        // The processor has bytes of `a`, too, and the queues between the two exist.
        OwnedQueue on_cpu = make_queue(devices[0]);
        OwnedMem twice_a = make_buffer(bytes);
        OwnedKernel twice = with("twice", a, twice_a);
        for (int i = 0; i < 3; ++i)
            if (clEnqueueNDRangeKernel(on_gpu, add, 1, nullptr, &all, nullptr, 0, nullptr, nullptr) != CL_SUCCESS ||
                clFinish(on_gpu) != CL_SUCCESS ||
                clEnqueueNDRangeKernel(on_cpu, twice, 1, nullptr, &all, nullptr, 0, nullptr, nullptr) != CL_SUCCESS ||
                clFinish(on_cpu) != CL_SUCCESS)
                return 12;
        if (clEnqueueNDRangeKernel(on_gpu, add, 1, nullptr, &all, nullptr, 0, nullptr, nullptr) != CL_SUCCESS ||
            clFinish(on_gpu) != CL_SUCCESS)
            return 1;
        if (!fails_on(on_gpu, trap))
            return 2;
        if (!fails_on(on_gpu, add))
            return 3;
        const cl_uint seven = 7;
        OwnedEvent filled;
        if (clEnqueueFillBuffer(other_gpu, other, &seven, sizeof seven, 0, bytes, 0, nullptr, filled.out()) ==
                CL_SUCCESS &&
            clWaitForEvents(1, filled.in()) == CL_SUCCESS)
            return 4;
        std::vector<cl_uint> found(count);
        // The newest bytes were on the GPU.
        if (clEnqueueReadBuffer(on_gpu, a, CL_TRUE, 0, bytes, found.data(), 0, nullptr, nullptr) == CL_SUCCESS)
            return 5;
        for (int i = 0; i < 3; ++i)
            if (!fails_on(on_cpu, twice))
                return 9;
        cl_int mapped = CL_SUCCESS;
        static_cast<void>(clEnqueueMapBuffer(on_cpu, a, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr, &mapped));
        if (mapped == CL_SUCCESS)
            return 10;
        OwnedEvent moved;
        if (clEnqueueMigrateMemObjects(on_cpu, 1, a.in(), CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, moved.out()) ==
                CL_SUCCESS &&
            clWaitForEvents(1, moved.in()) == CL_SUCCESS)
            return 11;
        if (clEnqueueNDRangeKernel(on_cpu, add_to_b, 1, nullptr, &all, nullptr, 0, nullptr, nullptr) != CL_SUCCESS ||
            read<cl_uint>(b, count, on_cpu) != std::vector<cl_uint>(count, 5))
            return 6;
        OwnedMem fresh = clCreateBuffer(other_context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr);
        if (clEnqueueFillBuffer(other_cpu, fresh, &seven, sizeof seven, 0, bytes, 0, nullptr, nullptr) != CL_SUCCESS ||
            read<cl_uint>(fresh, count, other_cpu) != std::vector<cl_uint>(count, 7))
            return 8;
        return 7;
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::exit(body()), testing::ExitedWithCode(7), "is lost: .*CUDA_ERROR_ILLEGAL_ADDRESS");
}

// The GPU's own sign that a command is complete never comes. No thread waits for the command. Another queue's commands, behind it, fail too.
TEST_F(FakeCuda, AKernelThatTraps_IsReportedToCallbacksAndToThreadsThatPoll) {
    for (const bool polls : {false, true}) {
        const auto body = [&] {
            OwnedProgram wild = build("kernel void trap(ulong at) { *(global uint*)at = 1; }");
            OwnedKernel trap = make_kernel(wild, "trap");
            const cl_ulong nowhere = 64;
            EXPECT_EQ(clSetKernelArg(trap, 0, sizeof nowhere, &nowhere), CL_SUCCESS);
            OwnedQueue second = make_queue(gpu);
            OwnedEvent event, behind;
            const size_t one = 1;
            if (clEnqueueNDRangeKernel(on_gpu, trap, 1, nullptr, &one, nullptr, 0, nullptr, event.out()) !=
                    CL_SUCCESS ||
                clEnqueueMarkerWithWaitList(second, 1, event.in(), behind.out()) != CL_SUCCESS)
                return 1;
            std::atomic<int> failures{0};
            const auto count_failure = [](cl_event, cl_int status, void* counter) {
                if (status < 0)
                    ++*static_cast<std::atomic<int>*>(counter);
            };
            const cl_event both[] = {event, behind};
            for (const cl_event each : both)
                if (!polls && clSetEventCallback(each, CL_COMPLETE, count_failure, &failures) != CL_SUCCESS)
                    return 2;
            if (clFlush(on_gpu) != CL_SUCCESS || clFlush(second) != CL_SUCCESS)
                return 3;
            const auto has_failed = [](cl_event each) {
                cl_int status = CL_QUEUED;
                clGetEventInfo(each, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
                return status < 0;
            };
            while (polls ? !has_failed(event) || !has_failed(behind) : failures != 2)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return 7;
        };
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        EXPECT_EXIT(std::exit(body()), testing::ExitedWithCode(7), "is lost: .*CUDA_ERROR_ILLEGAL_ADDRESS");
    }
}

TEST_F(FakeCuda, MoreWorkGroupsThanPtxCounts_AreRefused) {
    OwnedKernel add = with("add", a, 1);
    // Nothing executes: the event fails.
    const OwnedEvent never = make_user_event();
    const auto launch = [&](size_t items, size_t local, cl_event* event) {
        return clEnqueueNDRangeKernel(on_gpu, add, 1, nullptr, &items, &local, 1, never.in(), event);
    };
    constexpr size_t groups_max = 0xffffffff;
    OwnedEvent most, more;
    EXPECT_EQ(launch(groups_max, 1, most.out()), CL_SUCCESS);
    EXPECT_EQ(launch(2 * groups_max, 2, more.out()), CL_SUCCESS);
    EXPECT_EQ(launch(groups_max + 1, 1, nullptr), CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(launch(2 * groups_max + 2, 2, nullptr), CL_INVALID_GLOBAL_WORK_SIZE);
    const size_t far[] = {1, 1, groups_max + 1}, ones[] = {1, 1, 1};
    EXPECT_EQ(clEnqueueNDRangeKernel(on_gpu, add, 3, nullptr, far, ones, 1, never.in(), nullptr),
              CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(clSetUserEventStatus(never, -1), CL_SUCCESS);
    EXPECT_EQ(clFinish(on_gpu), CL_SUCCESS);
}

}  // namespace
}  // namespace polder::test
