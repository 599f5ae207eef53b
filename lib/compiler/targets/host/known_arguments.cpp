// From the kernel down: loads from a known descriptor become constants, then each call that is given a known image calls a copy of the
// function in which the same is done. There is one copy for each combination of known parameters. The calls in a copy are handled after the copy
// has been simplified, because that removes the calls for other formats.
#include "known_arguments.h"

#include "analyses.h"
#include "machine/retarget.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <map>
#include <polder/image_abi.h>

namespace polder::compiler {
namespace {

constexpr llvm::StringLiteral sampler_initializer = "__translate_sampler_initializer";
// A function with code for all formats is inlined when its copy for one format, with everything that it calls, has at most this many
// instructions. This holds for formats that need no tables and powers.
constexpr size_t folded_instructions_max = 600;

// What is known of a parameter.
struct Fact {
    const KnownArgument* image = nullptr;
    llvm::Constant* value = nullptr;
    [[nodiscard]] bool is_known() const { return image != nullptr || value != nullptr; }
    friend auto operator<=>(const Fact&, const Fact&) = default;
};
using Facts = std::vector<Fact>;  // one for each parameter

std::optional<uint32_t> known_word(const KnownArgument& image, int64_t offset) {
    switch (offset) {
    case offsetof(ImageDescriptor, channel_order): return image.channel_order;
    case offsetof(ImageDescriptor, channel_type): return image.channel_type;
    case offsetof(ImageDescriptor, element_bytes): return image.element_bytes;
    case offsetof(ImageDescriptor, kind): return image.kind;
    default: return std::nullopt;
    }
}

// Replaces loads of known words of an image's descriptor. `pointer` is the address of the descriptor plus `offset` bytes.
void fold_loads(llvm::Value& pointer, int64_t offset, const KnownArgument& image, const llvm::DataLayout& layout) {
    for (llvm::User* user : llvm::make_early_inc_range(pointer.users())) {
        if (auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(user)) {
            llvm::APInt distance(layout.getIndexTypeSizeInBits(step->getType()), 0);
            if (step->accumulateConstantOffset(layout, distance))
                fold_loads(*step, offset + distance.getSExtValue(), image, layout);
        } else if (auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(user)) {
            fold_loads(*cast, offset, image, layout);
        } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user); load && load->getType()->isIntegerTy(32)) {
            if (const auto word = known_word(image, offset)) {
                load->replaceAllUsesWith(llvm::ConstantInt::get(load->getType(), *word));
                load->eraseFromParent();
            }
        }
    }
}

// A sampler: its bits, converted to a pointer.
llvm::Constant* sampler_of(uint64_t bits, llvm::Type& type) {
    llvm::Constant* number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(type.getContext()), bits);
    return type.isPointerTy() ? llvm::ConstantExpr::getIntToPtr(number, &type) : llvm::ConstantInt::get(&type, bits);
}

void fold_sampler_constants(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
        if (!callee || callee->getName() != sampler_initializer || call->arg_size() != 1)
            continue;
        if (const auto* bits = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0))) {
            call->replaceAllUsesWith(sampler_of(bits->getZExtValue(), *call->getType()));
            call->eraseFromParent();
        }
    }
}

class ArgumentFolding {
public:
    ArgumentFolding() {
        analyses_.register_all(builder_);
        simplification_.addPass(llvm::SCCPPass());
        simplification_.addPass(llvm::SimplifyCFGPass());
        simplification_.addPass(llvm::InstCombinePass());
        simplification_.addPass(llvm::SimplifyCFGPass());
    }

    void fold(llvm::Function& function, const Facts& facts) {
        for (auto [parameter, fact] : llvm::zip(function.args(), facts)) {
            if (fact.image != nullptr)
                fold_loads(parameter, 0, *fact.image, function.getDataLayout());
            if (fact.value != nullptr)
                parameter.replaceAllUsesWith(fact.value);
        }
        fold_sampler_constants(function);
        if (!function.hasFnAttribute(kernel_attribute)) {
            simplification_.run(function, analyses_.functions);
            analyses_.functions.clear(function, function.getName());
        }
        llvm::SmallVector<llvm::CallBase*> calls;
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                calls.push_back(call);
        for (llvm::CallBase* call : calls)
            call_copy(*call, function, facts);
    }

private:
    void call_copy(llvm::CallBase& call, const llvm::Function& caller, const Facts& facts) {
        llvm::Function* const callee = call.getCalledFunction();
        if (!callee || callee->isDeclaration() || callee->isVarArg() || callee->arg_size() != call.arg_size() ||
            callee->hasFnAttribute(kernel_attribute))
            return;
        Facts known;
        for (const llvm::Use& operand : call.args())
            known.push_back(fact_of(*operand, caller, facts));
        if (llvm::none_of(known, [](const Fact& fact) { return fact.image != nullptr; }))
            return;
        llvm::Function& copy = copy_for(*callee, known);
        call.setCalledFunction(&copy);
        if (!copy.hasFnAttribute(llvm::Attribute::Cold)) {
            call.removeFnAttr(llvm::Attribute::Cold);
            call.removeFnAttr(llvm::Attribute::NoInline);
        }
    }

    static Fact fact_of(const llvm::Value& operand, const llvm::Function& caller, const Facts& facts) {
        if (const auto* argument = llvm::dyn_cast<llvm::Argument>(operand.stripPointerCasts()))
            return {.image = argument->getParent() == &caller ? facts[argument->getArgNo()].image : nullptr};
        const auto* const constant = llvm::dyn_cast<llvm::Constant>(&operand);
        const bool is_value = constant && !llvm::isa<llvm::UndefValue>(constant) &&
                              (constant->getType()->isIntegerTy() || constant->getType()->isPointerTy());
        return {.value = is_value ? const_cast<llvm::Constant*>(constant) : nullptr};
    }

    llvm::Function& copy_for(llvm::Function& function, const Facts& facts) {
        llvm::Function*& copy = copies_[{&function, facts}];
        if (copy != nullptr)
            return *copy;
        llvm::ValueToValueMapTy values;
        llvm::Function* const made = copy = llvm::CloneFunction(&function, values);
        made->setLinkage(llvm::GlobalValue::InternalLinkage);
        fold(*made, facts);
        if (made->hasFnAttribute(builtin_attribute) && made->hasFnAttribute(llvm::Attribute::Cold) &&
            size_of(*made) <= folded_instructions_max) {
            made->removeFnAttr(llvm::Attribute::Cold);
            made->removeFnAttr(llvm::Attribute::NoInline);
        }
        return *made;
    }

    // The number of its instructions and of those that it calls, counted up to the limit. Functions of the library are not recursive.
    static size_t size_of(const llvm::Function& function) {
        size_t size = function.getInstructionCount();
        for (const llvm::Instruction& instruction : llvm::instructions(function)) {
            const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
            const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
            if (callee && !callee->isDeclaration() && callee != &function && size <= folded_instructions_max)
                size += callee->hasFnAttribute(llvm::Attribute::Cold) ? folded_instructions_max + 1 : size_of(*callee);
        }
        return size;
    }

    llvm::PassBuilder builder_;
    Analyses analyses_;
    llvm::FunctionPassManager simplification_;
    std::map<std::pair<llvm::Function*, Facts>, llvm::Function*> copies_;
};

// Erases functions that are not called any more, because their copies are.
void erase_unused(llvm::Module& module) {
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (llvm::Function& function : llvm::make_early_inc_range(module))
            if (function.use_empty() && !function.isDeclaration() && !function.hasFnAttribute(kernel_attribute) &&
                function.hasFnAttribute(builtin_attribute)) {
                function.eraseFromParent();
                is_changed = true;
            }
    }
}

}  // namespace

void fold_known_arguments(llvm::Function& kernel, std::span<const KnownArgument> known) {
    if (known.empty())
        return;
    Facts facts(kernel.arg_size());
    for (const KnownArgument& argument : known) {
        if (argument.index >= facts.size())
            continue;
        if (argument.sampler != 0)
            facts[argument.index].value = sampler_of(argument.sampler, *kernel.getArg(argument.index)->getType());
        else if (argument.element_bytes != 0)
            facts[argument.index].image = &argument;
    }
    ArgumentFolding().fold(kernel, facts);
    erase_unused(*kernel.getParent());
}

}  // namespace polder::compiler
