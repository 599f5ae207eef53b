// Command buffers: bad arguments of every function, and queries.
#include "support/command_buffer.h"

#include <array>

namespace polder::test {
namespace {

TEST_F(CommandBuffers, ReportEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    const cl_command_queue on = queue;
    const auto& f = functions();
    EXPECT_EQ(f.CreateCommandBuffer(0, &on, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(f.CreateCommandBuffer(1, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_command_queue none = nullptr;
    EXPECT_EQ(f.CreateCommandBuffer(1, &none, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_COMMAND_QUEUE);
    const CommandProperty unknown[] = {12345, 0, 0}, flags[] = {CL_COMMAND_BUFFER_FLAGS_KHR, 64, 0},
                          twice_given[] = {CL_COMMAND_BUFFER_FLAGS_KHR, 0, CL_COMMAND_BUFFER_FLAGS_KHR, 0, 0};
    for (const CommandProperty* properties : {unknown, flags, twice_given}) {
        EXPECT_EQ(f.CreateCommandBuffer(1, &on, properties, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_VALUE);
    }
    OwnedCommandBuffer buffer = make(queue);
    EXPECT_EQ(enqueue(buffer), CL_INVALID_OPERATION);
    EXPECT_EQ(enqueue(nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(f.Finalize(nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(f.Retain(nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(f.Release(reinterpret_cast<cl_command_buffer_khr>(static_cast<cl_mem>(a))),
              CL_INVALID_COMMAND_BUFFER_KHR);

    OwnedKernel add = with("add", a, 1), bare = make_kernel(program, "add");
    const size_t one = 1;
    const auto kernel = [&](cl_command_queue queue_given, const CommandProperty* properties, cl_kernel which,
                            cl_uint dimensions, cl_uint num_points, const cl_sync_point_khr* points) {
        return f.Kernel(buffer, queue_given, properties, which, dimensions, nullptr, &one, nullptr, num_points, points,
                        nullptr, nullptr);
    };
    const cl_sync_point_khr point = 0;
    OwnedQueue another = make_queue(devices[0]);
    EXPECT_EQ(kernel(another, nullptr, add, 1, 0, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(kernel(nullptr, unknown, add, 1, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(kernel(nullptr, nullptr, nullptr, 1, 0, nullptr), CL_INVALID_KERNEL);
    EXPECT_EQ(kernel(nullptr, nullptr, bare, 1, 0, nullptr), CL_INVALID_KERNEL_ARGS);
    EXPECT_EQ(kernel(nullptr, nullptr, add, 4, 0, nullptr), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(kernel(nullptr, nullptr, add, 1, 1, nullptr), CL_INVALID_SYNC_POINT_WAIT_LIST_KHR);
    EXPECT_EQ(kernel(nullptr, nullptr, add, 1, 0, &point), CL_INVALID_SYNC_POINT_WAIT_LIST_KHR);
    EXPECT_EQ(kernel(nullptr, nullptr, add, 1, 1, &point), CL_INVALID_SYNC_POINT_WAIT_LIST_KHR);  // nothing is recorded
    EXPECT_EQ(kernel(nullptr, nullptr, add, 1, 0, nullptr), CL_SUCCESS);
    EXPECT_EQ(kernel(queue, nullptr, add, 1, 0, nullptr), CL_SUCCESS);
    EXPECT_EQ(kernel(nullptr, nullptr, add, 1, 1, &point), CL_SUCCESS);

    cl_mutable_command_khr handle = nullptr;
    EXPECT_EQ(f.Copy(buffer, nullptr, nullptr, a, b, 0, 0, bytes, 0, nullptr, nullptr, &handle), CL_INVALID_VALUE);
    EXPECT_EQ(f.Copy(buffer, nullptr, nullptr, a, b, 0, 1, bytes, 0, nullptr, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.Copy(buffer, nullptr, nullptr, a, a, 0, 4, 8, 0, nullptr, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(f.Copy(buffer, nullptr, nullptr, nullptr, b, 0, 0, 8, 0, nullptr, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(f.Fill(buffer, nullptr, nullptr, a, &one, 3, 0, 3, 0, nullptr, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.Barrier(nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    ASSERT_EQ(f.Finalize(buffer), CL_SUCCESS);
    EXPECT_EQ(f.Finalize(buffer), CL_INVALID_OPERATION);
    EXPECT_EQ(record(buffer, add), CL_INVALID_OPERATION);
    EXPECT_EQ(f.Barrier(buffer, nullptr, nullptr, 0, nullptr, nullptr, nullptr), CL_INVALID_OPERATION);

    cl_command_queue given = queue;
    EXPECT_EQ(f.Enqueue(1, nullptr, buffer, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.Enqueue(0, &given, buffer, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.Enqueue(2, &given, buffer, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.Enqueue(0, nullptr, buffer, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    if (devices.size() > 1) {
        OwnedQueue elsewhere = make_queue(devices[1]);
        EXPECT_EQ(f.Enqueue(1, elsewhere.out(), buffer, 0, nullptr, nullptr), CL_INVALID_DEVICE);
    }
    const DispatchConfig config;
    EXPECT_EQ(update(buffer, config), CL_INVALID_OPERATION);  // not mutable
    EXPECT_EQ(f.Info(buffer, 1, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(f.CommandInfo(nullptr, CL_MUTABLE_DISPATCH_KERNEL_KHR, 0, nullptr, nullptr),
              CL_INVALID_MUTABLE_COMMAND_KHR);
}

TEST_F(CommandBuffers, Queries_ReportWhatWasGiven) {
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    const auto value = [&](cl_uint name, auto place) {
        EXPECT_EQ(functions().Info(buffer, name, sizeof place, &place, nullptr), CL_SUCCESS) << name;
        return place;
    };
    EXPECT_EQ(value(CL_COMMAND_BUFFER_NUM_QUEUES_KHR, cl_uint{}), 1u);
    EXPECT_EQ(value(CL_COMMAND_BUFFER_QUEUES_KHR, cl_command_queue{}), static_cast<cl_command_queue>(queue));
    EXPECT_EQ(value(CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR, cl_uint{}), 1u);
    EXPECT_EQ(value(0x1299, cl_context{}), static_cast<cl_context>(context));
    EXPECT_EQ(state(buffer), static_cast<cl_uint>(CL_COMMAND_BUFFER_STATE_RECORDING_KHR));
    const std::array<cl_properties, 3> properties =
        value(CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR, std::array<cl_properties, 3>{});
    EXPECT_EQ(properties,
              (std::array<cl_properties, 3>{CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, 0}));

    OwnedKernel add = with("add", a, 1);
    cl_mutable_command_khr command = nullptr;
    ASSERT_EQ(record(buffer, add, count, &command), CL_SUCCESS);
    const auto of_command = [&](cl_uint name, auto place) {
        EXPECT_EQ(functions().CommandInfo(command, name, sizeof place, &place, nullptr), CL_SUCCESS) << name;
        return place;
    };
    EXPECT_EQ(of_command(CL_MUTABLE_DISPATCH_KERNEL_KHR, cl_kernel{}), static_cast<cl_kernel>(add));
    EXPECT_EQ(of_command(CL_MUTABLE_DISPATCH_DIMENSIONS_KHR, cl_uint{}), 1u);
    EXPECT_EQ(of_command(CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR, size_t{}), count);
    EXPECT_EQ(of_command(CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR, size_t{1}), 0u);
    EXPECT_EQ(of_command(CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR, cl_command_queue{}),
              static_cast<cl_command_queue>(queue));
    EXPECT_EQ(of_command(CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR, cl_command_buffer_khr{}),
              static_cast<cl_command_buffer_khr>(buffer));
    EXPECT_EQ(of_command(CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR, cl_command_type{}),
              static_cast<cl_command_type>(CL_COMMAND_NDRANGE_KERNEL));
    buffer.reset();
    EXPECT_EQ(functions().CommandInfo(command, CL_MUTABLE_DISPATCH_DIMENSIONS_KHR, 0, nullptr, nullptr),
              CL_INVALID_MUTABLE_COMMAND_KHR);
}

}  // namespace
}  // namespace polder::test
