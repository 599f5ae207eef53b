// A device of the tests' own OpenCL implementation in one context with ours: POCL_DEVICES="cpu proxy". It fails when a test
// wants it to.
#include "support/command_buffer.h"
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <CL/cl_ext_buffer_device_address.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fake_icd.h>
#include <find.h>
#include <polder/kernel_abi.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// For the leak sanitizer: a child ends with what its parent made, which it does not release.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

// kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
struct Add {
    cl_int* data;
    cl_int value;
    static void run(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                    std::byte*) {
        Add add;
        std::memcpy(&add, arguments, sizeof add);
        for (uint64_t i = 0; i < launch->local_size[0]; ++i)
            add.data[group[0] * launch->local_size[0] + i] += add.value;
    }
};
constexpr const char* add_source = "kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }";

class ProxyFake : public ContextTest {
protected:
    void SetUp() override {
        using Kind = driver::KernelParameter::Kind;
        const fake_icd::Kernel kernel{
            Add::run, 0, 0, {{Kind::global_pointer, 0, 8}, {Kind::value, offsetof(Add, value), 4}}};
        fake_icd::find<fake_icd::RegisterKernel>("fake_icd_register_kernel")("add", &kernel);
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu proxy\"";
        foreign = make_queue(devices[1]);
        program = build(add_source);
        buffer = make_buffer(count * sizeof(cl_int));
        write(buffer, std::vector<cl_int>(count, 0));
    }
    void TearDown() override {
        for (const std::string& call : failing)
            mend(call);
    }
    void fail_call(const std::string& call, cl_int code, int good = 0) {
        failing.push_back(call);
        fake_icd::find<fake_icd::Fail>("fake_icd_fail")(call.c_str(), code, good);
    }
    static void mend(const std::string& call) {
        fake_icd::find<fake_icd::Fail>("fake_icd_fail")(call.c_str(), CL_SUCCESS, 0);
    }
    static uint64_t calls(const char* call) { return fake_icd::find<fake_icd::Calls>("fake_icd_calls")(call); }

    cl_int add(cl_command_queue on, cl_int value, cl_event* event = nullptr, const cl_event* wait = nullptr) {
        return add_to(buffer, on, value, event, wait);
    }
    cl_int add_to(cl_mem target, cl_command_queue on, cl_int value, cl_event* event = nullptr,
                  const cl_event* wait = nullptr) {
        const OwnedKernel kernel = make_kernel(program, "add");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof target, &target), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        const size_t local = 64;
        return clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, &local, wait ? 1 : 0, wait, event);
    }
    static cl_int status_of(cl_event event) {
        static_cast<void>(clWaitForEvents(1, &event));
        cl_int status = CL_QUEUED;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return status;
    }
    std::string log_of(cl_program of, cl_device_id device) {
        char log[4096] = {};
        EXPECT_EQ(clGetProgramBuildInfo(of, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr), CL_SUCCESS);
        return log;
    }
    cl_build_status build_status(cl_program of, cl_device_id device) {
        cl_build_status status = CL_BUILD_NONE;
        EXPECT_EQ(clGetProgramBuildInfo(of, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return status;
    }
    [[nodiscard]] std::vector<cl_int> all(cl_int value) const { return std::vector<cl_int>(count, value); }

    static constexpr size_t count = 1024;
    OwnedQueue foreign;
    OwnedProgram program;
    OwnedMem buffer;
    std::vector<std::string> failing;
};

// --- programs ---

TEST_F(ProxyFake, HasNoPipes) {
    cl_bool pipes = CL_TRUE;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_PIPE_SUPPORT, sizeof pipes, &pipes, nullptr), CL_SUCCESS);
    EXPECT_EQ(pipes, cl_bool{CL_FALSE});
    cl_uint bytes = 1;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_PIPE_MAX_PACKET_SIZE, sizeof bytes, &bytes, nullptr), CL_SUCCESS);
    EXPECT_EQ(bytes, 0U);
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext alone = clCreateContext(nullptr, 1, &devices[1], nullptr, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clCreatePipe(alone, 0, 4, 4, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
}

TEST_F(ProxyFake, TheLogOfTheOtherCompilerIsTheBuildLogOfItsDevice) {
    const OwnedProgram refused = from_source("kernel void refused(global int* data) { data[0] = 1; }");
    EXPECT_EQ(clBuildProgram(refused, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(build_status(refused, devices[0]), CL_BUILD_SUCCESS);
    EXPECT_EQ(build_status(refused, devices[1]), CL_BUILD_ERROR);
    EXPECT_NE(log_of(refused, devices[1]).find("fake: this text is refused"), std::string::npos)
        << log_of(refused, devices[1]);
    EXPECT_EQ(log_of(refused, devices[0]).find("refused"), std::string::npos);
}

TEST_F(ProxyFake, KernelsThatTakeObjectsOfPolderAreRefusedForTheDevice) {
    const OwnedProgram with_sampler = from_source("kernel void k(sampler_t how, global int* data) { data[0] = 1; }");
    EXPECT_EQ(clBuildProgram(with_sampler, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(build_status(with_sampler, devices[1]), CL_BUILD_ERROR);
    EXPECT_FALSE(log_of(with_sampler, devices[1]).empty());
    const OwnedProgram with_image = from_source("kernel void k(read_only image2d_t from, global int* data) {"
                                                " data[0] = get_image_width(from); }");
    EXPECT_EQ(clBuildProgram(with_image, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(build_status(with_image, devices[0]), CL_BUILD_SUCCESS);
    EXPECT_EQ(build_status(with_image, devices[1]), CL_BUILD_ERROR);
}

// --- what the device does not have ---

TEST_F(ProxyFake, AddressesAndImagesAreNeitherReportedNorAccepted) {
    char extensions[4096] = {};
    ASSERT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, nullptr), CL_SUCCESS);
    for (const char* const absent : {"cl_ext_buffer_device_address", "cl_intel_unified_shared_memory", "image",
                                     "subgroup", "cl_khr_il_program", "cl_khr_int64_base_atomics"})
        EXPECT_EQ(std::strstr(extensions, absent), nullptr) << absent << " in " << extensions;
    for (const char* const offered : {"cl_khr_fp64", "cl_khr_command_buffer", "cl_polder_memory_statistics"})
        EXPECT_NE(std::strstr(extensions, offered), nullptr) << offered;
    cl_uint sub_groups = 1;
    EXPECT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_MAX_NUM_SUB_GROUPS, sizeof sub_groups, &sub_groups, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(sub_groups, 0u);
    for (const cl_device_info kind :
         {CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
          CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL}) {
        cl_ulong capabilities = 1;
        EXPECT_EQ(clGetDeviceInfo(devices[1], kind, sizeof capabilities, &capabilities, nullptr), CL_SUCCESS);
        EXPECT_EQ(capabilities, 0u) << kind;
    }
    // A buffer has an address on each device of its context, or none.
    const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateBufferWithProperties(context, properties, 0, 4096, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
    const auto allocate = reinterpret_cast<clDeviceMemAllocINTEL_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clDeviceMemAllocINTEL"));
    EXPECT_EQ(allocate(context, devices[1], nullptr, 4096, 0, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    // The processor has images, and commands on them are for its queues.
    const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc shape{CL_MEM_OBJECT_IMAGE2D, 16, 16, 1, 0, 0, 0, 0, 0, {nullptr}};
    const OwnedMem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const size_t origin[3] = {0, 0, 0};
    const size_t region[3] = {16, 16, 1};
    std::vector<cl_uint> pixels(256);
    EXPECT_EQ(clEnqueueReadImage(foreign, image, CL_TRUE, origin, region, 0, 0, pixels.data(), 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
}

TEST_F(ProxyFake, ArgumentsThatAreAddressesAreRefusedAtTheLaunch) {
    const size_t local = 64;
    auto* const shared = static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, count * sizeof(cl_int), 0));
    ASSERT_NE(shared, nullptr);
    ASSERT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, shared, count * sizeof(cl_int), 0, nullptr, nullptr),
              CL_SUCCESS);
    std::fill_n(shared, count, 1);
    ASSERT_EQ(clEnqueueSVMUnmap(queue, shared, 0, nullptr, nullptr), CL_SUCCESS);
    const auto set_address = reinterpret_cast<clSetKernelArgDevicePointerEXT_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clSetKernelArgDevicePointerEXT"));
    const OwnedKernel kernel = make_kernel(program, "add");
    const cl_int value = 5;
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    const auto launch_on = [&](cl_command_queue on) {
        return clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, &local, 0, nullptr, nullptr);
    };
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, shared), CL_SUCCESS);
    EXPECT_EQ(launch_on(foreign), CL_INVALID_OPERATION);
    EXPECT_EQ(launch_on(queue), CL_SUCCESS);
    ASSERT_EQ(set_address(kernel, 0, reinterpret_cast<uintptr_t>(shared)), CL_SUCCESS);
    EXPECT_EQ(launch_on(foreign), CL_INVALID_OPERATION);
    EXPECT_EQ(launch_on(queue), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(shared[count - 1], 11);
    clSVMFree(context, shared);
}

// --- failures ---

TEST_F(ProxyFake, ALaunchThatTheImplementationRefusesFailsAlone) {
    fail_call("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
    OwnedEvent refused;
    ASSERT_EQ(add(foreign, 1, refused.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(refused), CL_OUT_OF_RESOURCES);
    mend("clEnqueueNDRangeKernel");
    OwnedEvent next;
    ASSERT_EQ(add(foreign, 10, next.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(next), CL_COMPLETE);
}

TEST_F(ProxyFake, AFailureOfTheDeviceReachesWhatOtherDevicesDoAfterIt) {
    ASSERT_EQ(add(foreign, 1), CL_SUCCESS);
    ASSERT_EQ(clFinish(foreign), CL_SUCCESS);
    fail_call("execute", -9999);
    OwnedEvent failed;
    ASSERT_EQ(add(foreign, 1, failed.out()), CL_SUCCESS);
    const OwnedMem other = make_buffer(count * sizeof(cl_int));
    write(other, all(3));
    OwnedEvent after;
    ASSERT_EQ(add_to(other, queue, 100, after.out(), failed.in()), CL_SUCCESS);
    EXPECT_EQ(status_of(after), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(status_of(failed), CL_OUT_OF_RESOURCES);
    mend("execute");
    EXPECT_EQ(read<cl_int>(other, count), all(3));
}

// When a command consists of several operations, every operation waits for the failed event, not only the first.
TEST_F(ProxyFake, ACommandBufferThatWaitsForAFailedCommandExecutesNothing) {
    ASSERT_EQ(add(foreign, 1), CL_SUCCESS);
    ASSERT_EQ(clFinish(foreign), CL_SUCCESS);
    fail_call("execute", -9999);
    OwnedEvent failed;
    ASSERT_EQ(add(foreign, 1, failed.out()), CL_SUCCESS);
    ASSERT_EQ(status_of(failed), CL_OUT_OF_RESOURCES);
    mend("execute");
    const cl_command_queue queues[] = {queue, foreign};
    for (const cl_command_queue on : queues) {
        const OwnedMem first = make_buffer(count * sizeof(cl_int)), second = make_buffer(count * sizeof(cl_int));
        write(first, all(3));
        write(second, all(4));
        const OwnedCommandBuffer commands = make_command_buffer(on);
        const cl_int pattern = 9;
        const cl_mem filled[] = {first, second};
        for (const cl_mem each : filled)
            ASSERT_EQ(functions().Fill(commands, nullptr, nullptr, each, &pattern, sizeof pattern, 0, 64, 0, nullptr,
                                       nullptr, nullptr),
                      CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(commands), CL_SUCCESS);
        OwnedEvent after;
        ASSERT_EQ(functions().Enqueue(0, nullptr, commands, 1, failed.in(), after.out()), CL_SUCCESS);
        EXPECT_EQ(status_of(after), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        // Nothing is filled. The first bytes are undefined, because the failed command is their newest writer.
        EXPECT_NE(read<cl_int>(first, count).front(), pattern);
        EXPECT_NE(read<cl_int>(second, count).front(), pattern);
    }
}

TEST_F(ProxyFake, ACommandBufferFailsWhenOneOfItsCommandsFails) {
    const OwnedMem other = make_buffer(count * sizeof(cl_int));
    write(other, all(3));
    const OwnedKernel kernel = make_kernel(program, "add");
    const cl_int value = 1, pattern = 9;
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    const size_t local = 64;
    const OwnedCommandBuffer commands = make_command_buffer(foreign);
    ASSERT_EQ(functions().Kernel(commands, nullptr, nullptr, kernel, 1, nullptr, &count, &local, 0, nullptr, nullptr,
                                 nullptr),
              CL_SUCCESS);
    ASSERT_EQ(functions().Fill(commands, nullptr, nullptr, other, &pattern, sizeof pattern, 0, 64, 0, nullptr, nullptr,
                               nullptr),
              CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(commands), CL_SUCCESS);
    fail_call("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
    OwnedEvent failed;
    ASSERT_EQ(functions().Enqueue(0, nullptr, commands, 0, nullptr, failed.out()), CL_SUCCESS);
    EXPECT_LT(status_of(failed), 0);
    mend("clEnqueueNDRangeKernel");
    EXPECT_NE(read<cl_int>(other, count).front(), pattern);
    OwnedEvent next;
    ASSERT_EQ(functions().Enqueue(0, nullptr, commands, 0, nullptr, next.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(next), CL_COMPLETE);
}

TEST_F(ProxyFake, AnImageFillThatWaitsForAFailedCommandExecutesNothing) {
    ASSERT_EQ(add(foreign, 1), CL_SUCCESS);
    ASSERT_EQ(clFinish(foreign), CL_SUCCESS);
    fail_call("execute", -9999);
    OwnedEvent failed;
    ASSERT_EQ(add(foreign, 1, failed.out()), CL_SUCCESS);
    ASSERT_EQ(status_of(failed), CL_OUT_OF_RESOURCES);
    mend("execute");
    const cl_image_format format{CL_R, CL_UNSIGNED_INT32};
    const cl_image_desc shape{CL_MEM_OBJECT_IMAGE2D, 16, 16, 1, 0, 0, 0, 0, 0, {nullptr}};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const size_t origin[3] = {0, 0, 0}, whole[3] = {16, 16, 1}, part[3] = {8, 16, 1};
    const cl_uint one[4] = {1, 0, 0, 0}, two[4] = {2, 0, 0, 0};
    ASSERT_EQ(clEnqueueFillImage(queue, image, one, origin, whole, 0, nullptr, nullptr), CL_SUCCESS);
    OwnedEvent after;
    ASSERT_EQ(clEnqueueFillImage(queue, image, two, origin, part, 1, failed.in(), after.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(after), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    std::vector<cl_uint> pixels(256);
    ASSERT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, origin, whole, 0, 0, pixels.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(pixels, std::vector<cl_uint>(256, 1));
}

TEST_F(ProxyFake, AFailureElsewhereKeepsTheDevicesCommandsFromExecuting) {
    const uint64_t launches = calls("clEnqueueNDRangeKernel");
    const OwnedEvent gate = make_user_event();
    OwnedEvent on_cpu;
    OwnedEvent on_device;
    ASSERT_EQ(add(queue, 1, on_cpu.out(), gate.in()), CL_SUCCESS);
    ASSERT_EQ(add(foreign, 10, on_device.out(), on_cpu.in()), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -7), CL_SUCCESS);
    EXPECT_EQ(status_of(on_device), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(calls("clEnqueueNDRangeKernel"), launches);
    EXPECT_EQ(read<cl_int>(buffer, count), all(0));
    ASSERT_EQ(add(foreign, 2), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, count, foreign), all(2));
}

TEST_F(ProxyFake, ADeviceThatIsLostLeavesTheProcessorItsWork) {
    // In a process of its own: a lost device stays lost.
    const auto body = [&] {
        fail_call("clEnqueueNDRangeKernel", CL_DEVICE_NOT_AVAILABLE);
        OwnedEvent lost;
        if (add(foreign, 1, lost.out()) != CL_SUCCESS || status_of(lost) >= 0)
            return 1;
        mend("clEnqueueNDRangeKernel");
        OwnedEvent still;
        if (add(foreign, 1, still.out()) == CL_SUCCESS && status_of(still) >= 0)
            return 2;
        const OwnedMem fresh = make_buffer(count * sizeof(cl_int));
        write(fresh, all(1));
        return add_to(fresh, queue, 1) == CL_SUCCESS && read<cl_int>(fresh, count) == all(2) ? 7 : 3;
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::exit(body()), testing::ExitedWithCode(7), "fake device is lost");
}

// --- processes ---

TEST_F(ProxyFake, TheChildOfAForkHasTheProcessorAndTheParentBoth) {
    ASSERT_EQ(add(foreign, 1), CL_SUCCESS);
    ASSERT_EQ(clFinish(foreign), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, count), all(1));
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // a child that hangs is killed
        OwnedEvent event;
        if (add(foreign, 1, event.out()) == CL_SUCCESS && status_of(event) >= 0)
            _exit(1);
        const OwnedMem fresh = make_buffer(count * sizeof(cl_int));
        write(fresh, all(1));
        std::exit(add_to(fresh, queue, 1) == CL_SUCCESS && read<cl_int>(fresh, count) == all(2) ? 7 : 2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
    ASSERT_EQ(add(foreign, 1), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, count, foreign), all(2));
}

TEST_F(ProxyFake, HandlesAreReleasedInAnyOrderWhileCommandsRun) {
    const auto live = fake_icd::find<fake_icd::Live>("fake_icd_live");
    const auto once = [&] {
        OwnedContext own;
        cl_int error = CL_SUCCESS;
        own = clCreateContext(nullptr, 2, devices.data(), nullptr, nullptr, &error);
        cl_command_queue last = clCreateCommandQueueWithProperties(own, devices[1], nullptr, &error);
        cl_mem memory = clCreateBuffer(own, CL_MEM_READ_WRITE, count * sizeof(cl_int), nullptr, &error);
        cl_program made = clCreateProgramWithSource(own, 1, const_cast<const char**>(&add_source), nullptr, &error);
        EXPECT_EQ(clBuildProgram(made, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
        cl_kernel kernel = clCreateKernel(made, "add", &error);
        const cl_int one = 1;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof memory, &memory), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
        const size_t local = 64;
        for (int i = 0; i < 20; ++i)
            EXPECT_EQ(clEnqueueNDRangeKernel(last, kernel, 1, nullptr, &count, &local, 0, nullptr, nullptr),
                      CL_SUCCESS);
        own.reset();
        EXPECT_EQ(clReleaseProgram(made), CL_SUCCESS);
        EXPECT_EQ(clReleaseMemObject(memory), CL_SUCCESS);
        EXPECT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
        EXPECT_EQ(clFinish(last), CL_SUCCESS);
        EXPECT_EQ(clReleaseCommandQueue(last), CL_SUCCESS);
    };
    // Queues stay for the next ones.
    once();
    const int64_t after_first = live();
    for (int i = 0; i < 10; ++i)
        once();
    // The implementation's own thread may hold the event of the last command for a moment after clFinish returned.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (live() > after_first && std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_LE(live(), after_first);
    EXPECT_EQ(calls("early release"), 0u);
}

TEST_F(ProxyFake, AProcessEndsWithCommandsOfTheDeviceInFlight) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            for (int i = 0; i < 50; ++i)
                static_cast<void>(add(foreign, 1));
            clFlush(foreign);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

// --- buffers ---

// The device wants sub-buffers at multiples of 256, twice as much as the processor.
TEST_F(ProxyFake, PartsOfALargeBufferKeepTheAlignmentOfTheDevice) {
    cl_uint bits = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[1], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr), CL_SUCCESS);
    ASSERT_EQ(bits, 256u * 8);
    constexpr size_t whole_bytes = 1 << 20;
    const OwnedMem whole = make_buffer(whole_bytes);
    const std::vector<std::byte> zeroes(70'000);
    ASSERT_EQ(clEnqueueWriteBuffer(foreign, whole, CL_TRUE, 128, zeroes.size(), zeroes.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    const OwnedMem part = sub_buffer(whole, 1024, count * sizeof(cl_int));
    OwnedEvent event;
    ASSERT_EQ(add_to(part, foreign, 4, event.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(event), CL_COMPLETE);
    EXPECT_EQ(read<cl_int>(part, count), all(4));
    const OwnedMem misaligned = sub_buffer(whole, 1024 + 128, count * sizeof(cl_int));
    EXPECT_EQ(add_to(misaligned, foreign, 4), CL_MISALIGNED_SUB_BUFFER_OFFSET);
}

// The device of the queue decides; the processor takes multiples of 128.
TEST_F(ProxyFake, MisalignedSubBuffersAreRefusedByEveryCommand) {
    const OwnedMem whole = make_buffer(8192), other = make_buffer(8192);
    const OwnedMem part = sub_buffer(whole, 1024 + 128, 4096);
    const OwnedKernel kernel = make_kernel(program, "add");
    const cl_int one = 1;
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), part.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    std::vector<std::byte> bytes(64);
    void* const data = bytes.data();
    const size_t at[3] = {}, size[3] = {16, 1, 1};
    const auto check = [&](cl_command_queue on, cl_int expected) {
        size_t local = 0;
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clEnqueueReadBuffer(on, part, CL_TRUE, 0, 16, data, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueWriteBuffer(on, part, CL_TRUE, 0, 16, data, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueFillBuffer(on, part, data, 4, 0, 16, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueCopyBuffer(on, part, other, 0, 0, 16, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueCopyBuffer(on, other, part, 0, 0, 16, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueReadBufferRect(on, part, CL_TRUE, at, at, size, 0, 0, 0, 0, data, 0, nullptr, nullptr),
                  expected);
        EXPECT_EQ(clEnqueueWriteBufferRect(on, part, CL_TRUE, at, at, size, 0, 0, 0, 0, data, 0, nullptr, nullptr),
                  expected);
        EXPECT_EQ(clEnqueueCopyBufferRect(on, part, other, at, at, size, 0, 0, 0, 0, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueCopyBufferRect(on, other, part, at, at, size, 0, 0, 0, 0, 0, nullptr, nullptr), expected);
        void* const mapped = clEnqueueMapBuffer(on, part, CL_TRUE, CL_MAP_READ, 0, 16, 0, nullptr, nullptr, &error);
        EXPECT_EQ(error, expected);
        if (mapped) {
            EXPECT_EQ(clEnqueueUnmapMemObject(on, part, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        }
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, size, nullptr, 0, nullptr, nullptr), expected);
        EXPECT_EQ(clEnqueueTask(on, kernel, 0, nullptr, nullptr), expected);
        EXPECT_EQ(suggest(on, kernel, 1, nullptr, size, &local), expected);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    };
    check(foreign, CL_MISALIGNED_SUB_BUFFER_OFFSET);
    check(queue, CL_SUCCESS);
}

}  // namespace
}  // namespace polder::test
