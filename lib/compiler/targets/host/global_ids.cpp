// Collects each sum with all its terms, and looks for a pair of terms `group_id * local_size` and `local_id` of one
// dimension. The pair becomes one term; overflow flags are dropped, because the partial sums are different now.
#include "global_ids.h"

#include "machine/retarget.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>
#include <optional>

namespace polder::compiler {
namespace {

enum class SameSizes : uint8_t { not_known, known };

// The call of `name` with a constant dimension that `value` is, or whose lower bits `value` is; else null.
const llvm::CallInst* asked(const llvm::Value* value, llvm::StringRef name) {
    if (const auto* lower_bits = llvm::dyn_cast<llvm::TruncInst>(value))
        value = lower_bits->getOperand(0);
    const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
    const bool is_it = call != nullptr && call->getCalledFunction() != nullptr &&
                       call->getCalledFunction()->getName() == name && call->getType()->isIntegerTy(64) &&
                       llvm::isa<llvm::ConstantInt>(call->getArgOperand(0));
    return is_it ? call : nullptr;
}

uint64_t dimension_of(const llvm::CallInst& call) {
    return llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue();
}

// The dimension, if `value` is the number of the group's first work-item in it.
std::optional<uint64_t> group_begin(const llvm::Value* value, SameSizes sizes) {
    if (const auto* lower_bits = llvm::dyn_cast<llvm::TruncInst>(value))
        value = lower_bits->getOperand(0);
    const llvm::Value *left = nullptr, *right = nullptr;
    if (!llvm::PatternMatch::match(
            value, llvm::PatternMatch::m_Mul(llvm::PatternMatch::m_Value(left), llvm::PatternMatch::m_Value(right))))
        return std::nullopt;
    for (int i = 0; i < 2; ++i, std::swap(left, right)) {
        const llvm::CallInst* group = asked(left, "_Z12get_group_idj");
        const llvm::CallInst* size = asked(right, "_Z23get_enqueued_local_sizej");
        if (size == nullptr && sizes == SameSizes::known)
            size = asked(right, "_Z14get_local_sizej");
        if (group != nullptr && size != nullptr && dimension_of(*group) == dimension_of(*size))
            return dimension_of(*group);
    }
    return std::nullopt;
}

bool is_sum(const llvm::Value* value) {
    return llvm::isa<llvm::BinaryOperator>(value) &&
           llvm::cast<llvm::BinaryOperator>(value)->getOpcode() == llvm::Instruction::Add;
}

// A sum, together with the sums whose only use is to be a part of it.
struct Sum {
    llvm::SmallVector<llvm::BinaryOperator*> additions;
    llvm::SmallVector<llvm::Use*> terms;

    explicit Sum(llvm::BinaryOperator& whole) : additions{&whole} {
        for (size_t i = 0; i < additions.size(); ++i)
            for (llvm::Use& operand : additions[i]->operands()) {
                if (is_sum(operand.get()) && operand->hasOneUse())
                    additions.push_back(llvm::cast<llvm::BinaryOperator>(operand.get()));
                else
                    terms.push_back(&operand);
            }
    }
};

llvm::Value* global_id_without_offset(llvm::IRBuilder<>& at, const llvm::CallInst& local_id) {
    const auto ask = [&](const char* name) {
        const llvm::Function& like = *local_id.getCalledFunction();
        llvm::FunctionCallee intrinsic =
            at.GetInsertBlock()->getModule()->getOrInsertFunction(name, like.getFunctionType(), like.getAttributes());
        llvm::CallInst* call = at.CreateCall(intrinsic, {local_id.getArgOperand(0)});
        call->setAttributes(local_id.getAttributes());
        call->setCallingConv(local_id.getCallingConv());
        return call;
    };
    return at.CreateSub(ask("_Z13get_global_idj"), ask("_Z17get_global_offsetj"));
}

bool rewrite(Sum& sum, SameSizes sizes) {
    for (llvm::Use* begin : sum.terms) {
        const std::optional<uint64_t> dimension = group_begin(begin->get(), sizes);
        if (!dimension)
            continue;
        for (llvm::Use* id : sum.terms) {
            const llvm::CallInst* local_id = asked(id->get(), "_Z12get_local_idj");
            if (local_id == nullptr || dimension_of(*local_id) != *dimension)
                continue;
            llvm::IRBuilder<> at(llvm::cast<llvm::Instruction>(id->getUser()));
            id->set(at.CreateZExtOrTrunc(global_id_without_offset(at, *local_id), id->get()->getType()));
            begin->set(llvm::ConstantInt::get(begin->get()->getType(), 0));
            // The overflow flags were for other partial sums.
            for (llvm::BinaryOperator* addition : sum.additions)
                addition->dropPoisonGeneratingFlags();
            return true;
        }
    }
    return false;
}

bool is_part_of_a_sum(const llvm::Instruction& addition) {
    return addition.hasOneUse() && is_sum(*addition.user_begin());
}

void find_ids_of(llvm::Function& function, SameSizes sizes) {
    llvm::SmallVector<llvm::BinaryOperator*> sums;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_sum(&instruction) && instruction.getType()->isIntegerTy() && !is_part_of_a_sum(instruction))
            sums.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    bool is_changed = false;
    for (llvm::BinaryOperator* whole : sums) {
        Sum sum(*whole);
        while (rewrite(sum, sizes))
            is_changed = true;
    }
    if (!is_changed)
        return;
    // An unused call would count as a use of the work-group, so it is removed.
    llvm::SmallVector<llvm::WeakTrackingVH> unused;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::isInstructionTriviallyDead(&instruction))
            unused.emplace_back(&instruction);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(unused);
}

// Clang does not mark all of these functions as pure, and then unused calls would not be removed.
void declare_pure(llvm::Module& module, llvm::StringRef name) {
    if (llvm::Function* intrinsic = module.getFunction(name)) {
        intrinsic->setDoesNotAccessMemory();
        intrinsic->setDoesNotThrow();
        intrinsic->setWillReturn();
    }
}

} // namespace

void find_global_ids(llvm::Module& module) {
    declare_pure(module, "_Z23get_enqueued_local_sizej");
    const auto has_groups_of_any_size = [](const llvm::Function& function) {
        return function.hasFnAttribute(kernel_attribute) &&
               function.getFnAttribute("uniform-work-group-size").getValueAsString() != "true";
    };
    const SameSizes sizes = llvm::any_of(module, has_groups_of_any_size) ? SameSizes::not_known : SameSizes::known;
    for (llvm::Function& function : module)
        if (!function.isDeclaration() && !function.hasFnAttribute(builtin_attribute))
            find_ids_of(function, sizes);
}

} // namespace polder::compiler
