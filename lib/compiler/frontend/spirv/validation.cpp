// LLVM's SPIR-V backend emits some instructions that the specification does not allow and every consumer accepts:
//   printf with a pointer to the whole format string instead of one to its first character;
//   OpAny and OpAll of vectors of integers;
//   OpConstantNull as the index of a structure's member, where only OpConstant is allowed.
// And DPC++'s compiler emits the declarations of SPV_INTEL_memory_access_aliasing among the types, where they belong; SPIRV-Tools
// up to 2023 refuse them there. The translation does not use these hints.
// The validator gets a copy of the module in which these instructions are replaced by some that it accepts: undefined
// values, and constants. Declarations of aliasing are left out. The translation checks the original instructions itself.
#include "validation.h"

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
        for (const Instruction& instruction : binary.instructions())
            if (declares_aliasing(instruction.opcode))
                aliasing_.insert(instruction.result);
        for (const Instruction& instruction : binary.instructions())
            add(instruction, binary.words());
    }
    [[nodiscard]] const std::vector<uint32_t>& words() const { return words_; }

private:
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
        if (is_printf(instruction) || instruction.opcode == spv::OpAny || instruction.opcode == spv::OpAll)
            return put(spv::OpUndef, {instruction.type, instruction.result});
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

    void note(const Instruction& instruction) {
        if (instruction.opcode == spv::OpExtInstImport && instruction.text(0) == "OpenCL.std")
            opencl_sets_.insert(instruction.result);
        if (instruction.opcode == spv::OpTypeInt)
            integer_widths_[instruction.result] = instruction.operand(0);
    }

    [[nodiscard]] bool is_printf(const Instruction& instruction) const {
        return instruction.opcode == spv::OpExtInst && instruction.operand(1) == OpenCLLIB::Printf &&
               opencl_sets_.contains(instruction.operand(0));
    }

    std::vector<uint32_t> words_;
    std::set<uint32_t> aliasing_;  // ids of declarations
    std::set<uint32_t> opencl_sets_;
    std::map<uint32_t, uint32_t> integer_widths_;
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
