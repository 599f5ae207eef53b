// Queues on the device in programs from SPIR-V: hand-written modules with every instruction, and what Khronos' translator makes of blocks of OpenCL C.
// Calls that cannot be are refused, with the instruction in the build log.
#include "support/device_queues.h"
#include "support/module_writer.h"
#include "support/modules.h"

#include <algorithm>
#include <array>

namespace polder::test {
namespace {

class SpirvDeviceQueues : public DeviceQueueTest {
protected:
    OwnedProgram from_il(const std::string& bytes) {
        cl_int error = CL_INVALID_VALUE;
        OwnedProgram made = clCreateProgramWithIL(context, bytes.data(), bytes.size(), &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    OwnedProgram module(const std::string& name) { return from_il(file(POLDER_TEST_MODULES "/" + name + ".spv")); }
    OwnedProgram built(const std::string& name) {
        OwnedProgram made = module(name);
        if (clBuildProgram(made, 0, nullptr, "", nullptr, nullptr) != CL_SUCCESS)
            ADD_FAILURE() << build_log(made);
        return made;
    }
    // What the kernel of device_queues.spvasm leaves in a buffer of zeros.
    template <class Check>
    void run_kernel(const char* name, Check check) {
        kernel_name = name;
        on_each_device([&] {
            program = built("device_queues");
            check(launch(1));
        });
    }
    [[nodiscard]] std::vector<std::string> kernel_names() {
        std::array<char, 200> names{};
        EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, names.size(), names.data(), nullptr), CL_SUCCESS);
        std::vector<std::string> list(1);
        for (const char* at = names.data(); *at != 0; ++at)
            if (*at == ';')
                list.emplace_back();
            else
                list.back() += *at;
        return list;
    }
};

using Values = std::vector<cl_int>;

Values part(const Values& values, size_t first, size_t count) {
    return {values.begin() + static_cast<std::ptrdiff_t>(first),
            values.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

TEST_F(SpirvDeviceQueues, DevicesThatHaveQueuesReportTheCapability) {
    on_each_device([&] {
        std::array<cl_uint, 200> capabilities{};
        size_t size = 0;
        ASSERT_EQ(clGetDeviceInfo(device, 0x12BB, sizeof capabilities, capabilities.data(), &size), CL_SUCCESS);
        EXPECT_NE(std::ranges::find(capabilities, cl_uint{spv::CapabilityDeviceEnqueue}), capabilities.end());
    });
}

TEST_F(SpirvDeviceQueues, Blocks_AreCompleteBeforeTheEventOfTheirKernel) {
    run_kernel("fill", [&](const Values& out) {
        for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(out[i], static_cast<cl_int>(count - i)) << i;
    });
}

TEST_F(SpirvDeviceQueues, ABlockEnqueuesItself) {
    run_kernel("nested", [&](const Values& out) {
        for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(out[i], static_cast<cl_int>(i)) << i;
    });
}

TEST_F(SpirvDeviceQueues, BlocksHaveLocalMemory) {
    run_kernel("locals", [&](const Values& out) {
        for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(out[i], static_cast<cl_int>(i / 16 * 16 + 15 - i % 16 + 1000)) << i;
    });
}

TEST_F(SpirvDeviceQueues, Events_OrderBlocks) {
    run_kernel("events", [&](const Values& out) {
        EXPECT_EQ(part(out, 0, 8), (Values{1, 0, 0, 0, 0, 0, 1, 0}));
        EXPECT_EQ(part(out, 10, 4), (Values{1, 2, 3, 7}));  // the last: before the first, which the gate holds back
        EXPECT_EQ(out[20], 0);  // its event failed
    });
}

TEST_F(SpirvDeviceQueues, ProfilingInfo_IsCapturedNowOrWhenTheBlockEnds) {
    run_kernel("times", [&](const Values& out) {
        std::array<cl_ulong, 4> times{};
        std::memcpy(times.data(), out.data(), sizeof times);
        EXPECT_LE(times[0], times[1]);
        EXPECT_NE(times[1], 0u);
        EXPECT_EQ(times[2], times[0]);
        EXPECT_EQ(times[3], times[1]);
        EXPECT_EQ(out[40], 1);
    });
}

TEST_F(SpirvDeviceQueues, Queries) {
    run_kernel("queries", [&](const Values& out) {
        size_t largest = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof largest, &largest, nullptr),
                  CL_SUCCESS);
        const auto group = static_cast<cl_int>(largest);
        EXPECT_EQ(out[0], group);
        EXPECT_GT(out[1], 0);
        const cl_int sub_group = out[2];  // of a range of 64 work-items
        ASSERT_GT(sub_group, 0);
        EXPECT_EQ(out[3], (64 + sub_group - 1) / sub_group);
        EXPECT_EQ(out[4] % 2, 0);
        EXPECT_EQ(out[5], (group + out[4] / 2 - 1) / (out[4] / 2));
        EXPECT_EQ(std::min(out[4] / 2, 64), sub_group);
        EXPECT_EQ(out[6], 0);
    });
}

TEST_F(SpirvDeviceQueues, RangesHaveOffsetsAndDimensions) {
    run_kernel("ranges", [&](const Values& out) {
        for (int i = 0; i < 12; ++i)
            EXPECT_EQ(out[i], i % 3 + 1 + 10 * (i / 3 % 2 + 2) + 100 * (i / 6 + 3)) << i;
        for (int i = 0; i < 10; ++i)
            EXPECT_EQ(out[20 + i], i % 5 + 10 * (i / 5)) << i;
    });
}

TEST_F(SpirvDeviceQueues, TheDefaultQueue) {
    run_kernel("default", [&](const Values& out) {
        EXPECT_EQ(out[0], -101);
        const OwnedQueue standard = make_device_queue(CL_QUEUE_ON_DEVICE_DEFAULT);
        EXPECT_EQ(part(launch(1), 0, 2), (Values{0, 1}));
    });
}

TEST_F(SpirvDeviceQueues, AnEntryPointMayBeABlock) {
    kernel_name = "entry";
    on_each_device([&] {
        const OwnedProgram user = module("block_user"), library = module("block_library");
        for (const cl_program each : {cl_program{user}, cl_program{library}})
            ASSERT_EQ(clCompileProgram(each, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS)
                << build_log(each);
        const cl_program both[] = {user, library};
        cl_int error = CL_INVALID_VALUE;
        program = clLinkProgram(context, 0, nullptr, "", 2, both, nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS) << build_log(program);
        EXPECT_EQ(part(launch(1), 0, 2), (Values{5, 0}));
        // An imported function, and functions of the same name in both modules.
        kernel_name = "called";
        EXPECT_EQ(part(launch(1), 0, 3), (Values{1, 3, 0}));
        kernel_name = "other";
        EXPECT_EQ(part(launch(1), 0, 3), (Values{0, 0, 2}));
        // Wrong arguments of a call are its result.
        kernel_name = "errors";
        EXPECT_EQ(part(launch(1), 0, 5), (Values{-101, -101, -101, -101, 0}));
        EXPECT_EQ(kernel_names().size(), 5u);  // with `direct`, the entry point
        reload_from_binary();
        kernel_name = "called";
        EXPECT_EQ(part(launch(1), 0, 3), (Values{1, 3, 0}));
        kernel_name = "entry";
    });
}

TEST_F(SpirvDeviceQueues, TheTranslatorsModuleComputesWhatItsSourceDoes) {
    const auto expect_all = [&] {
        const Values out = launch(1);
        EXPECT_EQ(part(out, 0, 4), (Values{0, 0, 0, 1}));
        for (cl_int i = 0; i < 16; ++i) {
            EXPECT_EQ(out[16 + i], static_cast<cl_int>(count) - i) << i;
            const cl_int second = static_cast<cl_int>(count) - (i / 8 * 8 + 7 - i % 8) + 1000 * (7 - i % 8);
            EXPECT_EQ(out[32 + i], second) << i;
            EXPECT_EQ(out[48 + i], out[47 - i]) << i;
        }
        EXPECT_EQ(kernel_names(), std::vector<std::string>{"test"});
    };
    run(file(POLDER_TEST_BLOCKS).c_str(), expect_all);
    on_each_device([&] {
        program = built("blocks");
        expect_all();
    });
}

// --- calls that cannot be ---

enum : uint32_t {
    id_void = 1,
    id_uint,
    id_ulong,
    id_uchar,
    id_queue,
    id_event,
    id_kernel_type,
    id_bytes,
    id_local,
    id_three,
    id_array,
    id_range_type,
    id_events,
    id_block_type,
    id_locals_type,
    id_value_type,
    id_number_type,
    id_zero,
    id_one,
    id_long,
    id_no_events,
    id_place,
    id_kernel,
    id_block,
    id_locals_block,
    id_value_block,
    id_number_block,
    id_made_queue,
    id_made_range,
    id_made_event,
    id_result,
    id_free = 60
};

// A kernel with one instruction between the making of a queue, a range and an event, and the return.
std::string module_with(spv::Op opcode, const std::vector<uint32_t>& operands) {
    ModuleWriter module;
    for (const spv::Capability each : {spv::CapabilityAddresses, spv::CapabilityLinkage, spv::CapabilityKernel,
                                       spv::CapabilityInt64, spv::CapabilityInt8, spv::CapabilityDeviceEnqueue})
        module.put(spv::OpCapability, {static_cast<uint32_t>(each)});
    module.put(spv::OpMemoryModel, {spv::AddressingModelPhysical64, spv::MemoryModelOpenCL})
        .put_text(spv::OpEntryPoint, {spv::ExecutionModelKernel, id_kernel}, "k", {id_place})
        .put(spv::OpTypeVoid, {id_void})
        .put(spv::OpTypeInt, {id_uint, 32, 0})
        .put(spv::OpTypeInt, {id_ulong, 64, 0})
        .put(spv::OpTypeInt, {id_uchar, 8, 0})
        .put(spv::OpTypeQueue, {id_queue})
        .put(spv::OpTypeDeviceEvent, {id_event})
        .put(spv::OpTypeFunction, {id_kernel_type, id_void})
        .put(spv::OpTypePointer, {id_bytes, spv::StorageClassCrossWorkgroup, id_uchar})
        .put(spv::OpTypePointer, {id_local, spv::StorageClassWorkgroup, id_uchar})
        .put(spv::OpConstant, {id_uint, id_three, 3})
        .put(spv::OpTypeArray, {id_array, id_ulong, id_three})
        .put(spv::OpTypeStruct, {id_range_type, id_uint, id_array, id_array, id_array})
        .put(spv::OpTypePointer, {id_events, spv::StorageClassFunction, id_event})
        .put(spv::OpTypeFunction, {id_block_type, id_void, id_bytes})
        .put(spv::OpTypeFunction, {id_locals_type, id_void, id_bytes, id_local})
        .put(spv::OpTypeFunction, {id_value_type, id_uint, id_bytes})
        .put(spv::OpTypeFunction, {id_number_type, id_void, id_bytes, id_uint})
        .put(spv::OpConstant, {id_uint, id_zero, 0})
        .put(spv::OpConstant, {id_uint, id_one, 1})
        .put(spv::OpConstant, {id_ulong, id_long, 1, 0})
        .put(spv::OpConstantNull, {id_events, id_no_events})
        .put(spv::OpVariable, {id_bytes, id_place, spv::StorageClassCrossWorkgroup});
    const auto function = [&](uint32_t id, uint32_t type, std::initializer_list<uint32_t> parameters, bool has_value) {
        uint32_t next = id_free + 10 * (id - id_block);
        module.put(spv::OpFunction, {has_value ? uint32_t{id_uint} : uint32_t{id_void}, id, 0, type});
        for (const uint32_t parameter : parameters)
            module.put(spv::OpFunctionParameter, {parameter, next++});
        module.put(spv::OpLabel, {next});
        has_value ? module.put(spv::OpReturnValue, {id_one}) : module.put(spv::OpReturn);
        module.put(spv::OpFunctionEnd);
    };
    function(id_block, id_block_type, {id_bytes}, false);
    function(id_locals_block, id_locals_type, {id_bytes, id_local}, false);
    function(id_value_block, id_value_type, {id_bytes}, true);
    function(id_number_block, id_number_type, {id_bytes, id_uint}, false);
    return module.put(spv::OpFunction, {id_void, id_kernel, 0, id_kernel_type})
        .put(spv::OpLabel, {id_free + 90})
        .put(spv::OpGetDefaultQueue, {id_queue, id_made_queue})
        .put(spv::OpBuildNDRange, {id_range_type, id_made_range, id_long, id_long, id_long})
        .put(spv::OpCreateUserEvent, {id_event, id_made_event})
        .put(opcode, operands)
        .put(spv::OpReturn)
        .put(spv::OpFunctionEnd)
        .bytes();
}

class WrongBlocks : public SpirvDeviceQueues {
protected:
    // The log names the instruction; where `why` is not empty, with this reason.
    void expect_refused(spv::Op opcode, const std::vector<uint32_t>& operands, const std::string& why) {
        const OwnedProgram made = from_il(module_with(opcode, operands));
        EXPECT_EQ(clBuildProgram(made, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE) << why;
        EXPECT_NE(build_log(made).find("Op"), std::string::npos) << build_log(made);
        EXPECT_NE(build_log(made).find(why), std::string::npos) << build_log(made);
    }
    void expect_built(spv::Op opcode, const std::vector<uint32_t>& operands) {
        const OwnedProgram made = from_il(module_with(opcode, operands));
        EXPECT_EQ(clBuildProgram(made, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS) << build_log(made);
    }
    // A valid call, with one operand replaced and others behind it.
    [[nodiscard]] static std::vector<uint32_t> call(size_t index = 0, uint32_t id = id_uint,
                                                    std::initializer_list<uint32_t> sizes = {}) {
        std::vector<uint32_t> operands{id_uint,      id_result,    id_made_queue, id_zero,  id_made_range, id_zero,
                                       id_no_events, id_no_events, id_block,      id_place, id_one,        id_one};
        operands[index] = id;
        operands.insert(operands.end(), sizes);
        return operands;
    }
};

TEST_F(WrongBlocks, AreRefusedWithTheInstruction) {
    using enum spv::Op;
    expect_built(OpEnqueueKernel, call());
    expect_built(OpEnqueueKernel, call(8, id_locals_block, {id_one}));
    expect_refused(OpEnqueueKernel, call(8, id_place), "Invoke, operand 6, is not a function");
    expect_refused(OpEnqueueKernel, call(8, id_value_block), "or returns a value");
    expect_refused(OpEnqueueKernel, call(8, id_kernel), "does not take a pointer first");
    expect_refused(OpEnqueueKernel, call(8, id_number_block, {id_one}),
                   "parameter 1 of Invoke is not a pointer to local");
    expect_refused(OpEnqueueKernel, call(8, id_locals_block),
                   "takes 1 pointers to local memory, and there are 0 sizes");
    expect_refused(OpEnqueueKernel, call(8, id_block, {id_one, id_one}),
                   "takes 0 pointers to local memory, and there are 2");
    expect_refused(OpEnqueueKernel, call(8, id_locals_block, {id_made_event}), "operand 10 is not a size");
    expect_refused(OpEnqueueKernel, call(0, id_ulong), "the value is not of the result's type");
    expect_refused(OpEnqueueKernel, call(2, id_made_event), "operand 0 is not of the type");
    expect_refused(OpEnqueueKernel, call(3, id_long), "operand 1 is not of the type");
    expect_refused(OpEnqueueKernel, call(4, id_long), "operand 2 is not a range");
    expect_refused(OpEnqueueKernel, call(5, id_long), "operand 3 is not of the type");
    expect_refused(OpEnqueueKernel, call(6, id_place), "operand 4 is not of the type");
    expect_refused(OpEnqueueKernel, call(7, id_made_event), "operand 5 is not of the type");
    expect_refused(OpEnqueueKernel, call(9, id_one), "operand 7 is not a pointer");
    expect_refused(OpEnqueueKernel, call(10, id_long), "operand 8 is not the size");
    expect_refused(OpEnqueueKernel, call(11, id_three), "operand 9 is not the alignment");
    expect_refused(OpEnqueueKernel, call(11, id_block), "");
}

TEST_F(WrongBlocks, OtherInstructionsAreRefusedToo) {
    using enum spv::Op;
    expect_built(OpGetKernelWorkGroupSize, {id_uint, id_result, id_block, id_place, id_one, id_one});
    expect_refused(OpGetKernelWorkGroupSize, {id_uint, id_result, id_place, id_place, id_one, id_one},
                   "is not a function");
    expect_refused(OpGetKernelWorkGroupSize, {id_ulong, id_result, id_block, id_place, id_one, id_one},
                   "result's type");
    expect_refused(OpGetKernelNDrangeSubGroupCount,
                   {id_uint, id_result, id_made_queue, id_block, id_place, id_one, id_one}, "is not a range");
    expect_refused(OpBuildNDRange, {id_array, id_result, id_long, id_long, id_long},
                   "the result is not a work dimension");
    expect_refused(OpBuildNDRange, {id_range_type, id_result, id_long, id_place, id_long}, "operand 1 is not a number");
    expect_refused(OpBuildNDRange, {id_range_type, id_result, id_one, id_one, id_one}, "operand 0 is not a number");
    expect_refused(OpEnqueueMarker, {id_uint, id_result, id_made_queue, id_one, id_made_event, id_no_events},
                   "operand 2");
    expect_refused(OpCreateUserEvent, {id_queue, id_result}, "the value is not of the result's type");
    expect_refused(OpGetDefaultQueue, {id_event, id_result}, "the value is not of the result's type");
    expect_refused(OpIsValidEvent, {id_uint, id_result, id_made_event}, "");
    expect_refused(OpRetainEvent, {id_made_queue}, "operand 0");
    expect_refused(OpReleaseEvent, {id_zero}, "operand 0");
    expect_refused(OpSetUserEventStatus, {id_made_event, id_long}, "operand 1");
    expect_refused(OpCaptureEventProfilingInfo, {id_made_event, id_one, id_no_events}, "operand 2");
    // A function is no value.
    expect_refused(OpRetainEvent, {id_block}, "OpRetainEvent");
}

}  // namespace
}  // namespace polder::test
