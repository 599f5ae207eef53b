#include "constant_loads.h"

#include "machine/retarget.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {

void mark_constant_loads(llvm::Module& module) {
    llvm::MDNode* const no_operands = llvm::MDNode::get(module.getContext(), {});
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
                load && load->isSimple() && load->getPointerAddressSpace() == spir64_address_spaces.constant)
                load->setMetadata(llvm::LLVMContext::MD_invariant_load, no_operands);
}

}  // namespace polder::compiler
