#include "support/fixture.h"

#include <atomic>

namespace polder::test {
namespace {

using Contexts = ContextTest;

TEST_F(Contexts, CreationReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateContext(nullptr, 0, devices.data(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    int user = 0;
    EXPECT_EQ(clCreateContext(nullptr, 1, devices.data(), nullptr, &user, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_context_properties unknown[] = {0x7777, 1, 0};
    EXPECT_EQ(clCreateContext(unknown, 1, devices.data(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROPERTY);
    const auto id = reinterpret_cast<cl_context_properties>(platform());
    const cl_context_properties twice[] = {CL_CONTEXT_PLATFORM, id, CL_CONTEXT_PLATFORM, id, 0};
    EXPECT_EQ(clCreateContext(twice, 1, devices.data(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROPERTY);
    const auto foreign = foreign_handle<cl_device_id>(context);
    EXPECT_EQ(clCreateContext(nullptr, 1, &foreign, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
}

TEST_F(Contexts, FromTypeFindsDevicesOrSaysWhy) {
    cl_int error = CL_INVALID_VALUE;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(platform()), 0};
    OwnedContext found = clCreateContextFromType(properties, CL_DEVICE_TYPE_DEFAULT, nullptr, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    cl_uint count = 0;
    EXPECT_EQ(clGetContextInfo(found, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, nullptr), CL_SUCCESS);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(clCreateContextFromType(properties, CL_DEVICE_TYPE_CUSTOM, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_DEVICE_NOT_FOUND);
    EXPECT_EQ(clCreateContextFromType(properties, cl_device_type{1} << 20, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE_TYPE);
}

TEST_F(Contexts, QueriesAnswerWhatWasGiven) {
    cl_uint references = 0;
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(references, 1u);
    std::vector<cl_device_id> listed(devices.size());
    size_t size = 0;
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_DEVICES, listed.size() * sizeof(cl_device_id), listed.data(), &size),
              CL_SUCCESS);
    EXPECT_EQ(size, listed.size() * sizeof(cl_device_id));
    EXPECT_EQ(listed, devices);
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, 0, nullptr, &size), CL_SUCCESS);
    EXPECT_EQ(size, 0u);
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, 1, &references, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetContextInfo(context, 0x1, sizeof references, &references, nullptr), CL_INVALID_VALUE);
}

TEST_F(Contexts, BadHandlesAreErrorsNotCrashes) {
    const auto foreign = foreign_handle<cl_context>(context);
    EXPECT_EQ(clRetainContext(foreign), CL_INVALID_CONTEXT);
    EXPECT_EQ(clReleaseContext(foreign), CL_INVALID_CONTEXT);
    // A handle of another kind.
    EXPECT_EQ(clRetainContext(reinterpret_cast<cl_context>(static_cast<cl_command_queue>(queue))), CL_INVALID_CONTEXT);
    // A released one.
    cl_int error = CL_SUCCESS;
    cl_context released_handle = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(clReleaseContext(released_handle), CL_SUCCESS);
    EXPECT_EQ(clReleaseContext(released_handle), CL_INVALID_CONTEXT);
}

TEST_F(Contexts, WhatAQueryFindsCanBeRetainedAfterItsRelease) {
    const OwnedProgram program = build("kernel void nothing() {}");
    OwnedProgram built = build("kernel void something() {}");
    const OwnedKernel kernel = make_kernel(built, "something");
    OwnedMem whole = make_buffer(4096);
    const cl_buffer_region region{0, 128};
    cl_int error = CL_SUCCESS;
    const OwnedMem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    built.reset();
    whole.reset();
    context.reset();

    OwnedContext found;
    ASSERT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(cl_context), found.out(), nullptr), CL_SUCCESS);
    ASSERT_EQ(clRetainContext(found), CL_SUCCESS);
    context = std::move(found);
    const OwnedMem made_there = make_buffer(4);

    OwnedProgram of_kernel;
    ASSERT_EQ(clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), of_kernel.out(), nullptr), CL_SUCCESS);
    EXPECT_EQ(clRetainProgram(of_kernel), CL_SUCCESS);
    OwnedMem of_part;
    ASSERT_EQ(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), of_part.out(), nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clRetainMemObject(of_part), CL_SUCCESS);
    cl_uint references = 0;
    EXPECT_EQ(clGetMemObjectInfo(of_part, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr), CL_SUCCESS);
    EXPECT_EQ(references, 1u);
}

TEST_F(Contexts, DestructorCallbacksRunLastRegisteredFirst) {
    cl_int error = CL_SUCCESS;
    cl_context other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    static std::vector<int> order;
    order.clear();
    const auto note = [](cl_context, void* user) {
        order.push_back(static_cast<int>(reinterpret_cast<intptr_t>(user)));
    };
    EXPECT_EQ(clSetContextDestructorCallback(other, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clSetContextDestructorCallback(other, note, reinterpret_cast<void*>(1)), CL_SUCCESS);
    EXPECT_EQ(clSetContextDestructorCallback(other, note, reinterpret_cast<void*>(2)), CL_SUCCESS);
    cl_mem buffer = clCreateBuffer(other, CL_MEM_READ_WRITE, 64, nullptr, &error);
    ASSERT_EQ(clReleaseContext(other), CL_SUCCESS);
    EXPECT_TRUE(order.empty()) << "the buffer still needs its context";
    ASSERT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
    EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST_F(Contexts, PropertiesAndDeviceListsAreChecked) {
    cl_int error = CL_SUCCESS;
    int user = 0;
    const auto create = [&](std::initializer_list<cl_context_properties> properties) {
        EXPECT_EQ(clCreateContext(std::data(properties), 1, devices.data(), nullptr, nullptr, &error), nullptr);
        const cl_int of_list = error;
        // Called directly: the loader chooses the platform of the other function by the properties.
        const auto from_type = reinterpret_cast<decltype(&clCreateContextFromType)>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clCreateContextFromType"));
        EXPECT_EQ(from_type(std::data(properties), CL_DEVICE_TYPE_ALL, nullptr, nullptr, &error), nullptr);
        EXPECT_EQ(error, of_list);
        return of_list;
    };
    const auto nobodys = reinterpret_cast<cl_context_properties>(foreign_handle<void*>(context));
    const auto own = reinterpret_cast<cl_context_properties>(platform());
    EXPECT_EQ(create({CL_CONTEXT_PLATFORM, nobodys, 0}), CL_INVALID_PLATFORM);
    EXPECT_EQ(create({0x7777, 1, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(create({CL_CONTEXT_INTEROP_USER_SYNC, 7, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(create({CL_CONTEXT_PLATFORM, own, CL_CONTEXT_PLATFORM, own, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(clCreateContext(nullptr, 1, nullptr, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, own, 0};
    EXPECT_EQ(clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, nullptr, &user, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateContextFromType(properties, 0, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE_TYPE);
}

} // namespace
} // namespace polder::test
