// cl_intel_unified_shared_memory, on every device of the context.
#include "support/usm.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>

namespace polder::test {
namespace {

TEST_F(Usm, IsReported) {
    for (const cl_device_id device : devices) {
        std::string names(4096, '\0');
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, names.size(), names.data(), nullptr), CL_SUCCESS);
        EXPECT_NE(names.find("cl_intel_unified_shared_memory"), std::string::npos);
    }
}

// The CPU has all kinds of memory, GPUs all but that of the system, and atomic operations there for themselves alone.
TEST_F(Usm, CapabilitiesAreThoseOfTheDevice) {
    constexpr cl_device_unified_shared_memory_capabilities_intel
        by_one = CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL | CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL,
        at_once = by_one | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL,
        all = at_once | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL;
    for (size_t i = 0; i < devices.size(); ++i) {
        cl_device_type type = 0;
        ASSERT_EQ(clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
        const bool is_cpu = type & CL_DEVICE_TYPE_CPU;
        // A fake GPU may be one whose kernels do not use the host's addresses.
        const bool is_gpu = (type & CL_DEVICE_TYPE_GPU) && !std::getenv("FAKE_CUDA_OTHER_POINTERS");
        EXPECT_EQ(capabilities(i, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL), is_cpu ? all : by_one) << i;
        for (const cl_device_info name :
             {CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
              CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL})
            EXPECT_EQ(capabilities(i, name), is_cpu ? all : is_gpu ? at_once : 0) << i;
        EXPECT_EQ(capabilities(i, CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL), is_cpu ? all : 0) << i;
    }
}

TEST_F(Usm, KernelsAndCopiesUseDeviceMemoryOfEveryDevice) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        cl_int* const memory = device_memory(i);
        const std::vector<cl_int> start = numbers(0);
        ASSERT_EQ(copy(on, CL_FALSE, memory, start.data(), bytes, 0, nullptr, nullptr), CL_SUCCESS);
        launch(on, kernel_with("add", memory, 5));
        launch(on, kernel_with("add", memory + 100, 1000), count - 100);  // into the allocation
        std::vector<cl_int> expected = numbers(5);
        std::for_each(expected.begin() + 100, expected.end(), [](cl_int& value) { value += 1000; });
        EXPECT_EQ(contents(on, memory), expected) << i;
        const cl_int pattern = 9;
        ASSERT_EQ(fill(on, memory + 10, &pattern, sizeof pattern, 40, 0, nullptr, nullptr), CL_SUCCESS);
        std::fill_n(expected.begin() + 10, 10, 9);
        EXPECT_EQ(contents(on, memory), expected) << i;
        EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    }
}

TEST_F(Usm, MemoryIsCopiedFromEveryDeviceToEveryOtherOnAnyQueue) {
    std::vector<OwnedQueue> queues;
    std::vector<cl_int*> memory;
    for (size_t i = 0; i < devices.size(); ++i) {
        queues.push_back(make_queue(devices[i]));
        memory.push_back(device_memory(i));
    }
    cl_int first = 0;
    for (size_t from = 0; from < devices.size(); ++from)
        for (size_t to = 0; to < devices.size(); ++to)
            for (size_t on = 0; on < devices.size(); ++on) {
                if (from == to)
                    continue;
                const std::vector<cl_int> start = numbers(first += 10);
                ASSERT_EQ(copy(queues[from], CL_TRUE, memory[from], start.data(), bytes, 0, nullptr, nullptr),
                          CL_SUCCESS);
                ASSERT_EQ(copy(queues[on], CL_TRUE, memory[to], memory[from], bytes, 0, nullptr, nullptr), CL_SUCCESS);
                launch(queues[to], kernel_with("add", memory[to], 1));
                ASSERT_EQ(clFinish(queues[to]), CL_SUCCESS);
                EXPECT_EQ(contents(queues[on], memory[to]), numbers(first + 1)) << from << to << on;
            }
    for (cl_int* each : memory)
        EXPECT_EQ(free_blocking(context, each), CL_SUCCESS);
}

TEST_F(Usm, KernelsFollowPointersInMemoryByListAndByKind) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        cl_int* const parts[] = {device_memory(i), device_memory(i)};
        auto* const table = reinterpret_cast<cl_int**>(device_memory(i, sizeof parts));
        const std::vector<cl_int> start = numbers(0);
        for (cl_int* part : parts)
            ASSERT_EQ(copy(on, CL_TRUE, part, start.data(), bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(copy(on, CL_TRUE, table, parts, sizeof parts, 0, nullptr, nullptr), CL_SUCCESS);
        // The newest bytes of one part are in another memory.
        if (i != 0) {
            ASSERT_EQ(copy(queue, CL_TRUE, parts[1], numbers(50).data(), bytes, 0, nullptr, nullptr), CL_SUCCESS);
        }
        const cl_int first = i != 0 ? 50 : 0;
        for (const bool by_list : {true, false}) {
            const OwnedKernel kernel = make_kernel(program, "follow");
            const cl_int entries = 2, value = by_list ? 1 : 10;
            ASSERT_EQ(set_pointer(kernel, 0, table), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof entries, &entries), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof value, &value), CL_SUCCESS);
            const cl_bool yes = CL_TRUE;
            if (by_list) {
                ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof parts, parts),
                          CL_SUCCESS);
            } else
                ASSERT_EQ(
                    clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL, sizeof yes, &yes),
                    CL_SUCCESS);
            launch(on, kernel);
            ASSERT_EQ(clFinish(on), CL_SUCCESS);
            const cl_int added = by_list ? 1 : 11;
            EXPECT_EQ(contents(queue, parts[0]), numbers(added)) << i;
            EXPECT_EQ(contents(queue, parts[1]), numbers(first + added)) << i;
        }
        for (cl_int* part : parts)
            EXPECT_EQ(free_memory(context, part), CL_SUCCESS);
        EXPECT_EQ(free_memory(context, table), CL_SUCCESS);
    }
}

TEST_F(Usm, AddressesAreNumbersToo) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        cl_int* const memory = device_memory(i);
        ASSERT_EQ(copy(on, CL_TRUE, memory, numbers(0).data(), bytes, 0, nullptr, nullptr), CL_SUCCESS);
        const OwnedKernel kernel = make_kernel(program, "by_number");
        const auto address = static_cast<cl_ulong>(reinterpret_cast<uintptr_t>(memory));
        const cl_int value = 3;
        void* const used[] = {memory};
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof address, &address), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof used, used), CL_SUCCESS);
        launch(on, kernel);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_EQ(contents(on, memory), numbers(3)) << i;
        EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    }
}

TEST_F(Usm, QueriesDescribeAllocations) {
    const cl_mem_properties_intel combined[] = {CL_MEM_ALLOC_FLAGS_INTEL, CL_MEM_ALLOC_WRITE_COMBINED_INTEL, 0};
    const size_t last = devices.size() - 1;
    auto* const on_device = static_cast<char*>(device_alloc(context, devices[last], combined, 1000, 64, nullptr));
    auto* const on_host = static_cast<char*>(host_alloc(context, nullptr, 500, 0, nullptr));
    auto* const shared = static_cast<char*>(shared_alloc(context, nullptr, nullptr, 200, 0, nullptr));
    const auto get = [&]<class T>(const void* pointer, cl_mem_info_intel name, T value) {
        EXPECT_EQ(alloc_info(context, pointer, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    };
    const cl_unified_shared_memory_type_intel type{};
    EXPECT_EQ(get(on_device + 999, CL_MEM_ALLOC_TYPE_INTEL, type), cl_uint{CL_MEM_TYPE_DEVICE_INTEL});
    EXPECT_EQ(get(on_device + 1000, CL_MEM_ALLOC_TYPE_INTEL, type), cl_uint{CL_MEM_TYPE_UNKNOWN_INTEL});
    EXPECT_EQ(get(on_host, CL_MEM_ALLOC_TYPE_INTEL, type), cl_uint{CL_MEM_TYPE_HOST_INTEL});
    EXPECT_EQ(get(shared, CL_MEM_ALLOC_TYPE_INTEL, type), cl_uint{CL_MEM_TYPE_SHARED_INTEL});
    EXPECT_EQ(get(&last, CL_MEM_ALLOC_TYPE_INTEL, type), cl_uint{CL_MEM_TYPE_UNKNOWN_INTEL});
    EXPECT_EQ(get(on_device + 10, CL_MEM_ALLOC_BASE_PTR_INTEL, static_cast<void*>(nullptr)), on_device);
    EXPECT_EQ(get(&last, CL_MEM_ALLOC_BASE_PTR_INTEL, static_cast<void*>(nullptr)), nullptr);
    EXPECT_EQ(get(on_device + 10, CL_MEM_ALLOC_SIZE_INTEL, size_t{0}), 1000u);
    EXPECT_EQ(get(&last, CL_MEM_ALLOC_SIZE_INTEL, size_t{1}), 0u);
    EXPECT_EQ(get(on_device, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id{}), devices[last]);
    EXPECT_EQ(get(shared, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id{}), nullptr);
    EXPECT_EQ(get(on_device, CL_MEM_ALLOC_FLAGS_INTEL, cl_mem_alloc_flags_intel{}),
              cl_ulong{CL_MEM_ALLOC_WRITE_COMBINED_INTEL});
    EXPECT_EQ(get(on_host, CL_MEM_ALLOC_FLAGS_INTEL, cl_mem_alloc_flags_intel{1}), 0u);
    EXPECT_EQ(alloc_info(context, on_host, CL_MEM_TYPE, 0, nullptr, nullptr), CL_INVALID_VALUE);
    cl_uint small = 0;
    EXPECT_EQ(alloc_info(context, on_host, CL_MEM_ALLOC_SIZE_INTEL, 2, &small, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(alloc_info(foreign_handle<cl_context>(context), on_host, CL_MEM_ALLOC_SIZE_INTEL, 0, nullptr, nullptr),
              CL_INVALID_CONTEXT);
    for (void* each : {on_device, on_host, shared})
        EXPECT_EQ(free_memory(context, each), CL_SUCCESS);
}

TEST_F(Usm, AllocationsRefuseBadArguments) {
    using Properties = std::vector<cl_mem_properties_intel>;
    const auto error_of = [&](auto&& allocate) {
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(allocate(&error), nullptr);
        return error;
    };
    const auto host = [&](cl_context in, const Properties& properties, size_t size, cl_uint alignment) {
        return error_of([&](cl_int* e) { return host_alloc(in, properties.data(), size, alignment, e); });
    };
    const auto device = [&](cl_device_id on, const Properties& properties, size_t size, cl_uint alignment) {
        return error_of([&](cl_int* e) { return device_alloc(context, on, properties.data(), size, alignment, e); });
    };
    const auto shared = [&](cl_device_id on, const Properties& properties, size_t size, cl_uint alignment) {
        return error_of([&](cl_int* e) { return shared_alloc(context, on, properties.data(), size, alignment, e); });
    };
    const Properties none{0};
    EXPECT_EQ(host(foreign_handle<cl_context>(context), none, 64, 0), CL_INVALID_CONTEXT);
    EXPECT_EQ(device(foreign_handle<cl_device_id>(context), none, 64, 0), CL_INVALID_DEVICE);
    EXPECT_EQ(shared(foreign_handle<cl_device_id>(context), none, 64, 0), CL_INVALID_DEVICE);
    for (const cl_uint alignment : {3u, 256u}) {
        EXPECT_EQ(host(context, none, 64, alignment), CL_INVALID_VALUE);
        EXPECT_EQ(device(devices.back(), none, 64, alignment), CL_INVALID_VALUE);
        EXPECT_EQ(shared(devices[0], none, 64, alignment), CL_INVALID_VALUE);
    }
    for (const size_t size : {size_t{0}, ~size_t{0}}) {
        EXPECT_EQ(host(context, none, size, 0), CL_INVALID_BUFFER_SIZE);
        EXPECT_EQ(device(devices.back(), none, size, 0), CL_INVALID_BUFFER_SIZE);
        EXPECT_EQ(shared(devices[0], none, size, 0), CL_INVALID_BUFFER_SIZE);
        EXPECT_EQ(shared(nullptr, none, size, 0), CL_INVALID_BUFFER_SIZE);
    }
    const cl_mem_properties_intel flags = CL_MEM_ALLOC_FLAGS_INTEL;
    const cl_mem_alloc_flags_intel on_device = CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL,
                                   on_host = CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
    for (const Properties& properties : {Properties{CL_MEM_FLAGS, 1, 0}, Properties{flags, 1, flags, 1, 0},
                                         Properties{flags, 1 << 10, 0}, Properties{flags, on_device | on_host, 0}}) {
        EXPECT_EQ(host(context, properties, 64, 0), CL_INVALID_PROPERTY);
        EXPECT_EQ(device(devices.back(), properties, 64, 0), CL_INVALID_PROPERTY);
        EXPECT_EQ(shared(devices[0], properties, 64, 0), CL_INVALID_PROPERTY);
    }
    EXPECT_EQ(host(context, {flags, on_device, 0}, 64, 0), CL_INVALID_PROPERTY);
    EXPECT_EQ(device(devices.back(), {flags, on_host, 0}, 64, 0), CL_INVALID_PROPERTY);
    for (size_t i = 0; i < devices.size(); ++i)
        if (!has_host_memory(i)) {
            EXPECT_EQ(shared(devices[i], none, 64, 0), CL_INVALID_OPERATION);
        }
    cl_int error = CL_INVALID_VALUE;
    const Properties placed{flags, on_device, 0};
    void* const memory = shared_alloc(context, devices[0], placed.data(), 64, 128, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 128, 0u);
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
}

TEST_F(Usm, FreeingRefusesWhatIsNoAllocation) {
    int elsewhere = 0;
    cl_int* const memory = device_memory(devices.size() - 1);
    void* const svm = clSVMAlloc(context, 0, 64, 0);
    for (const auto free : {free_memory, free_blocking}) {
        EXPECT_EQ(free(context, nullptr), CL_SUCCESS);
        EXPECT_EQ(free(context, &elsewhere), CL_INVALID_VALUE);
        EXPECT_EQ(free(context, memory + 1), CL_INVALID_VALUE);
        EXPECT_EQ(free(context, svm), CL_INVALID_VALUE);
        EXPECT_EQ(free(foreign_handle<cl_context>(context), memory), CL_INVALID_CONTEXT);
    }
    clSVMFree(context, memory);  // nor the other way round
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    EXPECT_EQ(free_memory(context, memory), CL_INVALID_VALUE);
    clSVMFree(context, svm);
}

TEST_F(Usm, CommandsReportBadArguments) {
    const size_t last = devices.size() - 1;
    const OwnedQueue on = make_queue(devices[last]);
    cl_int* const memory = device_memory(last);
    cl_int* const on_host = host_memory();
    const cl_int pattern = 1;
    char plain[64] = {};
    EXPECT_EQ(fill(on, nullptr, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, memory, nullptr, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, memory, &pattern, 3, 3, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, memory, &pattern, 4, 6, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, reinterpret_cast<char*>(memory) + 2, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, memory + count - 1, &pattern, 4, 8, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(copy(on, CL_TRUE, nullptr, memory, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(copy(on, CL_TRUE, memory, nullptr, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(copy(on, CL_TRUE, plain, memory + count - 1, 8, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(copy(on, CL_TRUE, memory, memory + 1, 8, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(copy(on, CL_TRUE, memory, plain, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(migrate(on, memory, bytes, cl_mem_migration_flags{1} << 20, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(migrate(on, memory, bytes, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(migrate(on, on_host, bytes, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(advise(on, memory, bytes, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(advise(on, memory, bytes, 0x4208, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(advise(on, memory, bytes, 1, 0, nullptr, nullptr), CL_INVALID_VALUE);
    // A device with memory of its own writes of the host's at most what is allocated as such.
    const bool has_all = capabilities(last, CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL) != 0;
    EXPECT_EQ(fill(on, on_host, &pattern, 4, 4, 0, nullptr, nullptr),
              has_host_memory(last) ? CL_SUCCESS : CL_INVALID_VALUE);
    EXPECT_EQ(fill(on, plain, &pattern, 1, 4, 0, nullptr, nullptr), has_all ? CL_SUCCESS : CL_INVALID_VALUE);
    const OwnedEvent failed = make_user_event();
    ASSERT_EQ(clSetUserEventStatus(failed, -1), CL_SUCCESS);
    EXPECT_EQ(copy(on, CL_TRUE, plain, memory, 4, 1, failed.in(), nullptr),
              CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(copy(on, CL_TRUE, plain, memory, 4, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    const cl_command_queue foreign = foreign_handle<cl_command_queue>(context);
    EXPECT_EQ(copy(foreign, CL_TRUE, plain, memory, 4, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(fill(foreign, memory, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(migrate(foreign, memory, 4, 0, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(advise(foreign, memory, 4, 0, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    ASSERT_EQ(clFinish(on), CL_SUCCESS);
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    EXPECT_EQ(free_memory(context, on_host), CL_SUCCESS);
}

TEST_F(Usm, EventsNameTheCommand) {
    cl_int* const memory = device_memory(0);
    const cl_int pattern = 1;
    char plain[4];
    const auto type_of = [](cl_event event) {
        cl_command_type type = 0;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
        return type;
    };
    OwnedEvent filled, copied, migrated, advised;
    ASSERT_EQ(fill(queue, memory, &pattern, 4, 4, 0, nullptr, filled.out()), CL_SUCCESS);
    ASSERT_EQ(copy(queue, CL_TRUE, plain, memory, 4, 0, nullptr, copied.out()), CL_SUCCESS);
    ASSERT_EQ(migrate(queue, memory, 4, 0, 0, nullptr, migrated.out()), CL_SUCCESS);
    ASSERT_EQ(advise(queue, memory, 4, 0, 0, nullptr, advised.out()), CL_SUCCESS);
    EXPECT_EQ(type_of(filled), cl_uint{CL_COMMAND_MEMFILL_INTEL});
    EXPECT_EQ(type_of(copied), cl_uint{CL_COMMAND_MEMCPY_INTEL});
    EXPECT_EQ(type_of(migrated), cl_uint{CL_COMMAND_MIGRATEMEM_INTEL});
    EXPECT_EQ(type_of(advised), cl_uint{CL_COMMAND_MEMADVISE_INTEL});
    EXPECT_EQ(free_blocking(context, memory), CL_SUCCESS);
}

TEST_F(Usm, KernelArgumentsAndExecInfoReportBadArguments) {
    const OwnedKernel kernel = make_kernel(program, "add");
    int anything = 0;
    EXPECT_EQ(set_pointer(foreign_handle<cl_kernel>(context), 0, nullptr), CL_INVALID_KERNEL);
    EXPECT_EQ(set_pointer(kernel, 2, nullptr), CL_INVALID_ARG_INDEX);
    EXPECT_EQ(set_pointer(kernel, 1, nullptr), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(set_pointer(kernel, 0, nullptr), CL_SUCCESS);
    EXPECT_EQ(set_pointer(kernel, 0, &anything), CL_SUCCESS);
    const cl_bool yes = CL_TRUE;
    for (const cl_kernel_exec_info name :
         {CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
          CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL}) {
        EXPECT_EQ(clSetKernelExecInfo(kernel, name, sizeof yes, &yes), CL_SUCCESS);
        EXPECT_EQ(clSetKernelExecInfo(kernel, name, 1, &yes), CL_INVALID_VALUE);
        EXPECT_EQ(clSetKernelExecInfo(kernel, name, sizeof yes, nullptr), CL_INVALID_VALUE);
    }
    void* pointers[] = {&anything};
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof pointers, pointers), CL_SUCCESS);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 5, pointers), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 0, nullptr), CL_SUCCESS);
}

// DPC++'s runtime sets all three for each kernel, also where the device has device memory alone.
TEST_F(Usm, ExecInfoAcceptsKindsOfMemoryThatTheDeviceDoesNotHave) {
    for (size_t i = 0; i < devices.size(); ++i) {
        cl_int error = CL_INVALID_VALUE;
        const OwnedContext alone = clCreateContext(nullptr, 1, &devices[i], nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        const char* source = usm_kernels;
        const OwnedProgram made = clCreateProgramWithSource(alone, 1, &source, nullptr, &error);
        ASSERT_EQ(clBuildProgram(made, 0, nullptr, "-cl-std=CL3.0", nullptr, nullptr), CL_SUCCESS);
        const OwnedKernel kernel = make_kernel(made, "add");
        const cl_bool yes = CL_TRUE;
        for (const cl_kernel_exec_info name :
             {CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
              CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL})
            EXPECT_EQ(clSetKernelExecInfo(kernel, name, sizeof yes, &yes), CL_SUCCESS) << i;
    }
}

TEST_F(Usm, MemoryThatIsNotFreedGoesWithItsContext) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        launch(on, kernel_with("add", device_memory(i), 1));
    }
    static_cast<void>(host_memory());
}

}  // namespace
}  // namespace polder::test
