// cl_khr_semaphore: binary semaphores between queues.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <type_traits>

namespace polder::test {
namespace {

// Constants of newer headers.
constexpr cl_semaphore_properties_khr device_handle_list = 0x2053;
constexpr cl_semaphore_info_khr export_handle_types = 0x203F;
constexpr cl_semaphore_info_khr exportable = 0x2054;
constexpr cl_int invalid_semaphore = -1142;

template <class Function>
Function* function(const char* name) {
    auto* const found = reinterpret_cast<Function*>(clGetExtensionFunctionAddressForPlatform(platform(), name));
    EXPECT_NE(found, nullptr) << name;
    return found;
}

class Semaphores : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        create = function<std::remove_pointer_t<clCreateSemaphoreWithPropertiesKHR_fn>>(
            "clCreateSemaphoreWithPropertiesKHR");
        wait = function<std::remove_pointer_t<clEnqueueWaitSemaphoresKHR_fn>>("clEnqueueWaitSemaphoresKHR");
        signal = function<std::remove_pointer_t<clEnqueueSignalSemaphoresKHR_fn>>("clEnqueueSignalSemaphoresKHR");
        get_info = function<std::remove_pointer_t<clGetSemaphoreInfoKHR_fn>>("clGetSemaphoreInfoKHR");
        retain = function<std::remove_pointer_t<clRetainSemaphoreKHR_fn>>("clRetainSemaphoreKHR");
        release = function<std::remove_pointer_t<clReleaseSemaphoreKHR_fn>>("clReleaseSemaphoreKHR");
    }

    void TearDown() override {
        for (const cl_semaphore_khr one : made)
            EXPECT_EQ(release(one), CL_SUCCESS);
    }

    cl_semaphore_khr make(cl_device_id device) {
        const cl_semaphore_properties_khr list[] = {CL_SEMAPHORE_TYPE_KHR,
                                                    CL_SEMAPHORE_TYPE_BINARY_KHR,
                                                    device_handle_list,
                                                    reinterpret_cast<cl_semaphore_properties_khr>(device),
                                                    0,
                                                    0};
        cl_int error = CL_INVALID_VALUE;
        made.push_back(create(context, list, &error));
        EXPECT_EQ(error, CL_SUCCESS);
        return made.back();
    }

    cl_int creation_error(const std::vector<cl_semaphore_properties_khr>& list) {
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(create(context, list.data(), &error), nullptr);
        return error;
    }

    cl_semaphore_payload_khr payload(cl_semaphore_khr semaphore) {
        cl_semaphore_payload_khr value = 7;
        EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_PAYLOAD_KHR, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }

    // An event of the fixture's own, released at the end.
    OwnedEvent wait_on(cl_command_queue on, cl_semaphore_khr semaphore, cl_event after = nullptr) {
        OwnedEvent event;
        EXPECT_EQ(wait(on, 1, &semaphore, nullptr, after ? 1 : 0, after ? &after : nullptr, event.out()), CL_SUCCESS);
        return event;
    }
    OwnedEvent signal_on(cl_command_queue on, cl_semaphore_khr semaphore, cl_event after = nullptr) {
        OwnedEvent event;
        EXPECT_EQ(signal(on, 1, &semaphore, nullptr, after ? 1 : 0, after ? &after : nullptr, event.out()), CL_SUCCESS);
        return event;
    }

    cl_int status(cl_event event) {
        cl_int value = 1000;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }

    clCreateSemaphoreWithPropertiesKHR_fn create = nullptr;
    clEnqueueWaitSemaphoresKHR_fn wait = nullptr;
    clEnqueueSignalSemaphoresKHR_fn signal = nullptr;
    clGetSemaphoreInfoKHR_fn get_info = nullptr;
    clRetainSemaphoreKHR_fn retain = nullptr;
    clReleaseSemaphoreKHR_fn release = nullptr;
    std::vector<cl_semaphore_khr> made;
};

TEST_F(Semaphores, WaitComesAfterTheSignalOfAnotherQueue) {
    cl_semaphore_khr semaphore = make(devices[0]);
    OwnedQueue other = make_queue(devices[0]);
    OwnedEvent gate = make_user_event();
    OwnedMem buffer = make_buffer(4096);
    const cl_uint one = 1, two = 2;
    // The signal and all before it in its queue are held back by the gate.
    ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &one, sizeof one, 0, 4096, 1, gate.in(), nullptr), CL_SUCCESS);
    OwnedEvent signaled = signal_on(queue, semaphore);
    OwnedEvent waited = wait_on(other, semaphore);
    ASSERT_EQ(clEnqueueFillBuffer(other, buffer, &two, sizeof two, 0, 2048, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(payload(semaphore), 0u);
    EXPECT_GT(status(waited), CL_COMPLETE);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clFinish(other), CL_SUCCESS);
    EXPECT_EQ(status(signaled), CL_COMPLETE);
    const auto found = read<cl_uint>(buffer, 1024, other);
    EXPECT_EQ(found[0], 2u);
    EXPECT_EQ(found[1023], 1u);
}

TEST_F(Semaphores, WaitMayBeEnqueuedBeforeItsSignal) {
    cl_semaphore_khr semaphore = make(devices[0]);
    OwnedQueue other = make_queue(devices[0]);
    OwnedEvent waited = wait_on(other, semaphore);
    EXPECT_GT(status(waited), CL_COMPLETE);
    OwnedEvent signaled = signal_on(queue, semaphore);
    ASSERT_EQ(clFinish(other), CL_SUCCESS);
    EXPECT_EQ(status(waited), CL_COMPLETE);
    // The wait has consumed the signal.
    EXPECT_EQ(payload(semaphore), 0u);
}

TEST_F(Semaphores, PayloadFollowsSignalsAndWaits) {
    cl_semaphore_khr semaphore = make(devices[0]);
    EXPECT_EQ(payload(semaphore), 0u);
    for (int round = 0; round < 3; ++round) {
        OwnedEvent signaled = signal_on(queue, semaphore);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        EXPECT_EQ(payload(semaphore), 1u);
        OwnedEvent gate = make_user_event();
        OwnedEvent waited = wait_on(queue, semaphore, gate);
        EXPECT_EQ(payload(semaphore), 1u);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        EXPECT_EQ(payload(semaphore), 0u);
    }
}

// Two queues take turns a thousand times; each adds to the result of the other.
TEST_F(Semaphores, QueuesTakeTurns) {
    cl_semaphore_khr there = make(devices[0]), back = make(devices[0]);
    OwnedQueue other = make_queue(devices[0]);
    OwnedMem buffer = make_buffer(2 * sizeof(cl_uint));
    write<cl_uint>(buffer, {0, 0});
    OwnedProgram program = build("kernel void step(global uint* a, uint from) { a[1 - from] = a[from] + 1; }");
    OwnedKernel kernel = make_kernel(program, "step");
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    const size_t size = 1;
    constexpr cl_uint rounds = 500;
    for (cl_uint round = 0; round < rounds; ++round) {
        const cl_uint zero = 0, one = 1;
        if (round)
            wait_on(queue, back);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof zero, &zero), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        signal_on(queue, there);
        wait_on(other, there);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(other, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        signal_on(other, back);
    }
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    ASSERT_EQ(clFinish(other), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(buffer, 2), (std::vector<cl_uint>{2 * rounds, 2 * rounds - 1}));
}

TEST_F(Semaphores, FailureOfASignalIsThatOfItsWait) {
    cl_semaphore_khr semaphore = make(devices[0]), later = make(devices[0]);
    OwnedQueue other = make_queue(devices[0]);
    OwnedEvent gate = make_user_event();
    OwnedEvent before = wait_on(other, later);
    OwnedEvent signaled = signal_on(queue, semaphore, gate);
    OwnedQueue third = make_queue(devices[0]);
    OwnedEvent after = wait_on(third, semaphore);
    OwnedEvent signaled_later = signal_on(queue, later, gate);
    ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
    for (const cl_event event : {static_cast<cl_event>(signaled), static_cast<cl_event>(after),
                                 static_cast<cl_event>(before), static_cast<cl_event>(signaled_later)}) {
        static_cast<void>(clWaitForEvents(1, &event));
        EXPECT_LT(status(event), 0);
    }
    EXPECT_EQ(payload(semaphore), 0u);
}

TEST_F(Semaphores, QueriesAnswer) {
    cl_semaphore_khr semaphore = make(devices[0]);
    cl_context its_context = nullptr;
    EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_CONTEXT_KHR, sizeof its_context, &its_context, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_context, context);
    cl_uint count = 0;
    EXPECT_EQ(retain(semaphore), CL_SUCCESS);
    EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_REFERENCE_COUNT_KHR, sizeof count, &count, nullptr), CL_SUCCESS);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(release(semaphore), CL_SUCCESS);
    cl_semaphore_type_khr type = 0;
    EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_TYPE_KHR, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_semaphore_type_khr{CL_SEMAPHORE_TYPE_BINARY_KHR});
    cl_semaphore_properties_khr list[6] = {};
    size_t size = 0;
    EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_PROPERTIES_KHR, sizeof list, list, &size), CL_SUCCESS);
    EXPECT_EQ(size, sizeof list);
    EXPECT_EQ(list[0], cl_semaphore_properties_khr{CL_SEMAPHORE_TYPE_KHR});
    EXPECT_EQ(list[3], reinterpret_cast<cl_semaphore_properties_khr>(devices[0]));
    cl_device_id device = nullptr;
    EXPECT_EQ(get_info(semaphore, device_handle_list, sizeof device, &device, &size), CL_SUCCESS);
    EXPECT_EQ(device, devices[0]);
    EXPECT_EQ(get_info(semaphore, export_handle_types, 0, nullptr, &size), CL_SUCCESS);
    EXPECT_EQ(size, 0u);
    cl_bool can = CL_TRUE;
    EXPECT_EQ(get_info(semaphore, exportable, sizeof can, &can, nullptr), CL_SUCCESS);
    EXPECT_EQ(can, cl_bool{CL_FALSE});
    EXPECT_EQ(get_info(semaphore, 0x1, sizeof size, &size, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(get_info(semaphore, CL_SEMAPHORE_TYPE_KHR, 1, &type, nullptr), CL_INVALID_VALUE);
    for (const cl_device_id each : devices) {
        EXPECT_EQ(clGetDeviceInfo(each, CL_DEVICE_SEMAPHORE_TYPES_KHR, sizeof type, &type, nullptr), CL_SUCCESS);
        EXPECT_EQ(type, cl_semaphore_type_khr{CL_SEMAPHORE_TYPE_BINARY_KHR});
    }
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_SEMAPHORE_TYPES_KHR, sizeof type, &type, nullptr), CL_SUCCESS);
    OwnedEvent signaled = signal_on(queue, semaphore), waited = wait_on(queue, semaphore);
    cl_command_type command = 0;
    EXPECT_EQ(clGetEventInfo(signaled, CL_EVENT_COMMAND_TYPE, sizeof command, &command, nullptr), CL_SUCCESS);
    EXPECT_EQ(command, cl_command_type{CL_COMMAND_SEMAPHORE_SIGNAL_KHR});
    EXPECT_EQ(clGetEventInfo(waited, CL_EVENT_COMMAND_TYPE, sizeof command, &command, nullptr), CL_SUCCESS);
    EXPECT_EQ(command, cl_command_type{CL_COMMAND_SEMAPHORE_WAIT_KHR});
}

TEST_F(Semaphores, CreationReportsEveryBadArgument) {
    const auto handle = reinterpret_cast<cl_semaphore_properties_khr>(devices[0]);
    const auto foreign = reinterpret_cast<cl_semaphore_properties_khr>(foreign_handle<cl_device_id>(context));
    constexpr cl_semaphore_properties_khr type = CL_SEMAPHORE_TYPE_KHR, binary = CL_SEMAPHORE_TYPE_BINARY_KHR;
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(create(context, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_semaphore_properties_khr good[] = {type, binary, device_handle_list, handle, 0, 0};
    EXPECT_EQ(create(foreign_handle<cl_context>(context), good, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(creation_error({0}), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error({device_handle_list, handle, 0, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error({type, 2, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(creation_error({type, binary, type, binary, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(creation_error({type, binary, 0x7777, 1, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(creation_error({type, binary, device_handle_list, 0, 0}), CL_INVALID_DEVICE);
    EXPECT_EQ(creation_error({type, binary, device_handle_list, handle, handle, 0, 0}), CL_INVALID_DEVICE);
    EXPECT_EQ(creation_error({type, binary, device_handle_list, foreign, 0, 0}), CL_INVALID_DEVICE);
    if (devices.size() > 1) {
        EXPECT_EQ(creation_error({type, binary, 0}), CL_INVALID_PROPERTY);
    }
    EXPECT_EQ(retain(foreign_handle<cl_semaphore_khr>(context)), invalid_semaphore);
    EXPECT_EQ(release(foreign_handle<cl_semaphore_khr>(context)), invalid_semaphore);
    EXPECT_EQ(get_info(foreign_handle<cl_semaphore_khr>(context), CL_SEMAPHORE_TYPE_KHR, 0, nullptr, nullptr),
              invalid_semaphore);
}

TEST_F(Semaphores, CommandsReportEveryBadArgument) {
    cl_semaphore_khr semaphore = make(devices[0]);
    const cl_semaphore_khr foreign = foreign_handle<cl_semaphore_khr>(context);
    cl_int error = CL_SUCCESS;
    OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedQueue stranger = clCreateCommandQueueWithProperties(elsewhere, devices[0], nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedEvent others = clCreateUserEvent(elsewhere, &error);
    OwnedEvent failed = make_user_event();
    EXPECT_EQ(clSetUserEventStatus(failed, -5), CL_SUCCESS);
    for (const auto& call : {wait, signal}) {
        EXPECT_EQ(call(foreign_handle<cl_command_queue>(context), 1, &semaphore, nullptr, 0, nullptr, nullptr),
                  CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(call(queue, 0, &semaphore, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(call(queue, 1, nullptr, nullptr, 0, nullptr, nullptr), invalid_semaphore);
        EXPECT_EQ(call(queue, 1, &foreign, nullptr, 0, nullptr, nullptr), invalid_semaphore);
        EXPECT_EQ(call(stranger, 1, &semaphore, nullptr, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
        EXPECT_EQ(call(queue, 1, &semaphore, nullptr, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(call(queue, 1, &semaphore, nullptr, 1, others.in(), nullptr), CL_INVALID_CONTEXT);
        EXPECT_EQ(call(queue, 1, &semaphore, nullptr, 1, failed.in(), nullptr),
                  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        if (devices.size() > 1) {
            OwnedQueue second = make_queue(devices[1]);
            EXPECT_EQ(call(second, 1, &semaphore, nullptr, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
        }
    }
    EXPECT_EQ(clSetUserEventStatus(others, CL_COMPLETE), CL_SUCCESS);
}

// Programs look for the function of cl_khr_external_semaphore together with the others.
TEST_F(Semaphores, HaveNoHandlesToExport) {
    auto* const get_handle =
        function<std::remove_pointer_t<clGetSemaphoreHandleForTypeKHR_fn>>("clGetSemaphoreHandleForTypeKHR");
    ASSERT_NE(get_handle, nullptr);
    cl_semaphore_khr semaphore = make(devices[0]);
    int descriptor = -1;
    const auto error_of = [&](cl_semaphore_khr of, cl_device_id device) {
        return get_handle(of, device, CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR, sizeof descriptor, &descriptor, nullptr);
    };
    EXPECT_EQ(error_of(foreign_handle<cl_semaphore_khr>(context), devices[0]), invalid_semaphore);
    EXPECT_EQ(error_of(semaphore, foreign_handle<cl_device_id>(context)), CL_INVALID_DEVICE);
    if (devices.size() > 1) {
        EXPECT_EQ(error_of(semaphore, devices[1]), CL_INVALID_DEVICE);
    }
    EXPECT_EQ(error_of(semaphore, devices[0]), CL_INVALID_VALUE);
    EXPECT_EQ(descriptor, -1);
}

} // namespace
} // namespace polder::test
