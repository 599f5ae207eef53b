// All code that depends on the version of LLVM and Clang. The compiler is written for version 22.
#pragma once

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Triple.h>

namespace polder::compiler::compat {

inline void set_triple(llvm::Module& module, const llvm::Triple& triple) {
#if LLVM_VERSION_MAJOR >= 21
    module.setTargetTriple(triple);
#else
    module.setTargetTriple(triple.str());
#endif
}

inline const llvm::Target* lookup_target(const llvm::Triple& triple, std::string& error) {
#if LLVM_VERSION_MAJOR >= 22
    return llvm::TargetRegistry::lookupTarget(triple, error);
#else
    return llvm::TargetRegistry::lookupTarget(triple.str(), error);
#endif
}

inline std::unique_ptr<llvm::TargetMachine>
create_target_machine(const llvm::Target& target, const llvm::Triple& triple, llvm::StringRef cpu,
                      llvm::StringRef features, const llvm::TargetOptions& options, llvm::CodeGenOptLevel level) {
#if LLVM_VERSION_MAJOR >= 21
    return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
        triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
#else
    return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
        triple.str(), cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
#endif
}

} // namespace polder::compiler::compat
