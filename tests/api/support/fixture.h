// What API tests share: the platform through the ICD loader, a context over all its devices, a queue, and
// small helpers. Tests are linked to the loader, never to Polder itself.
#pragma once

#include <CL/cl.h>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace polder::test {

// Polder's platform; the test environment names no other ICD.
inline cl_platform_id platform() {
    static const cl_platform_id id = [] {
        cl_platform_id found = nullptr;
        EXPECT_EQ(clGetPlatformIDs(1, &found, nullptr), CL_SUCCESS);
        return found;
    }();
    return id;
}

inline std::vector<cl_device_id> all_devices() {
    cl_uint count = 0;
    EXPECT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &count), CL_SUCCESS);
    std::vector<cl_device_id> devices(count);
    EXPECT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr), CL_SUCCESS);
    return devices;
}

inline bool is_gpu(cl_device_id device) {
    cl_device_type type = 0;
    EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    return (type & CL_DEVICE_TYPE_GPU) != 0;
}

// Owns one API reference.
template <class Handle, cl_int(CL_API_CALL* release)(Handle)>
class Owned {
public:
    Owned() = default;
    Owned(Handle handle) : handle_(handle) {}
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned() { reset(); }
    void reset() {
        if (handle_) {
            EXPECT_EQ(release(std::exchange(handle_, nullptr)), CL_SUCCESS);
        }
    }
    operator Handle() const { return handle_; }
    Handle* out() { return &handle_; }
    const Handle* in() const { return &handle_; }

private:
    Handle handle_ = nullptr;
};
using OwnedContext = Owned<cl_context, clReleaseContext>;
using OwnedQueue = Owned<cl_command_queue, clReleaseCommandQueue>;
using OwnedMem = Owned<cl_mem, clReleaseMemObject>;
using OwnedProgram = Owned<cl_program, clReleaseProgram>;
using OwnedKernel = Owned<cl_kernel, clReleaseKernel>;
using OwnedEvent = Owned<cl_event, clReleaseEvent>;

// A context over all devices, and an in-order queue on the first.
class ContextTest : public testing::Test {
protected:
    void SetUp() override {
        devices = all_devices();
        ASSERT_FALSE(devices.empty());
        cl_int error = CL_INVALID_VALUE;
        context =
            clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        queue = make_queue(devices[0]);
    }

    OwnedQueue make_queue(cl_device_id device, cl_command_queue_properties bits = 0) {
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, bits, 0};
        cl_int error = CL_INVALID_VALUE;
        cl_command_queue made = clCreateCommandQueueWithProperties(context, device, properties, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    OwnedMem make_buffer(size_t size, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
        cl_int error = CL_INVALID_VALUE;
        cl_mem made = clCreateBuffer(context, flags, size, host, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    OwnedMem sub_buffer(cl_mem parent, size_t origin, size_t size) {
        const cl_buffer_region region{origin, size};
        cl_int error = CL_INVALID_VALUE;
        cl_mem made = clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    template <class T>
    T mem_info(cl_mem object, cl_mem_info name) {
        T value{};
        EXPECT_EQ(clGetMemObjectInfo(object, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }

    OwnedProgram from_source(const std::string& source) {
        const char* text = source.c_str();
        cl_int error = CL_INVALID_VALUE;
        cl_program made = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    cl_program from_binary(cl_device_id device, const std::vector<unsigned char>& bytes, cl_int* status,
                           cl_int* error) {
        const size_t size = bytes.size();
        const unsigned char* place = bytes.data();
        return clCreateProgramWithBinary(context, 1, &device, &size, &place, status, error);
    }

    OwnedProgram build(const std::string& source, const char* options = "") {
        OwnedProgram made = from_source(source);
        if (clBuildProgram(made, 0, nullptr, options, nullptr, nullptr) != CL_SUCCESS)
            ADD_FAILURE() << build_log(made);
        return made;
    }

    std::string build_log(cl_program program) {
        size_t size = 0;
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, 0, nullptr, &size), CL_SUCCESS);
        std::string log(size, '\0');
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr),
                  CL_SUCCESS);
        return log;
    }

    OwnedKernel make_kernel(cl_program program, const char* name) {
        cl_int error = CL_INVALID_VALUE;
        cl_kernel made = clCreateKernel(program, name, &error);
        EXPECT_EQ(error, CL_SUCCESS) << name;
        return made;
    }

    OwnedEvent make_user_event() {
        cl_int error = CL_INVALID_VALUE;
        cl_event made = clCreateUserEvent(context, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    template <class T>
    std::vector<T> read(cl_mem buffer, size_t count, cl_command_queue from = nullptr) {
        std::vector<T> values(count);
        EXPECT_EQ(clEnqueueReadBuffer(from ? from : static_cast<cl_command_queue>(queue), buffer, CL_TRUE, 0,
                                      count * sizeof(T), values.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        return values;
    }

    template <class T>
    void write(cl_mem buffer, const std::vector<T>& values, cl_command_queue to = nullptr) {
        EXPECT_EQ(clEnqueueWriteBuffer(to ? to : static_cast<cl_command_queue>(queue), buffer, CL_TRUE, 0,
                                       values.size() * sizeof(T), values.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
    }

    std::vector<cl_device_id> devices;
    OwnedContext context;
    OwnedQueue queue;
};

// A pointer that is no handle of anybody: readable memory, so that a loader can look into it.
template <class Handle>
Handle foreign_handle(cl_context made_by_polder) {
    // The loader finds the dispatch table in the first word of every handle.
    static void* words[16];
    words[0] = *reinterpret_cast<void**>(made_by_polder);
    return reinterpret_cast<Handle>(words);
}

} // namespace polder::test
