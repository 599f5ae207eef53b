// A kernel may have quick code when the rounds of its loops are limited, and when no result depends on how it is compiled. These are excluded:
//   - loops without a limit (loop_rounds.h), and cycles that are no loops;
//   - operations on floating-point numbers that may be computed in another way (fast-math flags, contraction of products and sums);
//   - minimums and maximums of floating-point numbers, which may return either of two zeros;
//   - intrinsics that LLVM replaces by functions or approximations;
//   - calls of functions that are not in the module, such as printf, and of unknown functions: what lanes call is not what a work-item calls.
// Atomic operations are not excluded: the order of work-items, on which their results depend, is not specified.
#include "quick_kernels.h"

#include "intrinsics.h"
#include "loop_rounds.h"
#include "machine/retarget.h"
#include "program_variables.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

namespace polder::compiler {
namespace {

constexpr uint64_t instructions_max = 2000;  // of the kernel and all that it calls, each once
constexpr uint64_t work_max = uint64_t{1} << 20;

// Intrinsics of floating-point numbers that the processor computes exactly, or with one rounding.
constexpr std::array exact_intrinsics{
    llvm::Intrinsic::fma,        llvm::Intrinsic::fmuladd,    llvm::Intrinsic::fabs,  llvm::Intrinsic::copysign,
    llvm::Intrinsic::floor,      llvm::Intrinsic::ceil,       llvm::Intrinsic::trunc, llvm::Intrinsic::rint,
    llvm::Intrinsic::nearbyint,  llvm::Intrinsic::roundeven,  llvm::Intrinsic::sqrt,  llvm::Intrinsic::fptosi_sat,
    llvm::Intrinsic::fptoui_sat, llvm::Intrinsic::is_fpclass, llvm::Intrinsic::ldexp};

constexpr std::array minimums{llvm::Intrinsic::minnum,  llvm::Intrinsic::maxnum,     llvm::Intrinsic::minimum,
                              llvm::Intrinsic::maximum, llvm::Intrinsic::minimumnum, llvm::Intrinsic::maximumnum};

bool has_floats(const llvm::Type& type) { return type.getScalarType()->isFloatingPointTy(); }

bool is_exact(const llvm::IntrinsicInst& call) {
    const bool has_any = has_floats(*call.getType()) || std::ranges::any_of(call.args(), [](const llvm::Use& use) {
                             return has_floats(*use->getType());
                         });
    return !has_any || std::ranges::find(exact_intrinsics, call.getIntrinsicID()) != exact_intrinsics.end();
}

llvm::FastMathFlags flags_of(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::FPMathOperator>(instruction) ? instruction.getFastMathFlags() : llvm::FastMathFlags{};
}

bool is_root(const llvm::Value& value) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&value);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::sqrt;
}

// Built-in functions have flags also where they permit nothing: contraction is that of a product and a sum, and only divisions and roots are
// approximated.
bool flags_have_no_effect(const llvm::Instruction& instruction) {
    const llvm::FastMathFlags flags = flags_of(instruction);
    if (flags.allowReassoc() || flags.noNaNs() || flags.noInfs() || flags.noSignedZeros())
        return false;
    switch (instruction.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul: return !flags.allowContract();
    case llvm::Instruction::FDiv: return !flags.allowReciprocal() && !flags.approxFunc();
    default: return !(is_root(instruction) && flags.approxFunc());
    }
}

// Whether the quotient by a root is its reciprocal, or the root itself.
bool is_by_own_root(const llvm::Instruction& quotient) {
    const auto* const root = llvm::dyn_cast<llvm::IntrinsicInst>(quotient.getOperand(1));
    return root && is_root(*root) &&
           (llvm::PatternMatch::match(quotient.getOperand(0), llvm::PatternMatch::m_FPOne()) ||
            quotient.getOperand(0) == root->getArgOperand(0));
}

// A root or its reciprocal that may be approximated, as rsqrt()'s: divide_by_estimates() computes it alike for one number and for vectors.
bool is_estimated_root(const llvm::Instruction& instruction) {
    const llvm::FastMathFlags flags = flags_of(instruction);
    const auto is_negated = [](const llvm::User* user) {
        return llvm::cast<llvm::Instruction>(user)->getOpcode() == llvm::Instruction::FNeg;
    };
    return instruction.getOpcode() == llvm::Instruction::FDiv && flags.allowReciprocal() &&
           is_by_own_root(instruction) && !flags.allowReassoc() && !flags.noNaNs() && !flags.noInfs() &&
           !flags.noSignedZeros() && !flags.approxFunc() &&
           (llvm::none_of(instruction.users(), is_negated) || !instruction.hasOneUse());
}

// Divisions that LLVM makes one lose the flags that only one of them has, so estimated roots are not beside others.
bool are_all_estimated_roots_or_none(const llvm::Module& module) {
    size_t roots = 0, others = 0;
    for (const llvm::Function& function : module)
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (instruction.getOpcode() == llvm::Instruction::FDiv)
                ++(is_estimated_root(instruction) ? roots : others);
    return roots == 0 || others == 0;
}

bool has_same_result(const llvm::Instruction& instruction) {
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return flags_have_no_effect(instruction) && (intrinsic == nullptr || is_exact(*intrinsic));
}

// Ids, sizes, barriers and the addresses of variables, but no function for a whole group.
bool is_plain_query(llvm::StringRef function) {
    return function == program_variables_function || function == "_polder_launch_context" ||
           (is_work_group_intrinsic(std::string_view{function}) && !function.starts_with("_polder_"));
}

// The argument of the kernel that is passed on as `argument` of a function with one call. Null when another value is passed.
const llvm::Argument* of_kernel(const llvm::Argument* argument) {
    while (argument != nullptr && !argument->getParent()->hasFnAttribute(kernel_attribute)) {
        const llvm::Function& function = *argument->getParent();
        const auto* call = function.hasOneUse() ? llvm::dyn_cast<llvm::CallBase>(*function.user_begin()) : nullptr;
        const bool is_called = call != nullptr && call->getCalledFunction() == &function;
        argument = is_called ? llvm::dyn_cast<llvm::Argument>(call->getArgOperand(argument->getArgNo())) : nullptr;
    }
    return argument;
}

// Whether the callee is in the module or a plain query.
bool is_known_call(const llvm::CallBase& call) {
    const llvm::Function* callee = call.getCalledFunction();
    return callee != nullptr && (!callee->isDeclaration() || is_plain_query(callee->getName()));
}

using Factors = std::vector<uint32_t>;  // arguments of the kernel, sorted; one may be there several times

// A function's work without and with the loops around it.
class Work {
public:
    // Nothing when the function may not be in quick code.
    std::optional<uint64_t> of(const llvm::Function& function, Factors& factors) {
        if (const auto known = known_.find(&function); known != known_.end())
            return known->second;
        known_[&function] = std::nullopt;  // for a function that calls itself
        const std::optional<uint64_t> sum = sum_of(function, factors);
        known_[&function] = sum;
        return sum;
    }

private:
    std::optional<uint64_t> sum_of(const llvm::Function& function, Factors& factors) {
        llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
        const llvm::LoopInfo loops(dominators);
        const llvm::ReversePostOrderTraversal<const llvm::Function*> order(&function);
        if (llvm::containsIrreducibleCFG<const llvm::BasicBlock*>(order, loops))
            return std::nullopt;
        uint64_t sum = 0;
        for (const llvm::BasicBlock& block : function) {
            const std::optional<uint64_t> rounds = rounds_of_block(loops.getLoopFor(&block), dominators, factors);
            const std::optional<uint64_t> once = rounds ? work_of(block, factors) : std::nullopt;
            if (!once || *once > work_max / *rounds)
                return std::nullopt;
            sum += *once * *rounds;
            if (sum > work_max)
                return std::nullopt;
        }
        return sum;
    }

    // How often a block in `loop` is executed, without the factors, to which the arguments of the loops around it are added.
    static std::optional<uint64_t> rounds_of_block(const llvm::Loop* loop, const llvm::DominatorTree& dominators,
                                                   Factors& factors) {
        uint64_t product = 1;
        Factors own;
        for (; loop != nullptr; loop = loop->getParentLoop()) {
            const std::optional<Rounds> rounds = rounds_of(*loop, dominators);
            if (!rounds || rounds->constant > work_max / product)
                return std::nullopt;
            product *= rounds->constant;
            if (rounds->argument == nullptr)
                continue;
            const llvm::Argument* const argument = of_kernel(rounds->argument);
            if (argument == nullptr)
                return std::nullopt;
            own.push_back(argument->getArgNo());
        }
        std::ranges::sort(own);
        Factors both;
        std::ranges::set_union(factors, own, std::back_inserter(both));
        factors = std::move(both);
        return product;
    }

    std::optional<uint64_t> work_of(const llvm::BasicBlock& block, Factors& factors) {
        uint64_t sum = 0;
        for (const llvm::Instruction& instruction : block) {
            if (++instructions_ > instructions_max || !has_same_result(instruction))
                return std::nullopt;
            const std::optional<uint64_t> one = work_of(instruction, factors);
            if (!one)
                return std::nullopt;
            sum += *one;
            if (sum > work_max)
                return std::nullopt;
        }
        return sum;
    }

    std::optional<uint64_t> work_of(const llvm::Instruction& instruction, Factors& factors) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (call == nullptr || llvm::isa<llvm::IntrinsicInst>(call))
            return 1;
        if (!is_known_call(*call))
            return std::nullopt;
        const llvm::Function* callee = call->getCalledFunction();
        return callee->isDeclaration() ? std::optional<uint64_t>{1} : of(*callee, factors);
    }

    uint64_t instructions_ = 0;
    llvm::DenseMap<const llvm::Function*, std::optional<uint64_t>> known_;
};

}  // namespace

std::pair<uint64_t, std::vector<uint32_t>> quick_work(const llvm::Function& kernel) {
    Factors factors;
    const std::optional<uint64_t> work = Work{}.of(kernel, factors);
    return work ? std::pair{*work, factors} : std::pair<uint64_t, Factors>{};
}

bool has_same_results(const llvm::Module& module) {
    // LLVM has all passes for both kinds of code, and the processor's instructions compute each element of a vector alike.
    const auto is_alike = [](const llvm::Instruction& instruction) {
        if (is_estimated_root(instruction))
            return true;
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        return call != nullptr && flags_have_no_effect(*call) &&
               (llvm::is_contained(minimums, call->getIntrinsicID()) ||
                llvm::Intrinsic::isTargetIntrinsic(call->getIntrinsicID()));
    };
    return are_all_estimated_roots_or_none(module) && llvm::all_of(module, [&](const llvm::Function& function) {
               return llvm::all_of(llvm::instructions(function), [&](const llvm::Instruction& instruction) {
                   const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                   return (has_same_result(instruction) || is_alike(instruction)) &&
                          (call == nullptr || llvm::isa<llvm::IntrinsicInst>(call) || is_known_call(*call));
               });
           });
}

}  // namespace polder::compiler
