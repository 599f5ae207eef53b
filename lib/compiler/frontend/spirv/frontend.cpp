#include "frontend.h"

#include "functions.h"
#include "llvm_compat.h"
#include "module_level.h"
#include "requirements.h"
#include "validation.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {
namespace {

// The data layout that Clang has for spir64.
constexpr const char* data_layout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-"
                                    "v1024:1024-G1";

std::unique_ptr<llvm::Module> empty_module(llvm::LLVMContext& context) {
    auto module = std::make_unique<llvm::Module>("program.spv", context);
    compat::set_triple(*module, llvm::Triple("spir64-unknown-unknown"));
    module->setDataLayout(data_layout);
    return module;
}

Result<void> translate(const spirv::Binary& binary, const CompileInput& input, llvm::Module& module, std::string& log) {
    spirv::Translation translation(binary, module);
    spirv::Specialization specialization;
    for (const SpecializationValue& value : input.specialization)
        specialization[value.id] = value.bytes;
    spirv::define_globals(translation, specialization);
    if (!translation.failed())
        spirv::define_functions(translation);
    if (!translation.failed())
        return {};
    log += translation.problem();
    return fail(Status::compile_program_failure);
}

void allow_error(llvm::Instruction& operation, float ulp) {
    if (operation.getType()->getScalarType()->isFloatTy())
        operation.setMetadata(llvm::LLVMContext::MD_fpmath, llvm::MDBuilder(operation.getContext()).createFPMath(ulp));
}

// OpenCL's bounds of / and sqrt, marked as Clang marks them: GPUs have quicker instructions that keep them.
void allow_errors(llvm::Module& module) {
    constexpr float of_quotient = 2.5F, of_root = 3;
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::instructions(function)) {
            if (instruction.getOpcode() == llvm::Instruction::FDiv)
                allow_error(instruction, of_quotient);
            const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
            if (call != nullptr && call->getCalledFunction() != nullptr &&
                call->getCalledFunction()->getName().starts_with("_Z4sqrt"))
                allow_error(instruction, of_root);
        }
}

// The last safeguard: malformed IR that the validator did not prevent is an error here.
Result<void> verify(const llvm::Module& module, std::string& log) {
    std::string why;
    llvm::raw_string_ostream stream(why);
    if (!llvm::verifyModule(module, &stream))
        return {};
    log += "error: SPIR-V: the module does not make valid code: " + why + "\n";
    return fail(Status::compile_program_failure);
}

} // namespace

Result<std::unique_ptr<llvm::Module>> run_spirv_frontend(const CompileInput& input, bool is_exact,
                                                         llvm::LLVMContext& context, std::string& log) {
    auto binary = spirv::Binary::read(std::as_bytes(std::span{input.source}));
    if (!binary) {
        log += std::string{binary.error().detail()} + "\n";
        return fail(Status::compile_program_failure);
    }
    POLDER_TRY(spirv::check_requirements(*binary, input.target, log));
    POLDER_TRY(spirv::validate(*binary, log));
    auto module = empty_module(context);
    POLDER_TRY(translate(*binary, input, *module, log));
    if (!is_exact)
        allow_errors(*module);
    POLDER_TRY(verify(*module, log));
    return module;
}

} // namespace polder::compiler
