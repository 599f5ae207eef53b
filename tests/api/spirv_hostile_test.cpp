// Modules as attackers write them: huge ids, types that contain themselves, arrays larger than memory, deep nests, strings
// without an end. Each is refused with a build log or built; the process does not crash, and does not need minutes or gigabytes.
#include "support/fixture.h"
#include "support/module_writer.h"

#include <functional>

namespace polder::test {
namespace {

// Ids that all modules here use alike.
enum : uint32_t { id_void = 1, id_function_type, id_kernel, id_uint, id_ulong, id_byte, id_label, id_free = 20 };

class HostileModule : public ContextTest {
protected:
    enum class Outcome : uint8_t { built, refused };

    Outcome outcome(const ModuleWriter& module) {
        const std::string bytes = module.bytes();
        cl_int error = CL_SUCCESS;
        OwnedProgram program = clCreateProgramWithIL(context, bytes.data(), bytes.size(), &error);
        if (!program) {
            EXPECT_EQ(error, CL_INVALID_VALUE);
            return Outcome::refused;
        }
        error = clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
        if (error == CL_SUCCESS) {
            launch(program);
            return Outcome::built;
        }
        EXPECT_EQ(error, CL_BUILD_PROGRAM_FAILURE);
        size_t size = 0;
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, 0, nullptr, &size), CL_SUCCESS);
        EXPECT_GT(size, 10u) << "a module was refused without a reason";
        log_.resize(size);
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, size, log_.data(), nullptr),
                  CL_SUCCESS);
        return Outcome::refused;
    }
    void expect_refused(const ModuleWriter& module) { EXPECT_EQ(outcome(module), Outcome::refused); }
    void expect_built(const ModuleWriter& module) { EXPECT_EQ(outcome(module), Outcome::built) << log_; }

    static ModuleWriter with_types(uint32_t bound = 1000) {
        ModuleWriter module(bound);
        add_types(module.begin(id_kernel));
        return module;
    }
    static void add_types(ModuleWriter& module) {
        module.put(spv::OpTypeVoid, {id_void})
            .put(spv::OpTypeInt, {id_uint, 32, 0})
            .put(spv::OpTypeInt, {id_ulong, 64, 0})
            .put(spv::OpTypeInt, {id_byte, 8, 0})
            .put(spv::OpTypeFunction, {id_function_type, id_void});
    }
    // A kernel without arguments, with what `body` writes into its first block.
    static ModuleWriter&
    add_kernel(ModuleWriter& module, const std::function<void(ModuleWriter&)>& body = [](ModuleWriter&) {}) {
        module.put(spv::OpFunction, {id_void, id_kernel, 0, id_function_type}).put(spv::OpLabel, {id_label});
        body(module);
        return module.put(spv::OpReturn).put(spv::OpFunctionEnd);
    }

private:
    std::string log_;  // of the module that was refused last

    // A program that was built must at least have kernels that can be created and launched.
    void launch(cl_program program) {
        cl_int error = CL_SUCCESS;
        OwnedKernel kernel = clCreateKernel(program, "k", &error);
        if (!kernel)
            return;
        const size_t one = 1;
        error = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
        if (error == CL_SUCCESS) {
            EXPECT_EQ(clFinish(queue), CL_SUCCESS);
        }
    }
};

TEST_F(HostileModule, TheWriterMakesGoodModules) {
    ModuleWriter module = with_types();
    expect_built(add_kernel(module));
}

TEST_F(HostileModule, IdsBeyondTheBoundAndHugeBounds) {
    ModuleWriter beyond = with_types();
    beyond.put(spv::OpTypeInt, {5000, 16, 0});
    expect_refused(add_kernel(beyond));
    for (const uint32_t bound : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
        ModuleWriter module = with_types(bound);
        expect_refused(add_kernel(module));
    }
    ModuleWriter huge = with_types(0xffffffffu);
    huge.put(spv::OpConstant, {id_uint, 0xfffffffeu, 1});
    expect_refused(add_kernel(huge));
    // The largest that the specification wants every reader to take.
    ModuleWriter large = with_types(4194303);
    large.put(spv::OpConstant, {id_uint, 4194302, 1});
    expect_built(add_kernel(large));
}

TEST_F(HostileModule, TypesThatContainThemselves) {
    const std::vector<std::vector<uint32_t>> structures{{id_free}, {id_free, id_free}, {id_uint, id_free + 1}};
    for (const std::vector<uint32_t>& structure : structures) {
        ModuleWriter module = with_types();
        std::vector<uint32_t> operands{id_free};
        operands.insert(operands.end(), structure.begin(), structure.end());
        module.put(spv::OpTypeStruct, operands).put(spv::OpTypeStruct, {id_free + 1, id_free});
        expect_refused(add_kernel(module));
    }
    ModuleWriter array = with_types();
    array.put(spv::OpConstant, {id_uint, id_free, 4}).put(spv::OpTypeArray, {id_free + 1, id_free + 1, id_free});
    expect_refused(add_kernel(array));
    ModuleWriter function = with_types();
    function.put(spv::OpTypeFunction, {id_free, id_free, id_free});
    expect_refused(add_kernel(function));
    ModuleWriter pointer = with_types();
    pointer.put(spv::OpTypeForwardPointer, {id_free, spv::StorageClassCrossWorkgroup})
        .put(spv::OpTypePointer, {id_free, spv::StorageClassCrossWorkgroup, id_free});
    outcome(add_kernel(pointer));
    // A list's node: the one cycle that is allowed.
    ModuleWriter list = with_types();
    list.put(spv::OpTypeForwardPointer, {id_free, spv::StorageClassCrossWorkgroup})
        .put(spv::OpTypeStruct, {id_free + 1, id_uint, id_free})
        .put(spv::OpTypePointer, {id_free, spv::StorageClassCrossWorkgroup, id_free + 1});
    expect_built(add_kernel(list));
}

TEST_F(HostileModule, ArraysLargerThanMemory) {
    for (const uint64_t length : {uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 47, uint64_t{1} << 61, ~uint64_t{0}})
        for (const spv::StorageClass storage :
             {spv::StorageClassFunction, spv::StorageClassWorkgroup, spv::StorageClassCrossWorkgroup}) {
            ModuleWriter module = with_types();
            module
                .put(spv::OpConstant,
                     {id_ulong, id_free, static_cast<uint32_t>(length), static_cast<uint32_t>(length >> 32)})
                .put(spv::OpTypeArray, {id_free + 1, id_ulong, id_free})
                .put(spv::OpTypeArray, {id_free + 2, id_free + 1, id_free})
                .put(spv::OpTypePointer, {id_free + 3, static_cast<uint32_t>(storage), id_free + 2});
            const std::vector<uint32_t> variable{id_free + 3, id_free + 4, static_cast<uint32_t>(storage)};
            if (storage != spv::StorageClassFunction)
                module.put(spv::OpVariable, variable);
            outcome(add_kernel(module, [&](ModuleWriter& body) {
                if (storage == spv::StorageClassFunction)
                    body.put(spv::OpVariable, variable);
                // So that it is used.
                body.put(spv::OpStore, {id_free + 4, id_free + 5});
            }));
        }
}

// Constants that are larger than memory, each made of a few words.
TEST_F(HostileModule, ConstantsOfManyElements) {
    constexpr uint32_t levels = 12;
    for (const spv::Op opcode : {spv::OpConstantComposite, spv::OpConstantNull}) {
        ModuleWriter module = with_types();
        module.put(spv::OpConstant, {id_uint, id_free, 8}).put(spv::OpConstant, {id_ulong, id_free + 1, 7, 0});
        uint32_t type = id_ulong, constant = id_free + 1, next = id_free + 2;
        for (uint32_t level = 0; level < levels; ++level) {
            module.put(spv::OpTypeArray, {next, type, id_free});
            std::vector<uint32_t> operands{next, next + 1};
            if (opcode == spv::OpConstantComposite)
                operands.insert(operands.end(), 8, constant);
            module.put(opcode, operands);
            type = next;
            constant = next + 1;
            next += 2;
        }
        module.put(spv::OpTypePointer, {next, spv::StorageClassUniformConstant, type})
            .put(spv::OpVariable, {next, next + 1, spv::StorageClassUniformConstant, constant});
        expect_refused(add_kernel(module));
    }
}

TEST_F(HostileModule, DeepNestsOfTypesAndConstants) {
    for (const uint32_t depth : {200u, 300u, 5000u}) {
        ModuleWriter module = with_types(3 * depth + 100);
        module.put(spv::OpConstant, {id_uint, id_free, 3});
        uint32_t type = id_uint, constant = id_free, next = id_free + 1;
        for (uint32_t i = 0; i < depth; ++i) {
            module.put(spv::OpTypeStruct, {next, type}).put(spv::OpConstantComposite, {next, next + 1, constant});
            type = next;
            constant = next + 1;
            next += 2;
        }
        EXPECT_EQ(outcome(add_kernel(module)), depth < 255 ? Outcome::built : Outcome::refused) << depth;
    }
}

TEST_F(HostileModule, LongChainsOfConstantOperations) {
    constexpr uint32_t length = 20000;
    ModuleWriter sums = with_types(length + 100);
    sums.put(spv::OpSpecConstant, {id_uint, id_free, 1});
    for (uint32_t i = 0; i < length; ++i)
        sums.put(spv::OpSpecConstantOp, {id_uint, id_free + i + 1, spv::OpIAdd, id_free + i, id_free + i});
    expect_built(add_kernel(sums));
    // Addresses: each is an expression of the one before.
    ModuleWriter addresses = with_types(length + 100);
    const uint32_t pointer = id_free, variable = id_free + 1, one = id_free + 2, first = id_free + 3;
    addresses.put(spv::OpTypePointer, {pointer, spv::StorageClassCrossWorkgroup, id_byte})
        .put(spv::OpVariable, {pointer, variable, spv::StorageClassCrossWorkgroup})
        .put(spv::OpConstant, {id_ulong, one, 1, 0});
    for (uint32_t i = 0; i < length; ++i)
        addresses.put(spv::OpSpecConstantOp,
                      {pointer, first + i, spv::OpInBoundsPtrAccessChain, i == 0 ? variable : first + i - 1, one});
    outcome(add_kernel(addresses));
}

TEST_F(HostileModule, StringsWithoutAnEnd) {
    constexpr uint32_t endless = 0x61616161;
    const auto refuse = [&](spv::Op opcode, const std::vector<uint32_t>& operands) {
        ModuleWriter module;
        module.put(spv::OpCapability, {spv::CapabilityAddresses})
            .put(spv::OpCapability, {spv::CapabilityKernel})
            .put(spv::OpCapability, {spv::CapabilityLinkage});
        const bool comes_early = opcode == spv::OpExtension || opcode == spv::OpExtInstImport;
        if (comes_early)
            module.put(opcode, operands);
        module.put(spv::OpMemoryModel, {spv::AddressingModelPhysical64, spv::MemoryModelOpenCL});
        if (!comes_early)
            module.put(opcode, operands);
        add_types(module);
        expect_refused(add_kernel(module));
    };
    refuse(spv::OpExtension, {endless});
    refuse(spv::OpExtInstImport, {id_free, endless, endless});
    refuse(spv::OpEntryPoint, {spv::ExecutionModelKernel, id_kernel, endless});
    refuse(spv::OpString, {id_free, endless});
    refuse(spv::OpName, {id_kernel, endless});
    refuse(spv::OpMemberName, {id_kernel, 0, endless, endless});
    refuse(spv::OpDecorate, {id_kernel, spv::DecorationLinkageAttributes, endless, endless});
    refuse(spv::OpExtension, {});
    refuse(spv::OpEntryPoint, {});
}

TEST_F(HostileModule, EntryPointsTwice) {
    const auto with_entries = [](uint32_t second_function, std::string_view second_name) {
        ModuleWriter module;
        module.begin(id_kernel).put_text(spv::OpEntryPoint, {spv::ExecutionModelKernel, second_function}, second_name);
        add_types(module);
        add_kernel(module);
        return module.put(spv::OpFunction, {id_void, id_free, 0, id_function_type})
            .put(spv::OpLabel, {id_free + 1})
            .put(spv::OpReturn)
            .put(spv::OpFunctionEnd);
    };
    expect_refused(with_entries(id_kernel, "k"));
    expect_refused(with_entries(id_free, "k"));
    expect_built(with_entries(id_free, "other"));
    outcome(with_entries(id_kernel, "other"));
    outcome(with_entries(id_free, ""));
    outcome(with_entries(id_free, std::string(5000, 'x')));
    expect_refused(with_entries(id_uint, "type"));
    expect_refused(with_entries(999, "nothing"));
}

TEST_F(HostileModule, PhisAndLoops) {
    enum : uint32_t { loop = id_free, phi, other_phi, exit, truth_type, truth };
    const auto with_loop = [](const std::vector<uint32_t>& one, const std::vector<uint32_t>& two) {
        ModuleWriter module = with_types();
        module.put(spv::OpConstant, {id_uint, 100, 5})
            .put(spv::OpTypeBool, {truth_type})
            .put(spv::OpConstantTrue, {truth_type, truth});
        return add_kernel(module, [&](ModuleWriter& body) {
            body.put(spv::OpBranch, {loop}).put(spv::OpLabel, {loop}).put(spv::OpPhi, one).put(spv::OpPhi, two);
            body.put(spv::OpBranchConditional, {truth, exit, loop}).put(spv::OpLabel, {exit});
        });
    };
    // Each of the other, and of itself.
    expect_built(
        with_loop({id_uint, phi, 100, id_label, other_phi, loop}, {id_uint, other_phi, 100, id_label, phi, loop}));
    expect_built(
        with_loop({id_uint, phi, 100, id_label, phi, loop}, {id_uint, other_phi, 100, id_label, other_phi, loop}));
    // From a block that does not lead there, the same block twice, too few, not a value, not of the type.
    const std::vector<uint32_t> good{id_uint, other_phi, 100, id_label, phi, loop};
    expect_refused(with_loop({id_uint, phi, 100, id_label, 100, exit}, good));
    expect_refused(with_loop({id_uint, phi, 100, id_label, 100, id_label}, good));
    expect_refused(with_loop({id_uint, phi, 100, id_label}, good));
    expect_refused(with_loop({id_uint, phi}, good));
    expect_refused(with_loop({id_uint, phi, loop, id_label, 100, loop}, good));
    expect_refused(with_loop({id_uint, phi, truth, id_label, 100, loop}, good));
    expect_refused(with_loop({id_uint, phi, 999, id_label, 100, loop}, good));
}

TEST_F(HostileModule, FunctionsThatAreNoFunctions) {
    ModuleWriter variable_of_itself = with_types();
    variable_of_itself.put(spv::OpTypePointer, {id_free, spv::StorageClassCrossWorkgroup, id_ulong})
        .put(spv::OpVariable, {id_free, id_free + 1, spv::StorageClassCrossWorkgroup, id_free + 1});
    expect_refused(add_kernel(variable_of_itself));
    ModuleWriter nested = with_types();
    expect_refused(add_kernel(nested, [](ModuleWriter& body) {
        body.put(spv::OpFunction, {id_void, id_free, 0, id_function_type}).put(spv::OpLabel, {id_free + 1});
    }));
    ModuleWriter calls_itself = with_types();
    expect_refused(add_kernel(
        calls_itself, [](ModuleWriter& body) { body.put(spv::OpFunctionCall, {id_void, id_free, id_kernel}); }));
    ModuleWriter calls_a_type = with_types();
    expect_refused(add_kernel(calls_a_type,
                              [](ModuleWriter& body) { body.put(spv::OpFunctionCall, {id_void, id_free, id_uint}); }));
    ModuleWriter without_end = with_types();
    expect_refused(without_end.put(spv::OpFunction, {id_void, id_kernel, 0, id_function_type}));
    ModuleWriter without_block = with_types();
    without_block.put(spv::OpFunction, {id_void, id_kernel, 0, id_function_type}).put(spv::OpFunctionEnd);
    outcome(without_block);
}

TEST_F(HostileModule, IntelsSubGroupInstructionsOnOtherTypes) {
    enum : uint32_t {
        short_type = id_free,
        word_type,
        three,
        four,
        word,
        half,
        wide,
        pointer,
        place,
        private_pointer,
        result
    };
    const auto with = [&](const std::function<void(ModuleWriter&)>& body) {
        ModuleWriter module;
        for (const spv::Capability each :
             {spv::CapabilityInt16, spv::CapabilitySubgroupShuffleINTEL, spv::CapabilitySubgroupBufferBlockIOINTEL})
            module.put(spv::OpCapability, {static_cast<uint32_t>(each)});
        module.put(spv::OpCapability, {spv::CapabilityAddresses})
            .put(spv::OpCapability, {spv::CapabilityKernel})
            .put(spv::OpCapability, {spv::CapabilityLinkage})
            .put(spv::OpCapability, {spv::CapabilityInt64})
            .put(spv::OpCapability, {spv::CapabilityInt8})
            .put_text(spv::OpExtension, {}, "SPV_INTEL_subgroups")
            .put(spv::OpMemoryModel, {spv::AddressingModelPhysical64, spv::MemoryModelOpenCL})
            .put_text(spv::OpEntryPoint, {spv::ExecutionModelKernel, id_kernel}, "k", {place});
        add_types(module);
        module.put(spv::OpTypeInt, {short_type, 16, 0})
            .put(spv::OpTypeVector, {three, id_uint, 3})
            .put(spv::OpTypeVector, {four, id_uint, 4})
            .put(spv::OpConstant, {id_uint, word, 3})
            .put(spv::OpConstant, {short_type, half, 3})
            .put(spv::OpConstant, {id_ulong, wide, 3, 0})
            .put(spv::OpTypePointer, {pointer, spv::StorageClassCrossWorkgroup, id_uint})
            .put(spv::OpVariable, {pointer, place, spv::StorageClassCrossWorkgroup, word})
            .put(spv::OpTypePointer, {private_pointer, spv::StorageClassFunction, id_uint});
        return add_kernel(module, body);
    };
    const auto one = [&](spv::Op opcode, std::vector<uint32_t> operands) {
        return with([&](ModuleWriter& body) { body.put(opcode, operands); });
    };
    expect_built(one(spv::OpSubgroupShuffleINTEL, {id_uint, result, word, word}));
    expect_refused(one(spv::OpSubgroupShuffleINTEL, {id_uint, result, half, word}));
    expect_refused(one(spv::OpSubgroupShuffleINTEL, {id_uint, result, word, wide}));
    expect_refused(one(spv::OpSubgroupShuffleXorINTEL, {id_uint, result, word, id_uint}));
    expect_refused(one(spv::OpSubgroupShuffleUpINTEL, {id_uint, result, word, wide, word}));
    expect_refused(one(spv::OpSubgroupShuffleDownINTEL, {id_uint, result, word, word, half}));
    expect_refused(one(spv::OpSubgroupShuffleINTEL, {pointer, result, place, word}));
    expect_built(one(spv::OpSubgroupBlockReadINTEL, {four, result, place}));
    expect_refused(one(spv::OpSubgroupBlockReadINTEL, {three, result, place}));
    expect_refused(one(spv::OpSubgroupBlockReadINTEL, {short_type, result, place}));
    expect_refused(one(spv::OpSubgroupBlockReadINTEL, {id_uint, result, word}));
    expect_refused(one(spv::OpSubgroupBlockWriteINTEL, {place, wide}));
    expect_refused(one(spv::OpSubgroupBlockWriteINTEL, {word, word}));
    expect_refused(with([&](ModuleWriter& body) {
        body.put(spv::OpVariable, {private_pointer, result, spv::StorageClassFunction})
            .put(spv::OpSubgroupBlockReadINTEL, {id_uint, result + 1, result});
    }));
}

TEST_F(HostileModule, ExecutionModesThatCannotBe) {
    const auto with_mode = [](const std::vector<uint32_t>& mode) {
        ModuleWriter module;
        module.begin(id_kernel);
        module.put(spv::OpExecutionMode, mode);
        add_types(module);
        return add_kernel(module);
    };
    expect_built(with_mode({id_kernel, spv::ExecutionModeLocalSize, 1, 1, 1}));
    outcome(with_mode({id_kernel, spv::ExecutionModeLocalSize, 0, 1, 1}));
    outcome(with_mode({id_kernel, spv::ExecutionModeLocalSize, 0xffffffff, 0xffffffff, 0xffffffff}));
    outcome(with_mode({id_kernel, spv::ExecutionModeLocalSizeHint, 0, 0, 0}));
    outcome(with_mode({id_kernel, spv::ExecutionModeVecTypeHint, 0xffffffff}));
    expect_refused(with_mode({id_kernel, spv::ExecutionModeLocalSize, 1}));
    expect_refused(with_mode({id_uint, spv::ExecutionModeLocalSize, 1, 1, 1}));
    expect_refused(with_mode({id_kernel, 0x7fffffff}));
}

}  // namespace
}  // namespace polder::test
