// A module while it is translated: LLVM's module, and what each id means there.
//
// The first instruction that cannot be translated is kept as the problem; what is asked for after that gets values
// that are never used, so that no caller has to check each step (`failed` is asked after every instruction).
// One thread; lives as long as the translation of one module.
#pragma once

#include "annotations.h"
#include "types.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/NoFolder.h>

namespace polder::compiler::spirv {

// Builders that fold constants would fail on operands whose types do not agree; LLVM's verifier sees those afterwards.
using Builder = llvm::IRBuilder<llvm::NoFolder>;

// What a call of a built-in function may do.
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
    // The value of an id; a stand-in when it is defined further down. Never null.
    [[nodiscard]] llvm::Value* value(const Instruction& user, uint32_t id);
    [[nodiscard]] llvm::Value* known_value(uint32_t id) const { return values_.lookup(id); }
    // The id's type as SPIR-V has it; 0 when it has none.
    [[nodiscard]] uint32_t type_of(uint32_t id) const { return value_types_.lookup(id); }
    // The value of an integer constant.
    [[nodiscard]] std::optional<uint64_t> integer(uint32_t id) const;
    // Notes the types of all results, so that stand-ins have one.
    void note_type(const Instruction& instruction) { value_types_[instruction.result] = instruction.type; }
    // Every stand-in has been replaced by its value; if not, the module is refused.
    void finish_stand_ins(const Instruction& last);

    // Variables of storage class Input are no memory: reading them asks a function.
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

} // namespace polder::compiler::spirv
