// The state of a module's translation: LLVM's module, and the LLVM value or type of each id.
//
// The first error is stored. Functions called after it return dummy values, so that callers need not check each step: `failed` is
// checked after every instruction.
// One thread; lives as long as the translation of one module.
#pragma once

#include "annotations.h"
#include "types.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/NoFolder.h>

namespace polder::compiler::spirv {

// Does not fold constants: folding fails on operands whose types do not match, which LLVM's verifier reports afterwards.
using Builder = llvm::IRBuilder<llvm::NoFolder>;

// The side effects of a call of a built-in function.
enum class Effect : uint8_t { none, reads, any };

class Translation {
public:
    Translation(const Binary& binary, llvm::Module& module)
        : binary_(binary), annotations_(binary), module_(module), types_(module.getContext()) {}
    ~Translation();
    Translation(const Translation&) = delete;
    Translation& operator=(const Translation&) = delete;

    [[nodiscard]] const Binary& binary() const { return binary_; }
    [[nodiscard]] const Annotations& annotations() const { return annotations_; }
    [[nodiscard]] llvm::Module& module() { return module_; }
    [[nodiscard]] llvm::LLVMContext& context() { return module_.getContext(); }
    [[nodiscard]] Types& types() { return types_; }

    void refuse(const Instruction& instruction, const std::string& why);
    [[nodiscard]] bool failed() const { return !problem_.empty(); }
    [[nodiscard]] const std::string& problem() const { return problem_; }

    // --- values ---
    void define(const Instruction& instruction, llvm::Value* value);
    void define(uint32_t id, uint32_t type, llvm::Value* value);
    // The value of an id; a placeholder when the id is defined later. Never null.
    [[nodiscard]] llvm::Value* value(const Instruction& user, uint32_t id);
    [[nodiscard]] llvm::Value* known_value(uint32_t id) const { return values_.lookup(id); }
    // The id of the type of `id` in SPIR-V; 0 when it has none.
    [[nodiscard]] uint32_t type_of(uint32_t id) const { return value_types_.lookup(id); }
    // The value of an integer constant.
    [[nodiscard]] std::optional<uint64_t> integer(uint32_t id) const;
    // Records the types of all results, for placeholders.
    void note_type(const Instruction& instruction) { value_types_[instruction.result] = instruction.type; }
    // Fails when a placeholder was not replaced by its value.
    void finish_stand_ins(const Instruction& last);

    // Built-in variables are not in memory: reading them calls a function.
    void define_builtin_variable(uint32_t id, spv::BuiltIn builtin) { builtin_variables_[id] = builtin; }
    [[nodiscard]] std::optional<spv::BuiltIn> builtin_variable(uint32_t id) const;

    // --- calls of built-in functions ---
    llvm::CallInst* call_builtin(Builder& builder, const std::string& mangled_name, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Value*> arguments, Effect effect);

private:
    const Binary& binary_;
    const Annotations annotations_;
    llvm::Module& module_;
    Types types_;
    std::string problem_;
    llvm::DenseMap<uint32_t, llvm::Value*> values_;
    llvm::DenseMap<uint32_t, uint32_t> value_types_;
    llvm::DenseMap<uint32_t, llvm::Argument*> stand_ins_;
    llvm::DenseMap<uint32_t, spv::BuiltIn> builtin_variables_;
};

}  // namespace polder::compiler::spirv
