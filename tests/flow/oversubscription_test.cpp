// Buffers that together are four times as large as the memories of the discrete devices: kernels, copies, maps and
// sub-buffers give the right bytes, without help from the application. The processor only reads the results.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;
constexpr size_t memory_bytes = 16 * MiB;  // of each device, as in the test's environment
constexpr size_t bytes = 4 * MiB;
constexpr size_t items = bytes / sizeof(cl_int);

constexpr const char* kernels = R"(
kernel void number(global int* data, int first) { size_t i = get_global_id(0); data[i] = first + (int)i; }
kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
kernel void sum_of(global const int* a, global const int* b, global int* to) {
    size_t i = get_global_id(0);
    to[i] = a[i] + b[i];
}
)";

class Oversubscription : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_GE(devices.size(), 2u) << "POCL_DEVICES must be \"cpu discrete\", or have more of them";
        for (const cl_device_id device : devices)
            queues_.push_back(make_queue(device));
        program_ = build(kernels);
    }
    [[nodiscard]] size_t discrete() const { return devices.size() - 1; }
    [[nodiscard]] size_t device_of(size_t number) const { return 1 + number % discrete(); }
    [[nodiscard]] size_t buffer_count() const { return 4 * discrete() * memory_bytes / bytes; }

    template <class... Arguments>
    cl_int try_run(cl_command_queue on, const char* name, size_t count, cl_event after, const Arguments&... arguments) {
        const OwnedKernel kernel = make_kernel(program_, name);
        cl_uint index = 0;
        (static_cast<void>(clSetKernelArg(kernel, index++, sizeof arguments, &arguments)), ...);
        return clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, nullptr, after ? 1 : 0, after ? &after : nullptr,
                                      nullptr);
    }
    template <class... Arguments>
    void run(size_t device, const char* name, const Arguments&... arguments) {
        ASSERT_EQ(try_run(queues_[device], name, items, nullptr, arguments...), CL_SUCCESS);
    }
    static cl_mem mem(const OwnedMem& buffer) { return buffer; }
    void finish() {
        for (const OwnedQueue& each : queues_)
            ASSERT_EQ(clFinish(each), CL_SUCCESS);
    }
    void expect_numbers(cl_mem buffer, cl_int first, size_t device) {
        const std::vector<cl_int> seen = read<cl_int>(buffer, items, queues_[device]);
        size_t wrong = 0;
        for (size_t i = 0; i < items; ++i)
            wrong += seen[i] != first + static_cast<cl_int>(i);
        EXPECT_EQ(wrong, 0u);
    }
    std::vector<cl_memory_space_polder> spaces() {
        const auto function = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        std::vector<cl_memory_space_polder> entries(devices.size());
        EXPECT_EQ(function(context, static_cast<cl_uint>(entries.size()), entries.data(), nullptr), CL_SUCCESS);
        return entries;
    }

    std::vector<OwnedQueue> queues_;
    OwnedProgram program_;
};

TEST_F(Oversubscription, KernelsInTurnsOverFourTimesTheMemory) {
    std::vector<OwnedMem> buffers;
    for (size_t i = 0; i < buffer_count(); ++i) {
        buffers.push_back(make_buffer(bytes));
        run(device_of(i), "number", mem(buffers[i]), static_cast<cl_int>(i));
    }
    for (size_t pass = 0; pass < 2; ++pass) {
        for (size_t i = 0; i < buffers.size(); ++i)
            run(device_of(i + pass), "add", mem(buffers[i]), cl_int{1000});
        finish();
        for (const cl_memory_space_polder& space : spaces())
            EXPECT_TRUE(space.space == 0 || space.used_bytes <= memory_bytes) << space.used_bytes;
    }
    for (size_t i = 0; i < buffers.size(); ++i)
        expect_numbers(buffers[i], static_cast<cl_int>(i) + 2000, device_of(i));
}

TEST_F(Oversubscription, CopiesMapsAndSubBuffers) {
    std::vector<OwnedMem> buffers;
    for (size_t i = 0; i < buffer_count(); ++i) {
        buffers.push_back(make_buffer(bytes));
        run(device_of(i), "number", mem(buffers[i]), static_cast<cl_int>(i));
    }
    finish();
    // Each buffer but the first becomes a copy of the one before it. A copy overwrites what the previous copy has read.
    OwnedEvent before;
    for (size_t i = buffers.size() - 1; i > 0; --i) {
        OwnedEvent done;
        ASSERT_EQ(clEnqueueCopyBuffer(queues_[device_of(i)], buffers[i - 1], buffers[i], 0, 0, bytes, before ? 1 : 0,
                                      before ? before.in() : nullptr, done.out()),
                  CL_SUCCESS);
        before = std::move(done);
    }
    finish();
    // One number of each is changed by a map, the second half by a sub-buffer.
    for (size_t i = 0; i < buffers.size(); ++i) {
        cl_int error = CL_INVALID_VALUE;
        auto* const number =
            static_cast<cl_int*>(clEnqueueMapBuffer(queues_[device_of(i)], buffers[i], CL_TRUE,
                                                    CL_MAP_READ | CL_MAP_WRITE, 64, 4, 0, nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(*number, static_cast<cl_int>(16 + (i > 0 ? i - 1 : 0)));
        *number = -1;
        ASSERT_EQ(clEnqueueUnmapMemObject(queues_[device_of(i)], buffers[i], number, 0, nullptr, nullptr), CL_SUCCESS);
        const cl_buffer_region region{bytes / 2, bytes / 2};
        const OwnedMem half =
            clCreateSubBuffer(buffers[i], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        ASSERT_EQ(try_run(queues_[device_of(i)], "add", items / 2, nullptr, mem(half), cl_int{5}), CL_SUCCESS);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
        const std::vector<cl_int> seen = read<cl_int>(buffers[i], items, queues_[device_of(i)]);
        size_t wrong = 0;
        const auto first = static_cast<cl_int>(i > 0 ? i - 1 : 0);
        for (size_t k = 0; k < items; ++k)
            wrong += seen[k] != (k == 16 ? -1 : first + static_cast<cl_int>(k) + (k >= items / 2 ? 5 : 0));
        EXPECT_EQ(wrong, 0u) << "buffer " << i;
    }
}

// While the application writes to a range that it has mapped, the device's memory of the buffer is needed for others.
TEST_F(Oversubscription, EvictionWhileRangesAreMapped) {
    for (const cl_map_flags flags : {cl_map_flags{CL_MAP_WRITE}, cl_map_flags{CL_MAP_WRITE_INVALIDATE_REGION}}) {
        const OwnedMem buffer = make_buffer(bytes);
        run(1, "number", mem(buffer), 5);
        cl_int status = CL_SUCCESS;
        void* const mapped =
            clEnqueueMapBuffer(queues_[1], buffer, CL_TRUE, flags, bytes / 4, bytes / 2, 0, nullptr, nullptr, &status);
        ASSERT_EQ(status, CL_SUCCESS);
        auto* const values = static_cast<cl_int*>(mapped);
        for (size_t i = 0; i < items / 2; ++i)
            values[i] = 1'000'005 + static_cast<cl_int>(items / 4 + i);
        std::vector<OwnedMem> others;
        for (size_t i = 0; i <= memory_bytes / bytes; ++i) {
            others.push_back(make_buffer(bytes));
            run(1, "number", mem(others.back()), 0);
        }
        finish();
        ASSERT_EQ(clEnqueueUnmapMemObject(queues_[1], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        run(1, "add", mem(buffer), 0);
        const std::vector<cl_int> seen = read<cl_int>(buffer, items, queues_[1]);
        size_t wrong = 0;
        for (size_t i = 0; i < items; ++i) {
            const bool is_mapped = i >= items / 4 && i < items / 4 * 3;
            wrong += seen[i] != (is_mapped ? 1'000'005 : 5) + static_cast<cl_int>(i);
        }
        EXPECT_EQ(wrong, 0u) << "flags " << flags;
    }
}

TEST_F(Oversubscription, CommandsThatAreHeldBackAllRunWhenTheyMay) {
    const OwnedEvent gate = make_user_event();
    std::vector<OwnedMem> buffers;
    for (size_t i = 0; i < buffer_count(); ++i) {
        buffers.push_back(make_buffer(bytes));
        ASSERT_EQ(try_run(queues_[device_of(i)], "number", items, gate, mem(buffers[i]), static_cast<cl_int>(i)),
                  CL_SUCCESS);
    }
    for (size_t i = 0; i + 1 < buffers.size(); i += 2)
        run(device_of(i), "add", mem(buffers[i]), cl_int{1});
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    finish();
    for (size_t i = 0; i < buffers.size(); ++i)
        expect_numbers(buffers[i], static_cast<cl_int>(i + (i % 2 == 0 && i + 1 < buffers.size() ? 1 : 0)),
                       device_of(i));
}

// The application may free its memory when the buffer is released and its commands are complete, also while an eviction writes to it.
TEST_F(Oversubscription, ReleasedMemoryOfTheApplicationIsItsOwn) {
    std::vector<cl_int> own(items + 1);
    for (const size_t shift : {0, 1}) {  // used as host memory in place, or a memory of its own
        OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, own.data() + shift);
        run(1, "number", mem(buffer), 1);
        finish();
        std::vector<OwnedMem> others;
        for (size_t i = 0; i < memory_bytes / bytes; ++i) {
            others.push_back(make_buffer(bytes));
            run(1, "number", mem(others.back()), 0);
        }
        buffer = OwnedMem();
        std::ranges::fill(own, -7);
        finish();
        EXPECT_EQ(std::ranges::count(own, -7), static_cast<ptrdiff_t>(own.size())) << shift;
    }
}

// The same while another thread's commands need the device's memory all the time.
TEST_F(Oversubscription, ReleasedMemoryIsTheApplicationsWhileAnotherThreadEvicts) {
    std::atomic<bool> done{false};
    std::thread other([&] {
        std::vector<OwnedMem> others;
        for (size_t i = 0; i <= memory_bytes / bytes; ++i)
            others.push_back(make_buffer(bytes));
        for (size_t i = 0; !done; ++i) {
            run(1, "number", mem(others[i % others.size()]), 0);
            if (i % 8 == 7) {
                EXPECT_EQ(clFinish(queues_[1]), CL_SUCCESS);
            }
        }
    });
    const OwnedQueue mine = make_queue(devices[1]);
    std::vector<cl_int> own(items);
    for (int round = 0; round < 60; ++round) {
        {
            const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, own.data());
            EXPECT_EQ(try_run(mine, "number", items, nullptr, mem(buffer), cl_int{1}), CL_SUCCESS);
            EXPECT_EQ(clFinish(mine), CL_SUCCESS);
            std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 16)));
        }
        std::ranges::fill(own, -7);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_EQ(std::ranges::count(own, -7), static_cast<ptrdiff_t>(own.size())) << round;
    }
    done = true;
    other.join();
}

// Shared virtual memory is the library's, also for parts of a buffer over it that are released.
TEST_F(Oversubscription, SharedVirtualMemoryGoesBackToTheHostWhenASubBufferWasReleased) {
    constexpr size_t most = memory_bytes / 16 * 10;
    auto* const svm = static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, most, 0));
    ASSERT_NE(svm, nullptr);
    {
        const OwnedMem over = make_buffer(most, CL_MEM_USE_HOST_PTR, svm);
        sub_buffer(over, 0, most).reset();
        run(1, "number", mem(over), 7);
        const OwnedMem other = make_buffer(most);
        run(1, "number", mem(other), 1);
        expect_numbers(over, 7, 1);
        expect_numbers(other, 1, 1);
    }
    finish();
    clSVMFree(context, svm);
}

// A buffer that a command uses may be in the middle of the memory, so that the command's other buffers do not fit beside it.
TEST_F(Oversubscription, CommandThatFitsFindsRoomBesideItsOwnMemory) {
    for (size_t used = 0; used < 3; ++used) {
        std::vector<OwnedMem> thirds;
        for (cl_int i = 0; i < 3; ++i) {
            thirds.push_back(make_buffer(memory_bytes / 16 * 5));
            run(1, "number", mem(thirds.back()), i);
        }
        const OwnedMem rest = make_buffer(memory_bytes / 16 * 10);
        const cl_mem both[] = {thirds[used], rest};
        ASSERT_EQ(clEnqueueMigrateMemObjects(queues_[1], 2, both, 0, 0, nullptr, nullptr), CL_SUCCESS);
        run(1, "sum_of", both[0], both[0], both[1]);
        for (cl_int i = 0; i < 3; ++i)
            expect_numbers(thirds[static_cast<size_t>(i)], i, 1);
        const std::vector<cl_int> seen = read<cl_int>(rest, items, queues_[1]);
        for (size_t i = 0; i < items; ++i)
            ASSERT_EQ(seen[i], 2 * static_cast<cl_int>(used + i)) << i;
    }
}

TEST_F(Oversubscription, LaunchThatCannotFitFailsAndTheContextGoesOn) {
    std::vector<OwnedMem> buffers;
    for (size_t i = 0; i < 3; ++i)
        buffers.push_back(make_buffer(memory_bytes / 2));
    EXPECT_EQ(try_run(queues_[1], "sum_of", items, nullptr, mem(buffers[0]), mem(buffers[1]), mem(buffers[2])),
              CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT_EQ(spaces()[1].used_bytes, 0u);
    ASSERT_EQ(try_run(queues_[1], "number", items, nullptr, mem(buffers[0]), cl_int{3}), CL_SUCCESS);
    ASSERT_EQ(try_run(queues_[1], "sum_of", items, nullptr, mem(buffers[0]), mem(buffers[0]), mem(buffers[1])),
              CL_SUCCESS);
    const std::vector<cl_int> seen = read<cl_int>(buffers[1], items, queues_[1]);
    for (size_t i = 0; i < items; ++i)
        ASSERT_EQ(seen[i], 2 * static_cast<cl_int>(3 + i)) << i;
}

// Sub-devices have one memory: replicas that one has used are evicted for another.
TEST_F(Oversubscription, SubDevicesShareTheMemoryThatIsTooSmall) {
    const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_uint available = 0;
    if (clCreateSubDevices(devices[1], by_one, 0, nullptr, &available) != CL_SUCCESS || available < 2)
        GTEST_SKIP() << "a device of one compute unit";
    std::vector<cl_device_id> parts(available);
    ASSERT_EQ(clCreateSubDevices(devices[1], by_one, available, parts.data(), nullptr), CL_SUCCESS);
    {
        cl_int error = CL_INVALID_VALUE;
        const OwnedContext mine =
            clCreateContext(nullptr, static_cast<cl_uint>(parts.size()), parts.data(), nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        const char* text = kernels;
        const OwnedProgram program = clCreateProgramWithSource(mine, 1, &text, nullptr, &error);
        ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
        const OwnedKernel add = clCreateKernel(program, "add", &error);
        ASSERT_EQ(error, CL_SUCCESS);
        std::vector<OwnedQueue> queues;
        for (const cl_device_id part : parts)
            queues.emplace_back(clCreateCommandQueueWithProperties(mine, part, nullptr, &error));
        std::vector<OwnedMem> buffers;
        constexpr size_t count = 4 * memory_bytes / bytes;
        for (size_t i = 0; i < count; ++i) {
            const auto first = static_cast<cl_int>(i);
            buffers.emplace_back(clCreateBuffer(mine, CL_MEM_READ_WRITE, bytes, nullptr, &error));
            ASSERT_EQ(error, CL_SUCCESS);
            ASSERT_EQ(clEnqueueFillBuffer(queues[i % available], buffers[i], &first, sizeof first, 0, bytes, 0, nullptr,
                                          nullptr),
                      CL_SUCCESS);
        }
        for (const OwnedQueue& each : queues)
            ASSERT_EQ(clFinish(each), CL_SUCCESS);
        for (cl_int pass = 1; pass <= 2; ++pass) {
            for (size_t i = 0; i < count; ++i) {
                const cl_mem buffer = buffers[i];
                const cl_int value = 1000 * pass;
                ASSERT_EQ(clSetKernelArg(add, 0, sizeof buffer, &buffer), CL_SUCCESS);
                ASSERT_EQ(clSetKernelArg(add, 1, sizeof value, &value), CL_SUCCESS);
                const cl_command_queue on = queues[(i + static_cast<size_t>(pass)) % available];
                ASSERT_EQ(clEnqueueNDRangeKernel(on, add, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
                          CL_SUCCESS);
            }
            for (const OwnedQueue& each : queues)
                ASSERT_EQ(clFinish(each), CL_SUCCESS);
        }
        std::vector<cl_int> seen(items);
        for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(clEnqueueReadBuffer(queues[0], buffers[i], CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(std::ranges::count(seen, static_cast<cl_int>(i) + 3000), static_cast<ptrdiff_t>(items)) << i;
        }
    }
    for (const cl_device_id part : parts)
        EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);
}

// AMD's query, which programs ask before they create buffers.
TEST_F(Oversubscription, FreeMemoryIsTheTrueFigure) {
    const auto free_kib = [&] {
        std::array<size_t, 2> kib{};
        EXPECT_EQ(
            clGetDeviceInfo(devices[1], 0x4039 /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD */, sizeof kib, kib.data(), nullptr),
            CL_SUCCESS);
        return kib;
    };
    EXPECT_EQ(free_kib(), (std::array<size_t, 2>{memory_bytes / 1024, memory_bytes / 1024}));
    const OwnedMem buffer = make_buffer(bytes);
    EXPECT_EQ(free_kib()[0], memory_bytes / 1024);  // promised, not committed
    run(1, "number", mem(buffer), cl_int{0});
    finish();
    EXPECT_EQ(free_kib()[0], (memory_bytes - bytes) / 1024);
}

// A region that was reserved for a buffer and has none now is released when a larger buffer needs its memory.
TEST_F(Oversubscription, FreeMemoryIsOnePieceWhenNoBufferIsLeft) {
    for (const size_t size : {memory_bytes - MiB, memory_bytes}) {
        {
            const OwnedMem buffer = make_buffer(size);
            run(1, "number", mem(buffer), cl_int{0});
            finish();
        }
        const cl_memory_space_polder space = spaces()[1];
        EXPECT_EQ(space.free_bytes, memory_bytes);
        EXPECT_EQ(space.largest_free_bytes, memory_bytes);
    }
}

// Each thread has a context of its own; all of them share the devices.
TEST_F(Oversubscription, ContextsInThreadsShareTheDevices) {
    constexpr size_t thread_count = 4;
    const size_t count = buffer_count() / thread_count;
    std::vector<std::thread> threads;
    std::atomic<size_t> wrong{0}, failed{0};
    for (size_t number = 0; number < thread_count; ++number)
        threads.emplace_back([&, number] {
            cl_int error = CL_SUCCESS;
            const auto check = [&](cl_int result) { failed += result != CL_SUCCESS; };
            const OwnedContext mine = clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(),
                                                      nullptr, nullptr, &error);
            check(error);
            const char* text = kernels;
            const OwnedProgram program = clCreateProgramWithSource(mine, 1, &text, nullptr, &error);
            check(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr));
            const OwnedKernel add = clCreateKernel(program, "add", &error);
            check(error);
            std::vector<OwnedQueue> queues;
            for (const cl_device_id device : devices) {
                queues.emplace_back(clCreateCommandQueueWithProperties(mine, device, nullptr, &error));
                check(error);
            }
            std::vector<OwnedMem> buffers;
            const auto zero = static_cast<cl_int>(number);
            for (size_t i = 0; i < count; ++i) {
                buffers.emplace_back(clCreateBuffer(mine, CL_MEM_READ_WRITE, bytes, nullptr, &error));
                check(clEnqueueFillBuffer(queues[device_of(i)], buffers[i], &zero, 4, 0, bytes, 0, nullptr, nullptr));
            }
            for (cl_int round = 0; round < 3; ++round)
                for (size_t i = 0; i < count; ++i) {
                    const cl_command_queue of_device = queues[device_of(i)];
                    const cl_mem buffer = buffers[i];
                    const cl_int value = 10;
                    const size_t all = items;
                    check(clSetKernelArg(add, 0, sizeof buffer, &buffer));
                    check(clSetKernelArg(add, 1, sizeof value, &value));
                    check(clEnqueueNDRangeKernel(of_device, add, 1, nullptr, &all, nullptr, 0, nullptr, nullptr));
                }
            std::vector<cl_int> seen(items);
            for (size_t i = 0; i < count; ++i) {
                check(clEnqueueReadBuffer(queues[device_of(i)], buffers[i], CL_TRUE, 0, bytes, seen.data(), 0, nullptr,
                                          nullptr));
                for (const cl_int value : seen)
                    wrong += value != zero + 30;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(failed, 0u);
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace polder::test
