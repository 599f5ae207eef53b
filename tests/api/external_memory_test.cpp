// Memory from file descriptors (cl_khr_external_memory): bytes that another mapping, or another process, writes and reads between
// release and acquire; every bad descriptor; every bad argument.
#include "support/command_buffer.h"
#include "support/images.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <linux/udmabuf.h>
#include <numeric>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace polder::test {
namespace {

constexpr const char* descriptor_variable = "POLDER_TEST_DESCRIPTOR";
constexpr const char* memory_name = "polder-external-test";
constexpr cl_mem_properties opaque = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR;
constexpr cl_mem_properties dma_buf = CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR;
constexpr cl_mem_properties device_list = 0x2051;
constexpr cl_mem_flags immutable_flag = 1 << 6;

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    ~Descriptor() { reset(); }
    void reset() {
        if (number_ >= 0)
            close(std::exchange(number_, -1));
    }
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] cl_mem_properties property() const { return static_cast<cl_mem_properties>(number_); }

private:
    int number_;
};

// Files that can be sealed are mapped, others copied.
constexpr unsigned mapped = MFD_ALLOW_SEALING, copied = 0;

Descriptor make_memory(size_t size, unsigned flags = mapped) {
    Descriptor made{memfd_create(memory_name, flags)};
    EXPECT_GE(made.number(), 0);
    EXPECT_EQ(ftruncate(made.number(), static_cast<off_t>(size)), 0);
    return made;
}

// The test's own mapping, as another user of the memory has it.
class View {
public:
    View(const Descriptor& of, size_t size)
        : bytes_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, of.number(), 0)), size_(size) {
        EXPECT_NE(bytes_, MAP_FAILED);
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() { munmap(bytes_, size_); }
    [[nodiscard]] cl_uint* numbers() const { return static_cast<cl_uint*>(bytes_); }
    [[nodiscard]] std::vector<cl_uint> copy() const { return {numbers(), numbers() + size_ / sizeof(cl_uint)}; }

private:
    void* bytes_;
    size_t size_;
};

class ExternalMemory : public ImageTest {
protected:
    using HandOver = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint, const cl_event*,
                                          cl_event*);
    void SetUp() override {
        ImageTest::SetUp();
        acquire_function = extension_function<HandOver>("clEnqueueAcquireExternalMemObjectsKHR");
        release_function = extension_function<HandOver>("clEnqueueReleaseExternalMemObjectsKHR");
        program = build(command_buffer_kernels);
    }
    struct Imported {
        OwnedMem buffer;
        cl_int error;
    };
    Imported import(const std::vector<cl_mem_properties>& properties, size_t size = bytes,
                    cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
        Imported made{nullptr, CL_SUCCESS};
        made.buffer = clCreateBufferWithProperties(context, properties.data(), flags, size, host, &made.error);
        EXPECT_EQ(made.buffer == nullptr, made.error != CL_SUCCESS);
        return made;
    }
    cl_int import_error(cl_mem_properties type, const Descriptor& from, size_t size = bytes,
                        cl_mem_flags flags = CL_MEM_READ_WRITE) {
        return import({type, from.property(), 0}, size, flags).error;
    }
    OwnedMem import_good(const Descriptor& from, cl_mem_properties type = opaque) {
        Imported made = import({type, from.property(), 0});
        EXPECT_EQ(made.error, CL_SUCCESS);
        return std::move(made.buffer);
    }
    cl_int acquire(cl_command_queue on, const OwnedMem& object) {
        return acquire_function(on, 1, object.in(), 0, nullptr, nullptr);
    }
    cl_int release(cl_command_queue on, const OwnedMem& object) {
        return release_function(on, 1, object.in(), 0, nullptr, nullptr);
    }
    cl_int enqueue_add(cl_command_queue on, cl_mem buffer, cl_uint value, cl_uint num_events = 0,
                       const cl_event* events = nullptr) {
        const OwnedKernel kernel = make_kernel(program, "add");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        return clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, nullptr, num_events, events, nullptr);
    }
    void add_and_release(cl_command_queue on, const OwnedMem& buffer, cl_uint value) {
        EXPECT_EQ(acquire(on, buffer), CL_SUCCESS);
        EXPECT_EQ(enqueue_add(on, buffer, value), CL_SUCCESS);
        EXPECT_EQ(release(on, buffer), CL_SUCCESS);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    }
    // Each device in turns with the other user of `memory`.
    void pass_around(const Descriptor& memory, const OwnedMem& buffer) {
        const View view{memory, bytes};
        for (cl_uint round = 1; round <= 3; ++round)
            for (const cl_device_id device : devices) {
                std::iota(view.numbers(), view.numbers() + count, round * 100);
                std::vector<cl_uint> expected = view.copy();
                for (cl_uint& value : expected)
                    value += round;
                const OwnedQueue on = make_queue(device);
                add_and_release(on, buffer, round);
                EXPECT_EQ(view.copy(), expected);
            }
    }

    HandOver acquire_function = nullptr;
    HandOver release_function = nullptr;
    OwnedProgram program;
};

TEST_F(ExternalMemory, Acquired_ShowsWhatOthersWrote_AndReleased_ShowsThemTheResults) {
    for (const unsigned kind : {mapped, copied}) {
        const Descriptor memory = make_memory(bytes, kind);
        const OwnedMem buffer = import_good(memory);
        pass_around(memory, buffer);
    }
}

TEST_F(ExternalMemory, OfAFileThatCanBeSealed_CannotBeCutOff) {
    const Descriptor memory = make_memory(bytes);
    const OwnedMem buffer = import_good(memory);
    EXPECT_NE(ftruncate(memory.number(), 0), 0);
    EXPECT_EQ(errno, EPERM);
    pass_around(memory, buffer);
}

// The process ended by SIGBUS when such a file was mapped.
TEST_F(ExternalMemory, OfAFileThatWasCutOff_HasZerosBehindItsEnd_AndLeavesItsSize) {
    for (const cl_device_id device : devices) {
        const Descriptor memory = make_memory(bytes, copied);
        const cl_uint kept[] = {11, 12};
        ASSERT_EQ(pwrite(memory.number(), kept, sizeof kept, 0), ssize_t{sizeof kept});
        const OwnedMem buffer = import_good(memory);
        ASSERT_EQ(ftruncate(memory.number(), sizeof kept), 0);
        const OwnedQueue on = make_queue(device);
        add_and_release(on, buffer, 5);
        std::vector<cl_uint> expected(count, 5);
        expected[0] = 16;
        expected[1] = 17;
        EXPECT_EQ(read<cl_uint>(buffer, count, on), expected);
        std::vector<cl_uint> in_file(count);
        ASSERT_EQ(pread(memory.number(), in_file.data(), bytes, 0), ssize_t{sizeof kept});
        EXPECT_EQ(in_file[1], 17u);
    }
}

TEST_F(ExternalMemory, OfACopiedFile_HasItsBytesBeforeTheFirstAcquire) {
    const Descriptor memory = make_memory(bytes, copied);
    const View view{memory, bytes};
    std::iota(view.numbers(), view.numbers() + count, 3);
    const OwnedMem buffer = import_good(memory);
    EXPECT_EQ(read<cl_uint>(buffer, count, queue), view.copy());
}

TEST_F(ExternalMemory, OfADmaBuf_IsSharedLikewise) {
    const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (device < 0)
        GTEST_SKIP() << "/dev/udmabuf is not there: no dma-buf can be made";
    const Descriptor maker{device};
    const Descriptor memory = make_memory(bytes);
    ASSERT_EQ(fcntl(memory.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    udmabuf_create request{};
    request.memfd = static_cast<__u32>(memory.number());
    request.size = bytes;
    const Descriptor made{ioctl(maker.number(), UDMABUF_CREATE, &request)};
    ASSERT_GE(made.number(), 0);
    for (const cl_mem_properties type : {dma_buf, opaque}) {
        const OwnedMem buffer = import_good(made, type);
        pass_around(memory, buffer);
    }
    EXPECT_EQ(import_error(dma_buf, made, bytes + 4096), CL_INVALID_BUFFER_SIZE);
}

// Both processes are this program; the other one runs the next test alone.
TEST_F(ExternalMemory, IsSharedByTwoProcesses) {
    const Descriptor memory = make_memory(bytes);
    const OwnedMem buffer = import_good(memory);
    const View view{memory, bytes};
    std::iota(view.numbers(), view.numbers() + count, 1);
    std::vector<cl_uint> expected = view.copy();
    const OwnedQueue last = make_queue(devices.back());
    add_and_release(last, buffer, 10);

    const std::string variable = std::string(descriptor_variable) + "=" + std::to_string(memory.number());
    std::vector<char*> environment{const_cast<char*>(variable.c_str())};
    for (char** each = environ; *each; ++each)
        environment.push_back(*each);
    environment.push_back(nullptr);
    std::string program_name = "external_memory", filter = "--gtest_filter=ExternalMemory.OtherProcess_*";
    char* const arguments[] = {program_name.data(), filter.data(), nullptr};
    pid_t other = 0;
    ASSERT_EQ(posix_spawn(&other, "/proc/self/exe", nullptr, nullptr, arguments, environment.data()), 0);
    int status = -1;
    ASSERT_EQ(waitpid(other, &status, 0), other);
    ASSERT_EQ(status, 0);

    add_and_release(last, buffer, 100);
    for (cl_uint& value : expected)
        value = (value + 10) * 2 + 100;
    EXPECT_EQ(view.copy(), expected);
}

TEST_F(ExternalMemory, OtherProcess_DoublesEveryNumber) {
    const char* const given = std::getenv(descriptor_variable);
    if (!given)
        GTEST_SKIP() << "runs as the other process of IsSharedByTwoProcesses";
    const Descriptor memory{std::atoi(given)};
    const OwnedMem buffer = import_good(memory);
    const OwnedKernel twice = make_kernel(program, "twice");
    ASSERT_EQ(clSetKernelArg(twice, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(twice, 1, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(acquire(queue, buffer), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, twice, 1, nullptr, &count, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(release(queue, buffer), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST_F(ExternalMemory, HandOvers_WaitForEventsAndHaveTheirType) {
    const Descriptor memory = make_memory(bytes, copied);
    const OwnedMem objects[] = {import_good(memory), import_good(memory)};
    const cl_mem both[] = {objects[0], objects[1]};
    const View view{memory, bytes};
    OwnedEvent gate = make_user_event(), acquired, released;
    ASSERT_EQ(acquire_function(queue, 2, both, 1, gate.in(), acquired.out()), CL_SUCCESS);
    ASSERT_EQ(enqueue_add(queue, objects[0], 7), CL_SUCCESS);
    ASSERT_EQ(release_function(queue, 1, both, 0, nullptr, released.out()), CL_SUCCESS);
    view.numbers()[5] = 1000;
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, released.in()), CL_SUCCESS);
    EXPECT_EQ(view.numbers()[5], 1007u);
    const auto type_of = [](cl_event event) {
        cl_command_type type = 0;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
        return type;
    };
    EXPECT_EQ(type_of(acquired), cl_command_type{CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR});
    EXPECT_EQ(type_of(released), cl_command_type{CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR});
    EXPECT_EQ(acquire_function(queue, 0, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(release_function(queue, 0, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
}

bool is_mapped() {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line))
        if (line.find(memory_name) != std::string::npos)
            return true;
    return false;
}

TEST_F(ExternalMemory, StaysMapped_UntilNoCommandUsesIt) {
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        Descriptor memory = make_memory(bytes);
        OwnedMem buffer = import_good(memory);
        memory.reset();
        const OwnedEvent gate = make_user_event();
        ASSERT_EQ(acquire_function(on, 1, buffer.in(), 1, gate.in(), nullptr), CL_SUCCESS);
        ASSERT_EQ(enqueue_add(on, buffer, 7), CL_SUCCESS);
        ASSERT_EQ(release(on, buffer), CL_SUCCESS);
        buffer.reset();
        EXPECT_TRUE(is_mapped());
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (is_mapped() && std::chrono::steady_clock::now() < limit)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_FALSE(is_mapped());
    }
}

TEST_F(ExternalMemory, BadDescriptors_AreErrors) {
    EXPECT_EQ(import({opaque, static_cast<cl_mem_properties>(-1), 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({opaque, cl_mem_properties{1} << 40, 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({opaque, 1000000, 0}).error, CL_INVALID_PROPERTY);  // is not open
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    const Descriptor reading{ends[0]}, writing{ends[1]}, events{eventfd(0, 0)}, folder{open("/", O_RDONLY)},
        zeros{open("/dev/zero", O_RDWR)};
    for (const Descriptor* each : {&reading, &writing, &events, &folder, &zeros})
        EXPECT_EQ(import_error(opaque, *each), CL_INVALID_PROPERTY);
    const Descriptor memory = make_memory(bytes);
    EXPECT_EQ(import_error(opaque, memory, bytes + 1), CL_INVALID_BUFFER_SIZE);
    EXPECT_EQ(import_error(dma_buf, memory), CL_INVALID_PROPERTY);
    const std::string path = "/proc/self/fd/" + std::to_string(memory.number());
    const Descriptor only_read{open(path.c_str(), O_RDONLY)}, only_written{open(path.c_str(), O_WRONLY)};
    EXPECT_EQ(import_error(opaque, only_read), CL_INVALID_PROPERTY);
    EXPECT_EQ(import_error(opaque, only_written), CL_INVALID_PROPERTY);
    EXPECT_EQ(import_error(opaque, only_read, bytes, immutable_flag), CL_SUCCESS);
}

TEST_F(ExternalMemory, Immutable_IsReadOnEveryDevice) {
    const Descriptor memory = make_memory(bytes);
    const View view{memory, bytes};
    std::iota(view.numbers(), view.numbers() + count, 5);
    const std::string path = "/proc/self/fd/" + std::to_string(memory.number());
    const Descriptor only_read{open(path.c_str(), O_RDONLY)};
    const Imported imported = import({opaque, only_read.property(), 0}, bytes, immutable_flag);
    ASSERT_EQ(imported.error, CL_SUCCESS);
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        const OwnedMem out = make_buffer(bytes);
        ASSERT_EQ(acquire(on, imported.buffer), CL_SUCCESS);
        ASSERT_EQ(clEnqueueCopyBuffer(on, imported.buffer, out, 0, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(release(on, imported.buffer), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(out, count, on), view.copy());
    }
}

TEST_F(ExternalMemory, BadArguments_AreErrors) {
    const Descriptor memory = make_memory(bytes);
    const auto fd = memory.property();
    const auto device = reinterpret_cast<cl_mem_properties>(devices[0]);
    EXPECT_EQ(import({opaque, fd, opaque, fd, 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({opaque, fd, dma_buf, fd, 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({device_list, device, 0, 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({opaque, fd, device_list, 0, 0}).error, CL_INVALID_PROPERTY);
    EXPECT_EQ(import({device_list, device, 0, opaque, fd, device_list, device, 0, 0}).error, CL_INVALID_PROPERTY);
    const auto context_as_device = reinterpret_cast<cl_mem_properties>(static_cast<cl_context>(context));
    EXPECT_EQ(import({opaque, fd, device_list, context_as_device, 0, 0}).error, CL_INVALID_DEVICE);
    EXPECT_EQ(import({opaque, fd, 0x2061, 1, 0}).error, CL_INVALID_PROPERTY);  // of Windows
    int number = 0;
    EXPECT_EQ(import({opaque, fd, 0}, bytes, CL_MEM_USE_HOST_PTR, &number).error, CL_INVALID_VALUE);
    EXPECT_EQ(import({opaque, fd, 0}, bytes, CL_MEM_COPY_HOST_PTR, &number).error, CL_INVALID_VALUE);
    EXPECT_EQ(import({opaque, fd, 0}, bytes, CL_MEM_ALLOC_HOST_PTR).error, CL_INVALID_VALUE);
    EXPECT_EQ(import({opaque, fd, 0}, bytes, CL_MEM_READ_WRITE, &number).error, CL_INVALID_HOST_PTR);
    EXPECT_EQ(import({opaque, fd, 0}, 0).error, CL_INVALID_BUFFER_SIZE);

    const Imported imported = import({device_list, device, 0, opaque, fd, 0});
    ASSERT_EQ(imported.error, CL_SUCCESS);
    const OwnedMem plain = make_buffer(bytes);
    for (const HandOver hand_over : {acquire_function, release_function}) {
        EXPECT_EQ(hand_over(nullptr, 1, imported.buffer.in(), 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(hand_over(queue, 0, imported.buffer.in(), 0, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(hand_over(queue, 1, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(hand_over(queue, 1, plain.in(), 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
        EXPECT_EQ(hand_over(queue, 1, imported.buffer.in(), 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
        const OwnedEvent failed = make_user_event();
        ASSERT_EQ(clSetUserEventStatus(failed, -7), CL_SUCCESS);
        EXPECT_EQ(hand_over(queue, 1, imported.buffer.in(), 1, failed.in(), nullptr),
                  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        if (devices.size() > 1) {
            const OwnedQueue elsewhere = make_queue(devices[1]);
            EXPECT_EQ(hand_over(elsewhere, 1, imported.buffer.in(), 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
        }
        cl_int error = CL_INVALID_VALUE;
        const OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
        const OwnedQueue of_other = clCreateCommandQueueWithProperties(other, devices[0], nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(hand_over(of_other, 1, imported.buffer.in(), 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    }
}

TEST_F(ExternalMemory, Queries_ReportWhatCanBeImported) {
    const std::vector<cl_uint> types{CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR};
    std::vector<cl_uint> found(2);
    EXPECT_EQ(
        clGetPlatformInfo(platform(), CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR, 8, found.data(), nullptr),
        CL_SUCCESS);
    EXPECT_EQ(found, types);
    for (const cl_device_id device : devices)
        for (const cl_device_info name : {CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR, 0x2052}) {
            size_t size = 0;
            EXPECT_EQ(clGetDeviceInfo(device, name, 8, found.data(), &size), CL_SUCCESS);
            EXPECT_EQ(size, 8u);
            EXPECT_EQ(found, types);
        }
    const Descriptor memory = make_memory(bytes);
    const std::vector<cl_mem_properties> properties{
        opaque, memory.property(), device_list, reinterpret_cast<cl_mem_properties>(devices[0]), 0, 0};
    const Imported imported = import(properties);
    ASSERT_EQ(imported.error, CL_SUCCESS);
    std::vector<cl_mem_properties> kept(properties.size());
    EXPECT_EQ(
        clGetMemObjectInfo(imported.buffer, CL_MEM_PROPERTIES, kept.size() * sizeof kept[0], kept.data(), nullptr),
        CL_SUCCESS);
    EXPECT_EQ(kept, properties);
    EXPECT_EQ(mem_info<void*>(imported.buffer, CL_MEM_HOST_PTR), nullptr);
    EXPECT_EQ(mem_info<cl_mem_flags>(imported.buffer, CL_MEM_FLAGS), cl_mem_flags{CL_MEM_READ_WRITE});
}

TEST_F(ExternalMemory, AsAnImage_HasRowsWithTheGivenPitch) {
    constexpr size_t width = 13, height = 5, pitch = 64;
    const Descriptor memory = make_memory(pitch * height);
    const View view{memory, pitch * height};
    std::iota(view.numbers(), view.numbers() + pitch * height / 4, 1000);
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1});
    description.image_row_pitch = pitch;
    const cl_mem_properties properties[] = {opaque, memory.property(), 0};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem image =
        clCreateImageWithProperties(context, properties, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        ASSERT_EQ(acquire(on, image), CL_SUCCESS);
        const cl_uint color[4] = {1, 2, 3, 4};
        const size_t origin[3] = {0, 4, 0}, region[3] = {width, 1, 1};
        ASSERT_EQ(clEnqueueFillImage(on, image, color, origin, region, 0, nullptr, nullptr), CL_SUCCESS);
        const std::vector<cl_uint> row = read_image<cl_uint>(image, {0, 1, 0}, {width, 1, 1}, on);
        EXPECT_EQ(row, std::vector<cl_uint>(view.numbers() + 16, view.numbers() + 16 + width));
        ASSERT_EQ(release(on, image), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_EQ(view.numbers()[4 * 16 + 12], 0x04030201u);
        EXPECT_EQ(view.numbers()[4 * 16 + 13], 1000u + 4 * 16 + 13);
        std::iota(view.numbers(), view.numbers() + pitch * height / 4, 1000);
    }
    const auto fails = [&](const cl_mem_properties* list, cl_mem_flags flags, cl_int expected) {
        const OwnedMem none = clCreateImageWithProperties(context, list, flags, &format, &description, nullptr, &error);
        EXPECT_EQ(none, nullptr);
        EXPECT_EQ(error, expected);
    };
    const cl_mem_properties not_dma_buf[] = {dma_buf, memory.property(), 0}, unknown[] = {12345, 1, 0};
    fails(not_dma_buf, CL_MEM_READ_WRITE, CL_INVALID_PROPERTY);
    fails(unknown, CL_MEM_READ_WRITE, CL_INVALID_PROPERTY);
    fails(properties, CL_MEM_ALLOC_HOST_PTR, CL_INVALID_VALUE);
    description.image_height = height + 1;
    fails(properties, CL_MEM_READ_WRITE, CL_INVALID_IMAGE_SIZE);
}

}  // namespace
}  // namespace polder::test
