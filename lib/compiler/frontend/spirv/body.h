// The translation of one function's body. Each emit_… function handles one family of instructions: it translates an
// instruction of this family and returns true, or returns false.
//
// One thread; lives as long as the translation of one function.
#pragma once

#include "mangling.h"
#include "translation.h"

namespace polder::compiler::spirv {

class Body {
public:
    enum class Contraction : uint8_t { forbidden, allowed };

    Body(Translation& translation, llvm::Function& function, Contraction contraction)
        : translation_(translation), function_(function), contraction_(contraction), builder_(translation.context()) {}

    // Translates one instruction of the body; fails when no family has it.
    void emit(const Instruction& instruction);

    [[nodiscard]] Translation& translation() { return translation_; }
    [[nodiscard]] const Types& types() { return translation_.types(); }
    [[nodiscard]] const Annotations& annotations() { return translation_.annotations(); }
    [[nodiscard]] Builder& builder() { return builder_; }
    [[nodiscard]] llvm::Function& function() { return function_; }
    [[nodiscard]] Contraction contraction() const { return contraction_; }

    // The value of the id at `index` of the operands.
    [[nodiscard]] llvm::Value* value(const Instruction& instruction, size_t index) {
        return value_of(instruction, instruction.operand(index));
    }
    [[nodiscard]] llvm::Value* value_of(const Instruction& instruction, uint32_t id);
    // The id of the SPIR-V type of the operand at `index`.
    [[nodiscard]] uint32_t type_of(const Instruction& instruction, size_t index) {
        return translation_.type_of(instruction.operand(index));
    }
    [[nodiscard]] llvm::Type* result_type(const Instruction& instruction) { return types().llvm(instruction.type); }
    [[nodiscard]] std::optional<uint64_t> integer(const Instruction& instruction, size_t index) {
        return translation_.integer(instruction.operand(index));
    }
    void define(const Instruction& instruction, llvm::Value* value) { translation_.define(instruction, value); }
    void refuse(const Instruction& instruction, const std::string& why) { translation_.refuse(instruction, why); }
    llvm::CallInst* call(const std::string& mangled_name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments,
                         Effect effect) {
        return translation_.call_builtin(builder_, mangled_name, result, arguments, effect);
    }
    // The block of an OpLabel, made when first mentioned.
    [[nodiscard]] llvm::BasicBlock* block(uint32_t label);

    // The value of a built-in variable (storage class Input), as `type`.
    [[nodiscard]] llvm::Value* read_builtin_variable(Builder& builder, const Instruction& instruction,
                                                     spv::BuiltIn builtin, uint32_t type);

private:
    [[nodiscard]] llvm::Value* address_of_builtin_variable(const Instruction& instruction, uint32_t id);

    Translation& translation_;
    llvm::Function& function_;
    const Contraction contraction_;
    Builder builder_;
    llvm::DenseMap<uint32_t, llvm::BasicBlock*> blocks_;
    llvm::DenseMap<uint32_t, llvm::Value*> builtin_addresses_;
};

bool emit_arithmetic(Body& body, const Instruction& instruction);
bool emit_comparison(Body& body, const Instruction& instruction);
bool emit_bits(Body& body, const Instruction& instruction);
bool emit_dot_product(Body& body, const Instruction& instruction);
bool emit_conversion(Body& body, const Instruction& instruction);
bool emit_composite(Body& body, const Instruction& instruction);
bool emit_memory(Body& body, const Instruction& instruction);
bool emit_atomic(Body& body, const Instruction& instruction);
bool emit_control(Body& body, const Instruction& instruction);
bool emit_group(Body& body, const Instruction& instruction);
bool emit_intel_sub_group(Body& body, const Instruction& instruction);
bool emit_extended(Body& body, const Instruction& instruction);
bool emit_pipe(Body& body, const Instruction& instruction);
bool emit_device_enqueue(Body& body, const Instruction& instruction);

// The id of the function that the instruction names as a block (Invoke); 0: it names none.
[[nodiscard]] uint32_t block_of(const Instruction& instruction);

// "work_group" or "sub_group" for the scope at `index`. Another scope is an error, and the result is empty.
[[nodiscard]] std::string group_name(Body& body, const Instruction& instruction, size_t index);
// The values of OpenCL C's memory_scope and cl_mem_fence_flags for a scope and memory semantics of SPIR-V.
[[nodiscard]] llvm::Value* opencl_scope(Body& body, const Instruction& instruction, size_t index);
[[nodiscard]] llvm::Value* opencl_fence_flags(Body& body, const Instruction& instruction, size_t index);

}  // namespace polder::compiler::spirv
