// Every query of every clGet*Info: its result has exactly the size of the type in the specification's table, goes into
// a place of that size and no further, and is refused a smaller one.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <functional>

namespace polder::test {
namespace {

// One clGet*Info of one object.
using Ask = std::function<cl_int(cl_uint name, size_t size, void* value, size_t* size_ret)>;

struct Query {
    cl_uint name;
    // The size of one value. A list or a text has several values, or none.
    size_t unit;
    enum class Count : uint8_t { one, any } count = Count::one;
};
constexpr auto any = Query::Count::any;

constexpr Query text(cl_uint name) { return {name, 1, any}; }
template <class T>
constexpr Query list(cl_uint name) {
    return {name, sizeof(T), any};
}
template <class T>
constexpr Query value(cl_uint name) {
    return {name, sizeof(T)};
}

class Queries : public ContextTest {
protected:
    static void expect_answer(const Ask& ask, const Query& query) {
        SCOPED_TRACE(testing::Message() << "query 0x" << std::hex << query.name);
        size_t size = 0;
        ASSERT_EQ(ask(query.name, 0, nullptr, &size), CL_SUCCESS);
        if (query.count == any) {
            EXPECT_EQ(size % query.unit, 0u);
        } else
            EXPECT_EQ(size, query.unit);
        EXPECT_EQ(ask(query.name, 0, nullptr, nullptr), CL_SUCCESS);
        // Without a result pointer, the size does not matter.
        EXPECT_EQ(ask(query.name, 1, nullptr, nullptr), CL_SUCCESS);

        constexpr auto guard = std::byte{0x5a};
        // Zeros, because CL_PROGRAM_BINARIES reads pointers from the result buffer.
        std::vector<std::byte> place(size);
        place.resize(size + 16, guard);
        if (size > 0) {
            const std::vector<std::byte> before = place;
            EXPECT_EQ(ask(query.name, size - 1, place.data(), nullptr), CL_INVALID_VALUE);
            EXPECT_EQ(ask(query.name, 0, place.data(), nullptr), CL_INVALID_VALUE);
            EXPECT_EQ(place, before);
        }
        size_t again = 0;
        EXPECT_EQ(ask(query.name, size, place.data(), &again), CL_SUCCESS);
        EXPECT_EQ(again, size);
        EXPECT_EQ(std::count(place.end() - 16, place.end(), guard), 16) << "written beyond the answer";
        EXPECT_EQ(ask(query.name, size + 16, place.data(), nullptr), CL_SUCCESS);
    }
    static void expect_answers(const Ask& ask, std::initializer_list<Query> queries) {
        for (const Query& query : queries)
            expect_answer(ask, query);
        size_t size = 0;
        EXPECT_EQ(ask(0x7777, 0, nullptr, &size), CL_INVALID_VALUE);
    }
};

// What most clGet*Info look like.
template <auto& get, class Handle>
Ask about(Handle handle) {
    return [handle](cl_uint name, size_t size, void* place, size_t* size_ret) {
        return get(handle, name, size, place, size_ret);
    };
}

TEST_F(Queries, OfPlatforms) {
    expect_answers(about<clGetPlatformInfo>(platform()), {
                                                             text(CL_PLATFORM_PROFILE),
                                                             text(CL_PLATFORM_VERSION),
                                                             value<cl_version>(CL_PLATFORM_NUMERIC_VERSION),
                                                             text(CL_PLATFORM_NAME),
                                                             text(CL_PLATFORM_VENDOR),
                                                             text(CL_PLATFORM_EXTENSIONS),
                                                             list<cl_name_version>(CL_PLATFORM_EXTENSIONS_WITH_VERSION),
                                                             value<cl_ulong>(CL_PLATFORM_HOST_TIMER_RESOLUTION),
                                                             text(CL_PLATFORM_ICD_SUFFIX_KHR),
                                                         });
}

TEST_F(Queries, OfDevices) {
    for (const cl_device_id device : devices)
        expect_answers(
            about<clGetDeviceInfo>(device),
            {
                value<cl_device_type>(CL_DEVICE_TYPE),
                value<cl_uint>(CL_DEVICE_VENDOR_ID),
                value<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS),
                value<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS),
                value<size_t[3]>(CL_DEVICE_MAX_WORK_ITEM_SIZES),
                value<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE),
                value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE),
                value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF),
                value<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY),
                value<cl_uint>(CL_DEVICE_ADDRESS_BITS),
                value<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                value<cl_bool>(CL_DEVICE_IMAGE_SUPPORT),
                value<cl_uint>(CL_DEVICE_MAX_READ_IMAGE_ARGS),
                value<cl_uint>(CL_DEVICE_MAX_WRITE_IMAGE_ARGS),
                value<cl_uint>(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS),
                text(CL_DEVICE_IL_VERSION),
                list<cl_name_version>(CL_DEVICE_ILS_WITH_VERSION),
                value<size_t>(CL_DEVICE_IMAGE2D_MAX_WIDTH),
                value<size_t>(CL_DEVICE_IMAGE2D_MAX_HEIGHT),
                value<size_t>(CL_DEVICE_IMAGE3D_MAX_WIDTH),
                value<size_t>(CL_DEVICE_IMAGE3D_MAX_HEIGHT),
                value<size_t>(CL_DEVICE_IMAGE3D_MAX_DEPTH),
                value<size_t>(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE),
                value<size_t>(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE),
                value<cl_uint>(CL_DEVICE_MAX_SAMPLERS),
                value<cl_uint>(CL_DEVICE_IMAGE_PITCH_ALIGNMENT),
                value<cl_uint>(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT),
                value<cl_uint>(CL_DEVICE_MAX_PIPE_ARGS),
                value<cl_uint>(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS),
                value<cl_uint>(CL_DEVICE_PIPE_MAX_PACKET_SIZE),
                value<size_t>(CL_DEVICE_MAX_PARAMETER_SIZE),
                value<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN),
                value<cl_uint>(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE),
                value<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG),
                value<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG),
                value<cl_device_mem_cache_type>(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE),
                value<cl_uint>(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE),
                value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
                value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE),
                value<cl_ulong>(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE),
                value<cl_uint>(CL_DEVICE_MAX_CONSTANT_ARGS),
                value<size_t>(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE),
                value<size_t>(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE),
                value<cl_device_local_mem_type>(CL_DEVICE_LOCAL_MEM_TYPE),
                value<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE),
                value<cl_bool>(CL_DEVICE_ERROR_CORRECTION_SUPPORT),
                value<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY),
                value<size_t>(CL_DEVICE_PROFILING_TIMER_RESOLUTION),
                value<cl_bool>(CL_DEVICE_ENDIAN_LITTLE),
                value<cl_bool>(CL_DEVICE_AVAILABLE),
                value<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE),
                value<cl_bool>(CL_DEVICE_LINKER_AVAILABLE),
                value<cl_device_exec_capabilities>(CL_DEVICE_EXECUTION_CAPABILITIES),
                value<cl_command_queue_properties>(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES),
                value<cl_command_queue_properties>(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES),
                value<cl_uint>(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE),
                value<cl_uint>(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE),
                value<cl_uint>(CL_DEVICE_MAX_ON_DEVICE_QUEUES),
                value<cl_uint>(CL_DEVICE_MAX_ON_DEVICE_EVENTS),
                text(CL_DEVICE_BUILT_IN_KERNELS),
                list<cl_name_version>(CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION),
                value<cl_platform_id>(CL_DEVICE_PLATFORM),
                text(CL_DEVICE_NAME),
                text(CL_DEVICE_VENDOR),
                text(CL_DRIVER_VERSION),
                text(CL_DEVICE_PROFILE),
                text(CL_DEVICE_VERSION),
                value<cl_version>(CL_DEVICE_NUMERIC_VERSION),
                text(CL_DEVICE_OPENCL_C_VERSION),
                list<cl_name_version>(CL_DEVICE_OPENCL_C_ALL_VERSIONS),
                list<cl_name_version>(CL_DEVICE_OPENCL_C_FEATURES),
                text(CL_DEVICE_EXTENSIONS),
                list<cl_name_version>(CL_DEVICE_EXTENSIONS_WITH_VERSION),
                value<size_t>(CL_DEVICE_PRINTF_BUFFER_SIZE),
                value<cl_bool>(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC),
                value<cl_device_id>(CL_DEVICE_PARENT_DEVICE),
                value<cl_uint>(CL_DEVICE_PARTITION_MAX_SUB_DEVICES),
                list<cl_device_partition_property>(CL_DEVICE_PARTITION_PROPERTIES),
                value<cl_device_affinity_domain>(CL_DEVICE_PARTITION_AFFINITY_DOMAIN),
                list<cl_device_partition_property>(CL_DEVICE_PARTITION_TYPE),
                value<cl_uint>(CL_DEVICE_REFERENCE_COUNT),
                value<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES),
                value<cl_uint>(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT),
                value<cl_uint>(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT),
                value<cl_uint>(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT),
                value<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS),
                value<cl_bool>(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS),
                value<cl_device_atomic_capabilities>(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES),
                value<cl_device_atomic_capabilities>(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES),
                value<cl_bool>(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT),
                value<cl_bool>(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT),
                value<cl_bool>(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT),
                value<cl_device_device_enqueue_capabilities>(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES),
                value<cl_bool>(CL_DEVICE_PIPE_SUPPORT),
                value<size_t>(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
                text(CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED),
                // Queries of the extensions that devices have.
                value<cl_version>(CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR),
                value<cl_uchar[CL_UUID_SIZE_KHR]>(CL_DEVICE_UUID_KHR),
                value<cl_uchar[CL_UUID_SIZE_KHR]>(CL_DRIVER_UUID_KHR),
                value<cl_bool>(CL_DEVICE_LUID_VALID_KHR),
                value<cl_uchar[CL_LUID_SIZE_KHR]>(CL_DEVICE_LUID_KHR),
                value<cl_uint>(CL_DEVICE_NODE_MASK_KHR),
                value<cl_device_integer_dot_product_capabilities_khr>(CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR),
                value<cl_device_integer_dot_product_acceleration_properties_khr>(
                    CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT_KHR),
                value<cl_device_integer_dot_product_acceleration_properties_khr>(
                    CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR),
            });
}

TEST_F(Queries, OfContextsAndQueues) {
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(platform()), 0};
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext with_properties =
        clCreateContext(properties, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (const cl_context one : {static_cast<cl_context>(context), static_cast<cl_context>(with_properties)})
        expect_answers(about<clGetContextInfo>(one), {
                                                         value<cl_uint>(CL_CONTEXT_REFERENCE_COUNT),
                                                         value<cl_uint>(CL_CONTEXT_NUM_DEVICES),
                                                         {CL_CONTEXT_DEVICES, devices.size() * sizeof(cl_device_id)},
                                                         list<cl_context_properties>(CL_CONTEXT_PROPERTIES),
                                                     });
    expect_answers(about<clGetCommandQueueInfo>(static_cast<cl_command_queue>(queue)),
                   {
                       value<cl_context>(CL_QUEUE_CONTEXT),
                       value<cl_device_id>(CL_QUEUE_DEVICE),
                       value<cl_uint>(CL_QUEUE_REFERENCE_COUNT),
                       value<cl_command_queue_properties>(CL_QUEUE_PROPERTIES),
                       value<cl_queue_properties[3]>(CL_QUEUE_PROPERTIES_ARRAY),
                       value<cl_command_queue>(CL_QUEUE_DEVICE_DEFAULT),
                   });
}

TEST_F(Queries, OfBuffers) {
    const cl_mem_properties none[] = {0};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem with_properties =
        clCreateBufferWithProperties(context, none, CL_MEM_READ_WRITE, 64, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedMem without = make_buffer(64);
    for (const cl_mem buffer : {static_cast<cl_mem>(with_properties), static_cast<cl_mem>(without)})
        expect_answers(about<clGetMemObjectInfo>(buffer),
                       {
                           value<cl_mem_object_type>(CL_MEM_TYPE),
                           value<cl_mem_flags>(CL_MEM_FLAGS),
                           value<size_t>(CL_MEM_SIZE),
                           value<void*>(CL_MEM_HOST_PTR),
                           value<cl_uint>(CL_MEM_MAP_COUNT),
                           value<cl_uint>(CL_MEM_REFERENCE_COUNT),
                           value<cl_context>(CL_MEM_CONTEXT),
                           value<cl_mem>(CL_MEM_ASSOCIATED_MEMOBJECT),
                           value<size_t>(CL_MEM_OFFSET),
                           value<cl_bool>(CL_MEM_USES_SVM_POINTER),
                           {CL_MEM_PROPERTIES, (buffer == with_properties ? 1 : 0) * sizeof(cl_mem_properties)},
                       });
}

TEST_F(Queries, OfProgramsAndKernels) {
    const OwnedProgram program =
        build("kernel void k(global int* to, local int* scratch) { to[0] = 1; }", "-cl-kernel-arg-info");
    const OwnedKernel kernel = make_kernel(program, "k");
    expect_answers(about<clGetProgramInfo>(static_cast<cl_program>(program)),
                   {
                       value<cl_uint>(CL_PROGRAM_REFERENCE_COUNT),
                       value<cl_context>(CL_PROGRAM_CONTEXT),
                       value<cl_uint>(CL_PROGRAM_NUM_DEVICES),
                       {CL_PROGRAM_DEVICES, devices.size() * sizeof(cl_device_id)},
                       text(CL_PROGRAM_SOURCE),
                       list<char>(CL_PROGRAM_IL),
                       {CL_PROGRAM_BINARY_SIZES, devices.size() * sizeof(size_t)},
                       {CL_PROGRAM_BINARIES, devices.size() * sizeof(unsigned char*)},
                       value<size_t>(CL_PROGRAM_NUM_KERNELS),
                       text(CL_PROGRAM_KERNEL_NAMES),
                       value<cl_bool>(CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT),
                       value<cl_bool>(CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT),
                   });
    expect_answers(about<clGetKernelInfo>(static_cast<cl_kernel>(kernel)),
                   {
                       text(CL_KERNEL_FUNCTION_NAME),
                       value<cl_uint>(CL_KERNEL_NUM_ARGS),
                       value<cl_uint>(CL_KERNEL_REFERENCE_COUNT),
                       value<cl_context>(CL_KERNEL_CONTEXT),
                       value<cl_program>(CL_KERNEL_PROGRAM),
                       text(CL_KERNEL_ATTRIBUTES),
                   });
    for (const cl_uint argument : {0, 1})
        expect_answers(
            [&](cl_uint name, size_t size, void* place, size_t* size_ret) {
                return clGetKernelArgInfo(kernel, argument, name, size, place, size_ret);
            },
            {
                value<cl_kernel_arg_address_qualifier>(CL_KERNEL_ARG_ADDRESS_QUALIFIER),
                value<cl_kernel_arg_access_qualifier>(CL_KERNEL_ARG_ACCESS_QUALIFIER),
                text(CL_KERNEL_ARG_TYPE_NAME),
                value<cl_kernel_arg_type_qualifier>(CL_KERNEL_ARG_TYPE_QUALIFIER),
                text(CL_KERNEL_ARG_NAME),
            });
}

TEST_F(Queries, OfBuildsAndKernelsOnDevices) {
    const OwnedProgram program = build("kernel void k(global int* to, local int* scratch) { to[0] = 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    for (const cl_device_id device : devices) {
        expect_answers(
            [&](cl_uint name, size_t size, void* place, size_t* size_ret) {
                return clGetProgramBuildInfo(program, device, name, size, place, size_ret);
            },
            {
                value<cl_build_status>(CL_PROGRAM_BUILD_STATUS),
                text(CL_PROGRAM_BUILD_OPTIONS),
                text(CL_PROGRAM_BUILD_LOG),
                value<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE),
                value<size_t>(CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE),
            });
        expect_answers(
            [&](cl_uint name, size_t size, void* place, size_t* size_ret) {
                return clGetKernelWorkGroupInfo(kernel, device, name, size, place, size_ret);
            },
            {
                value<size_t>(CL_KERNEL_WORK_GROUP_SIZE),
                value<size_t[3]>(CL_KERNEL_COMPILE_WORK_GROUP_SIZE),
                value<cl_ulong>(CL_KERNEL_LOCAL_MEM_SIZE),
                value<size_t>(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
                value<cl_ulong>(CL_KERNEL_PRIVATE_MEM_SIZE),
            });
        const size_t input[] = {4};
        const Ask about_sub_groups = [&](cl_uint name, size_t size, void* place, size_t* size_ret) {
            return clGetKernelSubGroupInfo(kernel, device, name, sizeof input, input, size, place, size_ret);
        };
        expect_answers(about_sub_groups, {
                                             value<size_t>(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE),
                                             value<size_t>(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE),
                                             value<size_t>(CL_KERNEL_MAX_NUM_SUB_GROUPS),
                                             value<size_t>(CL_KERNEL_COMPILE_NUM_SUB_GROUPS),
                                         });
        // The size of the result buffer is the number of dimensions, at most three.
        size_t local[4] = {};
        size_t size = 0;
        EXPECT_EQ(about_sub_groups(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 1, local, nullptr), CL_INVALID_VALUE);
        for (const size_t dimensions : {1, 2, 3, 4}) {
            EXPECT_EQ(
                about_sub_groups(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, dimensions * sizeof(size_t), local, &size),
                CL_SUCCESS);
            EXPECT_EQ(size, std::min(dimensions, size_t{3}) * sizeof(size_t));
        }
    }
}

TEST_F(Queries, OfEvents) {
    const OwnedQueue profiling = make_queue(devices[0], CL_QUEUE_PROFILING_ENABLE);
    OwnedEvent event;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(profiling, 0, nullptr, event.out()), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
    const OwnedEvent user = make_user_event();
    for (const cl_event one : {static_cast<cl_event>(event), static_cast<cl_event>(user)})
        expect_answers(about<clGetEventInfo>(one), {
                                                       value<cl_command_queue>(CL_EVENT_COMMAND_QUEUE),
                                                       value<cl_context>(CL_EVENT_CONTEXT),
                                                       value<cl_command_type>(CL_EVENT_COMMAND_TYPE),
                                                       value<cl_int>(CL_EVENT_COMMAND_EXECUTION_STATUS),
                                                       value<cl_uint>(CL_EVENT_REFERENCE_COUNT),
                                                   });
    expect_answers(about<clGetEventProfilingInfo>(static_cast<cl_event>(event)),
                   {
                       value<cl_ulong>(CL_PROFILING_COMMAND_QUEUED),
                       value<cl_ulong>(CL_PROFILING_COMMAND_SUBMIT),
                       value<cl_ulong>(CL_PROFILING_COMMAND_START),
                       value<cl_ulong>(CL_PROFILING_COMMAND_END),
                       value<cl_ulong>(CL_PROFILING_COMMAND_COMPLETE),
                   });
}

} // namespace
} // namespace polder::test
