// LLVM's SPIR-V backend emits some instructions that the specification does not allow and every consumer accepts:
//   printf with a pointer to the whole format string instead of one to its first character;
//   OpAny and OpAll of integers and of vectors of integers;
//   OpUConvert and OpSConvert to the same type;
//   ldexp of a vector with one exponent for all elements;
//   OpConstantNull as the index of a structure's member, where only OpConstant is allowed.
// Translators from LLVM before version 16 do not list all variables that an entry point uses, as SPIR-V 1.4 asks them to.
// And DPC++'s compiler emits the declarations of SPV_INTEL_memory_access_aliasing among the types, where they belong; SPIRV-Tools
// up to 2023 refuse them there. The translation does not use these hints. Blocks may be in any order (block_order.h).
// The validator gets a copy of the module in which these instructions are replaced by some that it accepts: undefined
// values, copies, and constants. Declarations of aliasing are left out. The translation checks the original instructions itself.
#include "validation.h"

#include "block_order.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <spirv-tools/libspirv.hpp>
#include <spirv/unified1/OpenCL.std.h>

namespace polder::compiler::spirv {
namespace {

class LenientCopy {
public:
    explicit LenientCopy(const Binary& binary) {
        words_.assign(binary.words().begin(), binary.words().begin() + header_words);
        for (const Instruction& instruction : binary.instructions()) {
            if (declares_aliasing(instruction.opcode))
                aliasing_.insert(instruction.result);
            if (instruction.type != 0)
                types_[instruction.result] = instruction.type;
            if (instruction.opcode == spv::OpVariable && instruction.operand(0) != spv::StorageClassFunction)
                variables_.push_back(instruction.result);
        }
        for (const Instruction* instruction : with_ordered_blocks(binary))
            add(*instruction, binary.words());
    }
    [[nodiscard]] const std::vector<uint32_t>& words() const { return words_; }

private:
    static constexpr uint32_t version_of_whole_interfaces = 0x00010400;

    void put(spv::Op opcode, const std::vector<uint32_t>& operands) {
        words_.push_back(static_cast<uint32_t>(operands.size() + 1) << spv::WordCountShift | opcode);
        words_.insert(words_.end(), operands.begin(), operands.end());
    }

    static bool declares_aliasing(spv::Op opcode) {
        return opcode == spv::OpAliasDomainDeclINTEL || opcode == spv::OpAliasScopeDeclINTEL ||
               opcode == spv::OpAliasScopeListDeclINTEL;
    }

    // A declaration, its name, or a decoration with it.
    [[nodiscard]] bool is_about_aliasing(const Instruction& instruction) const {
        if (instruction.opcode == spv::OpDecorateId)
            return instruction.operand(1) == spv::DecorationAliasScopeINTEL ||
                   instruction.operand(1) == spv::DecorationNoAliasINTEL;
        return declares_aliasing(instruction.opcode) ||
               (instruction.opcode == spv::OpName && aliasing_.contains(instruction.operand(0)));
    }

    // The index of the memory operands; 0: the instruction has none.
    static size_t memory_operands_at(spv::Op opcode) {
        switch (opcode) {
        case spv::OpLoad: return 1;
        case spv::OpStore:
        case spv::OpCopyMemory: return 2;
        case spv::OpCopyMemorySized: return 3;
        default: return 0;
        }
    }

    // Leaves the alias scopes out of the memory operands, which are one or two masks with parameters. False: there are none.
    bool put_without_alias_scopes(const Instruction& instruction) {
        const uint32_t parameters = spv::MemoryAccessAlignedMask | spv::MemoryAccessMakePointerAvailableMask |
                                    spv::MemoryAccessMakePointerVisibleMask;
        const uint32_t scopes = spv::MemoryAccessAliasScopeINTELMaskMask | spv::MemoryAccessNoAliasINTELMaskMask;
        const size_t first = memory_operands_at(instruction.opcode);
        if (first == 0 || (instruction.operand(first) & scopes) == 0)
            return false;
        std::vector<uint32_t> operands;
        if (instruction.opcode == spv::OpLoad)
            operands = {instruction.type, instruction.result};
        const std::span<const uint32_t> all = instruction.operands;
        operands.insert(operands.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
        for (size_t at = first; at < all.size();) {
            const uint32_t mask = all[at];
            operands.push_back(mask & ~scopes);
            const size_t kept = std::min<size_t>(std::popcount(mask & parameters), all.size() - at - 1);
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at) + 1;
            operands.insert(operands.end(), begin, begin + static_cast<std::ptrdiff_t>(kept));
            at += 1 + kept + std::popcount(mask & scopes);
        }
        put(instruction.opcode, operands);
        return true;
    }

    void add(const Instruction& instruction, const std::vector<uint32_t>& words) {
        note(instruction);
        if (is_about_aliasing(instruction) || put_without_alias_scopes(instruction))
            return;
        if (is_printf(instruction) || instruction.opcode == spv::OpAny || instruction.opcode == spv::OpAll ||
            has_one_exponent(instruction))
            return put(spv::OpUndef, {instruction.type, instruction.result});
        if (instruction.opcode == spv::OpEntryPoint && words_[1] >= version_of_whole_interfaces)
            return put_with_variables(instruction);
        if (converts_nothing(instruction))
            return put(spv::OpCopyObject, {instruction.type, instruction.result, instruction.operand(0)});
        const auto width = integer_widths_.find(instruction.type);
        if (instruction.opcode == spv::OpConstantNull && width != integer_widths_.end()) {
            if (width->second > 32)
                return put(spv::OpConstant, {instruction.type, instruction.result, 0, 0});
            return put(spv::OpConstant, {instruction.type, instruction.result, 0});
        }
        const size_t leading = size_t{1} + (instruction.type != 0 ? 1 : 0) + (instruction.result != 0 ? 1 : 0);
        const auto begin =
            words.begin() + (instruction.operands.data() - words.data()) - static_cast<std::ptrdiff_t>(leading);
        words_.insert(words_.end(), begin, begin + static_cast<std::ptrdiff_t>(leading + instruction.operands.size()));
    }

    // An interface may list variables that are not used.
    void put_with_variables(const Instruction& entry) {
        size_t interface = 0;
        static_cast<void>(entry.text(2, &interface));
        std::vector<uint32_t> operands{entry.operands.begin(), entry.operands.end()};
        for (const uint32_t variable : variables_)
            if (std::find(operands.begin() + static_cast<std::ptrdiff_t>(interface), operands.end(), variable) ==
                operands.end())
                operands.push_back(variable);
        constexpr size_t words_max = 0xffff;
        if (operands.size() >= words_max)
            operands.assign(entry.operands.begin(), entry.operands.end());
        put(spv::OpEntryPoint, operands);
    }

    void note(const Instruction& instruction) {
        if (instruction.opcode == spv::OpExtInstImport && instruction.text(0) == "OpenCL.std")
            opencl_sets_.insert(instruction.result);
        if (instruction.opcode == spv::OpTypeInt)
            integer_widths_[instruction.result] = instruction.operand(0);
        if (instruction.opcode == spv::OpTypeVector)
            vector_types_.insert(instruction.result);
    }

    [[nodiscard]] bool calls(const Instruction& instruction, uint32_t function) const {
        return instruction.opcode == spv::OpExtInst && instruction.operand(1) == function &&
               opencl_sets_.contains(instruction.operand(0));
    }
    [[nodiscard]] bool is_printf(const Instruction& instruction) const { return calls(instruction, OpenCLLIB::Printf); }

    [[nodiscard]] uint32_t type_of(uint32_t value) const {
        const auto type = types_.find(value);
        return type == types_.end() ? 0 : type->second;
    }
    [[nodiscard]] bool has_one_exponent(const Instruction& instruction) const {
        return calls(instruction, OpenCLLIB::Ldexp) && vector_types_.contains(instruction.type) &&
               integer_widths_.contains(type_of(instruction.operand(3)));
    }
    [[nodiscard]] bool converts_nothing(const Instruction& instruction) const {
        return (instruction.opcode == spv::OpUConvert || instruction.opcode == spv::OpSConvert) &&
               type_of(instruction.operand(0)) == instruction.type;
    }

    std::vector<uint32_t> words_;
    std::set<uint32_t> aliasing_;  // ids of declarations
    std::vector<uint32_t> variables_;  // of the module
    std::set<uint32_t> opencl_sets_;
    std::set<uint32_t> vector_types_;
    std::map<uint32_t, uint32_t> integer_widths_;
    std::map<uint32_t, uint32_t> types_;  // of results
};

}  // namespace

Result<void> validate(const Binary& binary, std::string& log) {
    spvtools::SpirvTools reporting(SPV_ENV_UNIVERSAL_1_6);
    if (!reporting.IsValid())
        return fail(Status::out_of_host_memory);
    reporting.SetMessageConsumer(
        [&](spv_message_level_t level, const char*, const spv_position_t& at, const char* text) {
            if (level <= SPV_MSG_ERROR)
                log += "error: SPIR-V, instruction " + std::to_string(at.index) + ": " + text + "\n";
        });
    const LenientCopy copy(binary);
    if (reporting.Validate(copy.words().data(), copy.words().size(), spvtools::ValidatorOptions{}))
        return {};
    if (log.empty())
        log += "error: SPIR-V: the module is not valid\n";
    return fail(Status::compile_program_failure);
}

}  // namespace polder::compiler::spirv
