#include "symbols.h"

namespace polder::compiler::spirv {

bool is_free_name(std::string_view name) {
    return !name.empty() && !name.starts_with("llvm.") && !name.starts_with("_polder_") &&
           !name.starts_with("polder_") && !name.starts_with("spirv.");
}

Symbol symbol_of(Translation& translation, const Instruction& instruction, std::string_view kind) {
    const auto linkage = translation.annotations().linkage(instruction.result);
    if (!linkage) {
        std::string name = "spirv." + std::string{kind} + ".";
        const std::string given = translation.annotations().name(instruction.result);
        return {name.append(given.empty() ? std::to_string(instruction.result) : given)};
    }
    if (!is_free_name(linkage->name))
        translation.refuse(instruction, "the name '" + linkage->name + "' is reserved");
    switch (linkage->type) {
    case spv::LinkageTypeImport: return {linkage->name, llvm::GlobalValue::ExternalLinkage, true};
    case spv::LinkageTypeLinkOnceODR: return {linkage->name, llvm::GlobalValue::LinkOnceODRLinkage};
    default: return {linkage->name, llvm::GlobalValue::ExternalLinkage};
    }
}

} // namespace polder::compiler::spirv
