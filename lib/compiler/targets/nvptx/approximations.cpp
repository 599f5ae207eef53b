// One pass over all instructions before the built-ins are linked: a call of a built-in function that may be approximate becomes a call of
// its native form (redirect), and a division becomes a call of _polder_divide_approx (relax).
#include "approximations.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

namespace polder::compiler {
namespace {

// 2.5 ulp is OpenCL's bound for a division, 3 ulp for a square root.
constexpr float quotient_ulp = 2.5f;

// LLVM's attribute; only flush_denormals sets it.
constexpr const char* denormals_of_floats = "denormal-fp-math-f32";

// A built-in function's mangled name (Itanium): _Z, the length of the name, the name, the types of its parameters.
struct Mangled {
    llvm::StringRef name;
    llvm::StringRef types;
};

std::optional<Mangled> demangle(llvm::StringRef symbol) {
    size_t length = 0;
    if (!symbol.consume_front("_Z") || symbol.consumeInteger(10, length) || length > symbol.size())
        return std::nullopt;
    return Mangled{symbol.take_front(length), symbol.drop_front(length)};
}

// Floats or vectors of floats, of any number of parameters.
bool is_of_floats(const llvm::CallInst& call) {
    return call.getType()->getScalarType()->isFloatTy() &&
           llvm::all_of(call.args(), [&](const llvm::Use& argument) { return argument->getType() == call.getType(); });
}

// Empty when there is none.
llvm::StringRef relaxed_name(llvm::StringRef name) {
    return llvm::StringSwitch<llvm::StringRef>(name)
        .Case("exp", "native_exp")
        .Case("exp2", "native_exp2")
        .Case("exp10", "native_exp10")
        .Case("log", "native_log")
        .Case("log2", "native_log2")
        .Case("log10", "native_log10")
        .Case("sin", "native_sin")
        .Case("cos", "native_cos")
        .Case("tan", "native_tan")
        .Case("sqrt", "native_sqrt")
        .Case("powr", "native_powr")
        .Case("pow", "_polder_relaxed_pow")
        .Default({});
}

llvm::StringRef approximation_of(const llvm::CallInst& call, llvm::StringRef name) {
    if (name == "rsqrt")
        return "native_rsqrt";
    if (name == "sqrt" && call.getMetadata(llvm::LLVMContext::MD_fpmath))
        return "native_sqrt";
    return call.hasApproxFunc() ? relaxed_name(name) : llvm::StringRef();
}

void redirect(llvm::CallInst& call) {
    llvm::Function* const callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration() || callee->isIntrinsic() || !is_of_floats(call))
        return;
    const std::optional<Mangled> mangled = demangle(callee->getName());
    if (!mangled)
        return;
    const llvm::StringRef name = approximation_of(call, mangled->name);
    if (name.empty())
        return;
    // The mangled types stay the same: the abbreviation of a repeated type (S_) does not depend on the function's name.
    const std::string symbol = ("_Z" + llvm::Twine(name.size()) + name + mangled->types).str();
    llvm::FunctionCallee instead = call.getModule()->getOrInsertFunction(symbol, callee->getFunctionType());
    if (auto* const function = llvm::dyn_cast<llvm::Function>(instead.getCallee())) {
        function->setCallingConv(callee->getCallingConv());
        function->setAttributes(callee->getAttributes());
    }
    call.setCalledFunction(instead);
}

// Replaces a division by a call of _polder_divide_approx, because LLVM's back end offers no other way to get div.full.
void relax(llvm::BinaryOperator& quotient) {
    if (!quotient.getType()->getScalarType()->isFloatTy() || quotient.hasApproxFunc() ||
        llvm::cast<llvm::FPMathOperator>(quotient).getFPAccuracy() < quotient_ulp)
        return;
    llvm::IRBuilder<> at(&quotient);
    llvm::Module& module = *quotient.getModule();
    llvm::Type* const one = at.getFloatTy();
    const auto divide = module.getOrInsertFunction("_polder_divide_approx", one, one, one);
    llvm::Value* const left = quotient.getOperand(0);
    llvm::Value* const right = quotient.getOperand(1);
    llvm::Value* result = nullptr;
    if (auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(quotient.getType())) {
        result = llvm::PoisonValue::get(vector);
        for (unsigned i = 0; i < vector->getNumElements(); ++i)
            result = at.CreateInsertElement(
                result, at.CreateCall(divide, {at.CreateExtractElement(left, i), at.CreateExtractElement(right, i)}),
                i);
    } else {
        result = at.CreateCall(divide, {left, right});
    }
    quotient.replaceAllUsesWith(result);
    quotient.eraseFromParent();
}

bool is_approximate(const llvm::Instruction& instruction) {
    const auto* const operation = llvm::dyn_cast<llvm::FPMathOperator>(&instruction);
    return operation != nullptr && operation->hasApproxFunc();
}

}  // namespace

bool use_approximations(llvm::Module& module) {
    bool is_relaxed = false;
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
            is_relaxed |= is_approximate(instruction);
            if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction))
                redirect(*call);
            else if (instruction.getOpcode() == llvm::Instruction::FDiv)
                relax(llvm::cast<llvm::BinaryOperator>(instruction));
        }
    return is_relaxed;
}

void flush_denormals(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (!function.isDeclaration())
            flush_denormals(function);
}

void flush_denormals(llvm::Function& function) {
    function.addFnAttr(denormals_of_floats, "preserve-sign,preserve-sign");
}

bool flushes_denormals(const llvm::Function& function) { return function.hasFnAttribute(denormals_of_floats); }

}  // namespace polder::compiler
