// A device is refused when it is older than OpenCL 1.2, lacks a function that the driver calls, has no compiler, or has no 64-bit
// addresses. Error codes of the implementation become Polder's here; after a fatal one the device is lost.
#include <base/log.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <proxy/foreign_context.h>

namespace polder::proxy {
namespace {

// "OpenCL 3.0 …" -> 3.0.
cl_version version_of(const std::string& text) {
    unsigned major = 0;
    unsigned minor = 0;
    if (std::sscanf(text.c_str(), "OpenCL %u.%u", &major, &minor) != 2)
        return 0;
    return CL_MAKE_VERSION(major, minor, 0);
}

// True for codes after which no call for the context succeeds.
bool is_fatal(cl_int code) {
    return code == CL_DEVICE_NOT_AVAILABLE || code == CL_INVALID_CONTEXT || code == CL_INVALID_COMMAND_QUEUE ||
           code == CL_INVALID_DEVICE;
}

// Whether the implementation has every function of OpenCL 1.2 that the driver calls.
bool has_functions(const cl_icd_dispatch& cl) {
    const auto are_there = [](auto... functions) { return (... && (functions != nullptr)); };
    return are_there(cl.clGetDeviceInfo, cl.clCreateContext, cl.clReleaseContext, cl.clCreateCommandQueue,
                     cl.clReleaseCommandQueue, cl.clCreateBuffer, cl.clCreateSubBuffer, cl.clReleaseMemObject,
                     cl.clCreateProgramWithSource, cl.clReleaseProgram, cl.clBuildProgram, cl.clCompileProgram,
                     cl.clLinkProgram, cl.clGetProgramBuildInfo, cl.clCreateKernel, cl.clReleaseKernel,
                     cl.clSetKernelArg, cl.clGetKernelInfo, cl.clGetKernelWorkGroupInfo) &&
           are_there(cl.clEnqueueWriteBuffer, cl.clEnqueueReadBuffer, cl.clEnqueueCopyBuffer, cl.clEnqueueFillBuffer,
                     cl.clEnqueueWriteBufferRect, cl.clEnqueueReadBufferRect, cl.clEnqueueCopyBufferRect,
                     cl.clEnqueueNDRangeKernel, cl.clEnqueueMarkerWithWaitList, cl.clFlush, cl.clFinish,
                     cl.clWaitForEvents, cl.clGetEventInfo, cl.clGetEventProfilingInfo, cl.clRetainEvent,
                     cl.clReleaseEvent);
}

// The bits of OpenCL C's samplers.
constexpr uint64_t normalized = 0x1;
constexpr uint64_t linear = 0x20;

cl_addressing_mode addressing_of(uint64_t bits) {
    switch (bits & 0xe) {
    case 0x2: return CL_ADDRESS_CLAMP_TO_EDGE;
    case 0x4: return CL_ADDRESS_CLAMP;
    case 0x6: return CL_ADDRESS_REPEAT;
    case 0x8: return CL_ADDRESS_MIRRORED_REPEAT;
    default: return CL_ADDRESS_NONE;
    }
}

ForeignContext::ImageAlignments alignments_of(const ForeignDevice& of, cl_version version) {
    const std::string extensions = " " + ask_text(*of.functions, of.device, CL_DEVICE_EXTENSIONS) + " ";
    if (version < CL_MAKE_VERSION(2, 0, 0) || extensions.find(" cl_khr_image2d_from_buffer ") == std::string::npos)
        return {};
    return {ask<cl_uint>(*of.functions, of.device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT),
            ask<cl_uint>(*of.functions, of.device, CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT)};
}

}  // namespace

std::string ask_text(const cl_icd_dispatch& cl, cl_device_id device, cl_device_info what) {
    size_t size = 0;
    if (cl.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0)
        return {};
    std::string text(size, '\0');
    if (cl.clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS)
        return {};
    text.resize(std::strlen(text.c_str()));
    return text;
}

std::vector<cl_name_version> ask_versions(const cl_icd_dispatch& cl, cl_device_id device, cl_device_info what) {
    size_t size = 0;
    if (cl.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0)
        return {};
    std::vector<cl_name_version> list(size / sizeof(cl_name_version));
    if (cl.clGetDeviceInfo(device, what, list.size() * sizeof(cl_name_version), list.data(), nullptr) != CL_SUCCESS)
        return {};
    return list;
}

Result<std::unique_ptr<ForeignContext>> ForeignContext::open(const ForeignDevice& foreign) {
    const cl_icd_dispatch& cl = *foreign.functions;
    std::string name = ask_text(cl, foreign.device, CL_DEVICE_NAME);
    const cl_version version = version_of(ask_text(cl, foreign.device, CL_DEVICE_VERSION));
    if (name.empty())
        return fail(Status::device_not_found, "the device does not tell its name");
    if (version < CL_MAKE_VERSION(1, 2, 0))
        return fail(Status::device_not_found, name + " is older than OpenCL 1.2");
    if (!has_functions(cl))
        return fail(Status::device_not_found, name + " lacks functions of OpenCL 1.2");
    if (!ask<cl_bool>(cl, foreign.device, CL_DEVICE_AVAILABLE) ||
        !ask<cl_bool>(cl, foreign.device, CL_DEVICE_COMPILER_AVAILABLE))
        return fail(Status::device_not_available, name + " is not available, or has no compiler");
    if (ask<cl_uint>(cl, foreign.device, CL_DEVICE_ADDRESS_BITS) != 64)
        return fail(Status::device_not_found, name + " has no 64-bit addresses");
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(foreign.platform), 0};
    cl_int code = CL_SUCCESS;
    const cl_context context = cl.clCreateContext(properties, 1, &foreign.device, nullptr, nullptr, &code);
    if (!context)
        return fail(Status::device_not_available, name + ": clCreateContext: " + name_of(code));
    return std::unique_ptr<ForeignContext>(new ForeignContext(foreign, context, std::move(name), version));
}

ForeignContext::ForeignContext(const ForeignDevice& of, cl_context context, std::string device_name,
                               cl_version device_version)
    : cl(*of.functions), platform(of.platform), device(of.device), handle(context), name(std::move(device_name)),
      version(device_version), image_alignments(alignments_of(of, device_version)) {}

ForeignContext::~ForeignContext() {
    if (!may_release())
        return;
    const Lock lock(mutex_);
    for (const auto& [bits, sampler] : samplers_)
        cl.clReleaseSampler(sampler);
    cl.clReleaseContext(handle);
}

cl_int ForeignContext::sampler(uint64_t bits, cl_sampler& sampler) {
    const Lock lock(mutex_);
    const auto [known, is_new] = samplers_.try_emplace(bits, nullptr);
    if (is_new) {
        cl_int code = CL_SUCCESS;
        known->second = cl.clCreateSampler(handle, bits & normalized ? CL_TRUE : CL_FALSE, addressing_of(bits),
                                           bits & linear ? CL_FILTER_LINEAR : CL_FILTER_NEAREST, &code);
        if (!known->second) {
            samplers_.erase(known);
            return code == CL_SUCCESS ? CL_OUT_OF_RESOURCES : code;
        }
    }
    sampler = known->second;
    return CL_SUCCESS;
}

Result<cl_command_queue> ForeignContext::create_queue(cl_command_queue_properties properties) const {
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = cl.clCreateCommandQueue(handle, device, properties, &code);
    if (!queue)
        return fail(error(code, "clCreateCommandQueue"));
    return queue;
}

Error ForeignContext::error(cl_int code, const char* what) const {
    Status status = Status::out_of_resources;
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
        code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        status = static_cast<Status>(code);
    return Error(status, name + ": " + what + ": " + name_of(code));
}

void ForeignContext::lose(const char* what, cl_int code) {
    if (is_fatal(code) && !is_lost_.exchange(true))
        log::line(log::Category::error, "%s is lost: %s: %s", name.c_str(), what, name_of(code).c_str());
}

uint64_t ForeignContext::to_host_ns(uint64_t device_ns, uint64_t end, uint64_t now_ns) {
    const int64_t seen = static_cast<int64_t>(now_ns - end);
    int64_t offset = clock_offset_ns_.load(std::memory_order_relaxed);
    while (seen < offset && !clock_offset_ns_.compare_exchange_weak(offset, seen, std::memory_order_relaxed)) {
    }
    return device_ns + static_cast<uint64_t>(std::min(seen, offset));
}

}  // namespace polder::proxy
