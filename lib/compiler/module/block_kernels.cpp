// Clang passes a block's kernel as an argument of __enqueue_kernel_* and of __get_kernel_*_impl. Both passes look at the calls of these
// functions. Each argument that is a function is the kernel of a block.
#include "block_kernels.h"

#include "machine/retarget.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <polder/device_enqueue_abi.h>

namespace polder::compiler {
namespace {

bool takes_block(llvm::StringRef function) {
    return function.starts_with("__enqueue_kernel_") ||
           (function.starts_with("__get_kernel_") && function.ends_with("_impl"));
}

// `visit(call, argument)` for each argument of a call that is a function: the kernel of a block.
template <class Visit>
void for_each_named_kernel(llvm::Module& module, Visit visit) {
    for (llvm::Function& function : module) {
        if (!function.isDeclaration() || !takes_block(function.getName()))
            continue;
        for (llvm::User* user : function.users()) {
            auto* call = llvm::dyn_cast<llvm::CallInst>(user);
            if (call == nullptr || call->getCalledFunction() != &function)
                continue;
            for (llvm::Use& argument : call->args())
                if (auto* kernel = llvm::dyn_cast<llvm::Function>(argument->stripPointerCasts()))
                    visit(*call, argument, *kernel);
        }
    }
}

llvm::MDNode* strings(llvm::LLVMContext& context, const std::vector<std::string>& texts) {
    llvm::SmallVector<llvm::Metadata*, 8> nodes;
    for (const std::string& text : texts)
        nodes.push_back(llvm::MDString::get(context, text));
    return llvm::MDNode::get(context, nodes);
}

// Adds the metadata that a kernel of the source would have: `void* block, __local void* p0, ...`.
void describe(llvm::Function& kernel) {
    llvm::LLVMContext& context = kernel.getContext();
    llvm::IRBuilder<> builder(context);
    llvm::SmallVector<llvm::Metadata*, 8> spaces;
    std::vector<std::string> types, accesses, qualifiers;
    for (const llvm::Argument& argument : kernel.args()) {
        const bool is_local = argument.getType()->isPointerTy() &&
                              argument.getType()->getPointerAddressSpace() == spir64_address_spaces.local;
        spaces.push_back(llvm::ConstantAsMetadata::get(builder.getInt32(is_local ? spir64_address_spaces.local : 0)));
        types.emplace_back("void*");
        accesses.emplace_back("none");
        qualifiers.emplace_back();
    }
    kernel.setMetadata("kernel_arg_addr_space", llvm::MDNode::get(context, spaces));
    kernel.setMetadata("kernel_arg_type", strings(context, types));
    kernel.setMetadata("kernel_arg_base_type", strings(context, types));
    kernel.setMetadata("kernel_arg_access_qual", strings(context, accesses));
    kernel.setMetadata("kernel_arg_type_qual", strings(context, qualifiers));
}

// A block's literal contains the address of the block's function, in casts. No code calls the function through it, so null replaces the address.
void forget_in_literals(llvm::Function& kernel) {
    llvm::SmallSetVector<llvm::Function*, 2> called;
    for (llvm::Instruction& instruction : llvm::instructions(kernel))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction); call != nullptr && call->getCalledFunction())
            called.insert(call->getCalledFunction());
    for (llvm::Function* function : called) {
        const auto is_callee = [&](const llvm::Use& use) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
            return call != nullptr && call->isCallee(&use);
        };
        llvm::SmallVector<llvm::Constant*, 4> casts;
        for (llvm::User* user : function->users())
            if (auto* cast = llvm::dyn_cast<llvm::ConstantExpr>(user))
                casts.push_back(cast);
        for (llvm::Constant* cast : casts)
            cast->replaceAllUsesWith(llvm::Constant::getNullValue(cast->getType()));
        function->replaceUsesWithIf(llvm::Constant::getNullValue(function->getType()), [&](const llvm::Use& use) {
            return !is_callee(use) && !llvm::isa<llvm::Constant>(use.getUser());
        });
    }
}

void ask_for_exact_errors(llvm::CallInst& call) {
    if (!call.getCalledFunction()->getName().starts_with("__enqueue_kernel_") || !call.getFunction()->getSubprogram())
        return;
    llvm::IRBuilder<> builder(&call);
    call.setArgOperand(1, builder.CreateOr(call.getArgOperand(1), builder.getInt32(BlockRequest::exact_errors)));
}

}  // namespace

bool is_device_enqueue(llvm::StringRef function) { return function.starts_with("polder_device_"); }

void prepare_blocks(llvm::Module& module) {
    llvm::SmallSetVector<llvm::Function*, 8> kernels;
    for_each_named_kernel(module,
                          [&](llvm::CallInst&, llvm::Use&, llvm::Function& kernel) { kernels.insert(&kernel); });
    for (llvm::Function* kernel : kernels) {
        kernel->addFnAttr(block_attribute);
        describe(*kernel);
        forget_in_literals(*kernel);
    }
}

void name_blocks(llvm::Module& module) {
    std::map<llvm::Function*, llvm::GlobalVariable*> names;
    struct Naming {
        llvm::Use* argument;
        llvm::Function* kernel;
    };
    llvm::SmallVector<Naming, 8> namings;
    for_each_named_kernel(module, [&](llvm::CallInst& call, llvm::Use& argument, llvm::Function& kernel) {
        ask_for_exact_errors(call);
        namings.push_back({&argument, &kernel});
    });
    for (const Naming& naming : namings) {
        llvm::GlobalVariable*& name = names[naming.kernel];
        if (name == nullptr) {
            llvm::Constant* const text =
                llvm::ConstantDataArray::getString(module.getContext(), naming.kernel->getName());
            name = new llvm::GlobalVariable(module, text->getType(), true, llvm::GlobalValue::PrivateLinkage, text,
                                            "polder.block");
            name->addAttribute(constant_attribute);
        }
        naming.argument->set(name);
    }
}

}  // namespace polder::compiler
