// Bounds: pow, powr and pown may have an error of 16 ULP (float, double) or 4 (half). A product of n factors, made by squaring, has an
// error of at most (n - 1) / 2 ULP, and a product of n reciprocals n / 2 ULP more. For negative exponents the reciprocal is taken first: the
// reciprocal of the product would be 0 where the power is denormal.
//
// Operands for which products and roots differ from the power get code of their own: pow of -0 and of minus infinity with the exponent of a
// half, powr and rootn of negative numbers and of -0.
#include "powers.h"

#include "analyses.h"

#include <cmath>
#include <limits>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <optional>
#include <string>

namespace polder::compiler {
namespace {

enum class PowerKind : uint8_t { pow, powr, pown, rootn };

struct Function {
    PowerKind kind;
    std::string parameters;  // mangled
};

std::optional<Function> power_function(const llvm::Function& function) {
    static constexpr std::pair<llvm::StringLiteral, PowerKind> names[] = {
        {"_Z3pow", PowerKind::pow},        {"_Z4powr", PowerKind::powr}, {"_Z11native_powr", PowerKind::powr},
        {"_Z9half_powr", PowerKind::powr}, {"_Z4pown", PowerKind::pown}, {"_Z5rootn", PowerKind::rootn}};
    if (!function.isDeclaration() || function.arg_size() != 2 || !function.getReturnType()->isFPOrFPVectorTy() ||
        function.getReturnType() != function.getArg(0)->getType())
        return std::nullopt;
    for (const auto& [name, kind] : names)
        if (llvm::StringRef parameters = function.getName(); parameters.consume_front(name))
            return Function{kind, parameters.str()};
    return std::nullopt;
}

// The value of a constant whose elements are equal.
std::optional<double> number(const llvm::Value& value) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&value);
    if (constant != nullptr && constant->getType()->isVectorTy())
        constant = constant->getSplatValue();
    if (const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant))
        return static_cast<double>(integer->getSExtValue());
    const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    if (real == nullptr)
        return std::nullopt;
    bool is_inexact = false;
    llvm::APFloat converted = real->getValueAPF();
    converted.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &is_inexact);
    return converted.convertToDouble();
}

class Folding {
public:
    Folding(llvm::CallInst& call, const Function& function) : call_(call), function_(function), at_(&call) {
        if (llvm::isa<llvm::FPMathOperator>(call))
            at_.setFastMathFlags(call.getFastMathFlags());
    }

    // Null when the call stays.
    llvm::Value* run() {
        llvm::Value* const base = call_.getArgOperand(0);
        const std::optional<double> exponent = number(*call_.getArgOperand(1));
        if (exponent)
            return function_.kind == PowerKind::rootn ? root(base, *exponent) : power(base, *exponent);
        const bool is_pow = function_.kind == PowerKind::pow || function_.kind == PowerKind::powr;
        return is_pow && number(*base) == 2.0 ? power_of_2() : nullptr;
    }

private:
    llvm::Value* constant(double value) { return llvm::ConstantFP::get(call_.getType(), value); }
    llvm::Value* absolute(llvm::Value* value) { return at_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value); }
    llvm::Value* square_root(llvm::Value* value) { return at_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, value); }
    llvm::Value* reciprocal(llvm::Value* value) { return at_.CreateFDiv(constant(1), value); }

    llvm::Value* power(llvm::Value* base, double exponent) {
        const double whole_max = call_.getType()->getScalarType()->isHalfTy() ? 4 : 8;
        const bool is_whole = std::trunc(exponent) == exponent && std::abs(exponent) <= whole_max;
        const bool is_half = exponent == 0.5 || exponent == -0.5 || exponent == 1.5 || exponent == 2.5;
        const bool is_powr = function_.kind == PowerKind::powr;
        if (!is_whole && !is_half)
            return nullptr;
        if (exponent == 0)
            return is_powr ? nullptr : constant(1);
        if (is_powr)
            base = not_negative(base);
        if (is_whole)
            return product(exponent < 0 ? reciprocal(base) : base, static_cast<unsigned>(std::abs(exponent)));
        llvm::Value* result = square_root(base);
        if (exponent < 0)
            result = reciprocal(result);
        else if (exponent > 1)
            result = at_.CreateFMul(result, product(base, static_cast<unsigned>(exponent)));
        if (is_powr)
            return result;
        const double infinity = std::numeric_limits<double>::infinity();
        llvm::Value* const is_infinite = at_.CreateFCmpOEQ(base, constant(-infinity));
        return at_.CreateSelect(is_infinite, constant(exponent > 0 ? infinity : 0), absolute(result));
    }

    // The argument of powr: NaN for negative numbers, where powr is undefined, and +0 for -0.
    llvm::Value* not_negative(llvm::Value* base) {
        llvm::Value* const is_negative = at_.CreateFCmpOLT(base, constant(0));
        return at_.CreateSelect(is_negative, constant(std::numeric_limits<double>::quiet_NaN()), absolute(base));
    }

    llvm::Value* product(llvm::Value* factor, unsigned count) {
        llvm::Value* result = nullptr;
        for (;; factor = at_.CreateFMul(factor, factor)) {
            if (count % 2 == 1)
                result = result ? at_.CreateFMul(result, factor) : factor;
            count /= 2;
            if (count == 0)
                return result;
        }
    }

    llvm::Value* root(llvm::Value* base, double degree) {
        if (degree == 1)
            return base;
        if (degree == -1)
            return reciprocal(base);
        if (degree == 2)
            return absolute(square_root(base));
        return degree == -2 ? absolute(reciprocal(square_root(base))) : nullptr;
    }

    llvm::Value* power_of_2() {
        // The second parameter has the first one's type: "ff", "DhDh", "Dv4_fS_".
        const std::string& both = function_.parameters;
        const bool is_vector = llvm::StringRef(both).ends_with("S_");
        const std::string name = "_Z4exp2" + both.substr(0, is_vector ? both.size() - 2 : both.size() / 2);
        auto* const type = llvm::FunctionType::get(call_.getType(), {call_.getType()}, false);
        const llvm::Function& power = *call_.getCalledFunction();
        const auto attributes =
            llvm::AttributeList::get(call_.getContext(), power.getAttributes().getFnAttrs(), {}, {});
        llvm::FunctionCallee callee = call_.getModule()->getOrInsertFunction(name, type, attributes);
        llvm::cast<llvm::Function>(callee.getCallee())->setCallingConv(power.getCallingConv());
        llvm::CallInst* const made = at_.CreateCall(callee, {call_.getArgOperand(1)});
        made->setCallingConv(call_.getCallingConv());
        return made;
    }

    llvm::CallInst& call_;
    const Function& function_;
    llvm::IRBuilder<> at_;
};

// Replaces calls with constant arguments. Returns the functions with other calls, whose argument may be a constant in a variable.
llvm::SmallSetVector<llvm::Function*, 4> fold_calls(llvm::Module& module) {
    llvm::SmallSetVector<llvm::Function*, 4> staying;
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        const std::optional<Function> power = power_function(function);
        if (!power)
            continue;
        for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
            auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
            if (!call || call->getCalledFunction() != &function)
                continue;
            if (llvm::Value* const result = Folding(*call, *power).run()) {
                call->replaceAllUsesWith(result);
                call->eraseFromParent();
            } else {
                staying.insert(call->getFunction());
            }
        }
    }
    return staying;
}

}  // namespace

void fold_powers(llvm::Module& module) {
    const auto staying = fold_calls(module);
    if (staying.empty())
        return;
    // Finds constants that are kept in variables, then tries once more.
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    passes.addPass(llvm::EarlyCSEPass());
    for (llvm::Function* function : staying)
        passes.run(*function, analyses.functions);
    fold_calls(module);
}

}  // namespace polder::compiler
