// The extended instruction set OpenCL.std: calls of OpenCL C's built-in functions (OpenCL Extended Instruction Set
// Specification). The table has the function and its parameters; names are mangled from the types of the operands.
#include "body.h"

#include <algorithm>
#include <llvm/IR/Constants.h>
#include <spirv/unified1/OpenCL.std.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// `parameters`: a letter for each operand, the last also for all that follow. Numbers: s signed, u unsigned (the sign
// does not matter for floats), m a size_t. Pointers: p, or c to const. n: a literal that is part of the name; r: a rounding mode in
// the name. Without a text, all operands are s.
struct ExtendedFunction {
    uint32_t number;
    std::string_view name;
    std::string_view parameters = "s";
};

constexpr ExtendedFunction extended_functions[] = {
    {OpenCLLIB::Acos, "acos"},
    {OpenCLLIB::Acosh, "acosh"},
    {OpenCLLIB::Acospi, "acospi"},
    {OpenCLLIB::Asin, "asin"},
    {OpenCLLIB::Asinh, "asinh"},
    {OpenCLLIB::Asinpi, "asinpi"},
    {OpenCLLIB::Atan, "atan"},
    {OpenCLLIB::Atan2, "atan2"},
    {OpenCLLIB::Atanh, "atanh"},
    {OpenCLLIB::Atanpi, "atanpi"},
    {OpenCLLIB::Atan2pi, "atan2pi"},
    {OpenCLLIB::Cbrt, "cbrt"},
    {OpenCLLIB::Ceil, "ceil"},
    {OpenCLLIB::Copysign, "copysign"},
    {OpenCLLIB::Cos, "cos"},
    {OpenCLLIB::Cosh, "cosh"},
    {OpenCLLIB::Cospi, "cospi"},
    {OpenCLLIB::Erfc, "erfc"},
    {OpenCLLIB::Erf, "erf"},
    {OpenCLLIB::Exp, "exp"},
    {OpenCLLIB::Exp2, "exp2"},
    {OpenCLLIB::Exp10, "exp10"},
    {OpenCLLIB::Expm1, "expm1"},
    {OpenCLLIB::Fabs, "fabs"},
    {OpenCLLIB::Fdim, "fdim"},
    {OpenCLLIB::Floor, "floor"},
    {OpenCLLIB::Fma, "fma"},
    {OpenCLLIB::Fmax, "fmax"},
    {OpenCLLIB::Fmin, "fmin"},
    {OpenCLLIB::Fmod, "fmod"},
    {OpenCLLIB::Fract, "fract", "sp"},
    {OpenCLLIB::Frexp, "frexp", "sp"},
    {OpenCLLIB::Hypot, "hypot"},
    {OpenCLLIB::Ilogb, "ilogb"},
    {OpenCLLIB::Ldexp, "ldexp"},
    {OpenCLLIB::Lgamma, "lgamma"},
    {OpenCLLIB::Lgamma_r, "lgamma_r", "sp"},
    {OpenCLLIB::Log, "log"},
    {OpenCLLIB::Log2, "log2"},
    {OpenCLLIB::Log10, "log10"},
    {OpenCLLIB::Log1p, "log1p"},
    {OpenCLLIB::Logb, "logb"},
    {OpenCLLIB::Mad, "mad"},
    {OpenCLLIB::Maxmag, "maxmag"},
    {OpenCLLIB::Minmag, "minmag"},
    {OpenCLLIB::Modf, "modf", "sp"},
    {OpenCLLIB::Nan, "nan", "u"},
    {OpenCLLIB::Nextafter, "nextafter"},
    {OpenCLLIB::Pow, "pow"},
    {OpenCLLIB::Pown, "pown"},
    {OpenCLLIB::Powr, "powr"},
    {OpenCLLIB::Remainder, "remainder"},
    {OpenCLLIB::Remquo, "remquo", "ssp"},
    {OpenCLLIB::Rint, "rint"},
    {OpenCLLIB::Rootn, "rootn"},
    {OpenCLLIB::Round, "round"},
    {OpenCLLIB::Rsqrt, "rsqrt"},
    {OpenCLLIB::Sin, "sin"},
    {OpenCLLIB::Sincos, "sincos", "sp"},
    {OpenCLLIB::Sinh, "sinh"},
    {OpenCLLIB::Sinpi, "sinpi"},
    {OpenCLLIB::Sqrt, "sqrt"},
    {OpenCLLIB::Tan, "tan"},
    {OpenCLLIB::Tanh, "tanh"},
    {OpenCLLIB::Tanpi, "tanpi"},
    {OpenCLLIB::Tgamma, "tgamma"},
    {OpenCLLIB::Trunc, "trunc"},
    {OpenCLLIB::Half_cos, "half_cos"},
    {OpenCLLIB::Half_divide, "half_divide"},
    {OpenCLLIB::Half_exp, "half_exp"},
    {OpenCLLIB::Half_exp2, "half_exp2"},
    {OpenCLLIB::Half_exp10, "half_exp10"},
    {OpenCLLIB::Half_log, "half_log"},
    {OpenCLLIB::Half_log2, "half_log2"},
    {OpenCLLIB::Half_log10, "half_log10"},
    {OpenCLLIB::Half_powr, "half_powr"},
    {OpenCLLIB::Half_recip, "half_recip"},
    {OpenCLLIB::Half_rsqrt, "half_rsqrt"},
    {OpenCLLIB::Half_sin, "half_sin"},
    {OpenCLLIB::Half_sqrt, "half_sqrt"},
    {OpenCLLIB::Half_tan, "half_tan"},
    {OpenCLLIB::Native_cos, "native_cos"},
    {OpenCLLIB::Native_divide, "native_divide"},
    {OpenCLLIB::Native_exp, "native_exp"},
    {OpenCLLIB::Native_exp2, "native_exp2"},
    {OpenCLLIB::Native_exp10, "native_exp10"},
    {OpenCLLIB::Native_log, "native_log"},
    {OpenCLLIB::Native_log2, "native_log2"},
    {OpenCLLIB::Native_log10, "native_log10"},
    {OpenCLLIB::Native_powr, "native_powr"},
    {OpenCLLIB::Native_recip, "native_recip"},
    {OpenCLLIB::Native_rsqrt, "native_rsqrt"},
    {OpenCLLIB::Native_sin, "native_sin"},
    {OpenCLLIB::Native_sqrt, "native_sqrt"},
    {OpenCLLIB::Native_tan, "native_tan"},
    {OpenCLLIB::FClamp, "clamp"},
    {OpenCLLIB::Degrees, "degrees"},
    {OpenCLLIB::FMax_common, "max"},
    {OpenCLLIB::FMin_common, "min"},
    {OpenCLLIB::Mix, "mix"},
    {OpenCLLIB::Radians, "radians"},
    {OpenCLLIB::Step, "step"},
    {OpenCLLIB::Smoothstep, "smoothstep"},
    {OpenCLLIB::Sign, "sign"},
    {OpenCLLIB::Cross, "cross"},
    {OpenCLLIB::Distance, "distance"},
    {OpenCLLIB::Length, "length"},
    {OpenCLLIB::Normalize, "normalize"},
    {OpenCLLIB::Fast_distance, "fast_distance"},
    {OpenCLLIB::Fast_length, "fast_length"},
    {OpenCLLIB::Fast_normalize, "fast_normalize"},
    {OpenCLLIB::SAbs, "abs"},
    {OpenCLLIB::SAbs_diff, "abs_diff"},
    {OpenCLLIB::SAdd_sat, "add_sat"},
    {OpenCLLIB::UAdd_sat, "add_sat", "u"},
    {OpenCLLIB::SHadd, "hadd"},
    {OpenCLLIB::UHadd, "hadd", "u"},
    {OpenCLLIB::SRhadd, "rhadd"},
    {OpenCLLIB::URhadd, "rhadd", "u"},
    {OpenCLLIB::SClamp, "clamp"},
    {OpenCLLIB::UClamp, "clamp", "u"},
    {OpenCLLIB::Clz, "clz"},
    {OpenCLLIB::Ctz, "ctz"},
    {OpenCLLIB::SMad_hi, "mad_hi"},
    {OpenCLLIB::UMad_sat, "mad_sat", "u"},
    {OpenCLLIB::SMad_sat, "mad_sat"},
    {OpenCLLIB::SMax, "max"},
    {OpenCLLIB::UMax, "max", "u"},
    {OpenCLLIB::SMin, "min"},
    {OpenCLLIB::UMin, "min", "u"},
    {OpenCLLIB::SMul_hi, "mul_hi"},
    {OpenCLLIB::Rotate, "rotate"},
    {OpenCLLIB::SSub_sat, "sub_sat"},
    {OpenCLLIB::USub_sat, "sub_sat", "u"},
    {OpenCLLIB::U_Upsample, "upsample", "u"},
    {OpenCLLIB::S_Upsample, "upsample", "su"},
    {OpenCLLIB::Popcount, "popcount"},
    {OpenCLLIB::SMad24, "mad24"},
    {OpenCLLIB::UMad24, "mad24", "u"},
    {OpenCLLIB::SMul24, "mul24"},
    {OpenCLLIB::UMul24, "mul24", "u"},
    {OpenCLLIB::UAbs, "abs", "u"},
    {OpenCLLIB::UAbs_diff, "abs_diff", "u"},
    {OpenCLLIB::UMul_hi, "mul_hi", "u"},
    {OpenCLLIB::UMad_hi, "mad_hi", "u"},
    {OpenCLLIB::Bitselect, "bitselect"},
    {OpenCLLIB::Select, "select"},
    {OpenCLLIB::Vloadn, "vload", "mcn"},
    {OpenCLLIB::Vstoren, "vstore", "smp"},
    {OpenCLLIB::Vload_half, "vload_half", "mc"},
    {OpenCLLIB::Vload_halfn, "vload_half", "mcn"},
    {OpenCLLIB::Vstore_half, "vstore_half", "smp"},
    {OpenCLLIB::Vstore_half_r, "vstore_half", "smpr"},
    {OpenCLLIB::Vstore_halfn, "vstore_half", "smp"},
    {OpenCLLIB::Vstore_halfn_r, "vstore_half", "smpr"},
    {OpenCLLIB::Vloada_halfn, "vloada_half", "mcn"},
    {OpenCLLIB::Vstorea_halfn, "vstorea_half", "smp"},
    {OpenCLLIB::Vstorea_halfn_r, "vstorea_half", "smpr"},
    {OpenCLLIB::Shuffle, "shuffle", "su"},
    {OpenCLLIB::Shuffle2, "shuffle2", "ssu"},
    {OpenCLLIB::Prefetch, "prefetch", "cm"},
};

bool stores_vector(uint32_t number) {
    return number == OpenCLLIB::Vstoren || number == OpenCLLIB::Vstore_halfn || number == OpenCLLIB::Vstore_halfn_r ||
           number == OpenCLLIB::Vstorea_halfn || number == OpenCLLIB::Vstorea_halfn_r;
}

std::string rounding_suffix(uint32_t mode) {
    constexpr std::string_view suffixes[] = {"_rte", "_rtz", "_rtp", "_rtn"};
    return mode < std::size(suffixes) ? std::string{suffixes[mode]} : std::string{};
}

// The arguments of an extended instruction follow the set and the number.
constexpr size_t first_argument = 2;

char kind_of(const ExtendedFunction& function, size_t index) {
    return function.parameters[std::min(index, function.parameters.size() - 1)];
}

// The function's name with the number of elements and the rounding mode.
std::string full_name(Body& body, const Instruction& instruction, const ExtendedFunction& function) {
    std::string name{function.name};
    if (stores_vector(function.number))
        name += std::to_string(body.types().get(body.type_of(instruction, first_argument)).count);
    for (size_t i = first_argument; i < instruction.operands.size(); ++i) {
        if (kind_of(function, i - first_argument) == 'n')
            name += std::to_string(instruction.operand(i));
        if (kind_of(function, i - first_argument) == 'r')
            name += rounding_suffix(instruction.operand(i));
    }
    return name;
}

Effect effect_of(const ExtendedFunction& function) {
    if (function.parameters.find('p') != std::string_view::npos || function.number == OpenCLLIB::Prefetch)
        return Effect::any;
    return function.parameters.find('c') != std::string_view::npos ? Effect::reads : Effect::none;
}

bool is_pointer(Body& body, const Instruction& instruction, size_t index) {
    return body.types().get(body.type_of(instruction, index)).kind == spv::OpTypePointer;
}

void call_extended(Body& body, const Instruction& instruction, const ExtendedFunction& function) {
    MangledName name(full_name(body, instruction, function), body.types());
    llvm::SmallVector<Value*, 4> arguments;
    for (size_t i = first_argument; i < instruction.operands.size(); ++i) {
        const char kind = kind_of(function, i - first_argument);
        if (kind == 'n' || kind == 'r')
            continue;
        const uint32_t type = body.type_of(instruction, i);
        if ((kind == 'p' || kind == 'c') != is_pointer(body, instruction, i))
            return body.refuse(instruction, "argument " + std::to_string(i - first_argument) + " is of the wrong kind");
        if (kind == 'c')
            name.add_const_pointer(type);
        else if (kind == 'm')
            name.add_code("m");
        else
            name.add(type, kind == 'u' ? Sign::is_unsigned : Sign::is_signed);
        arguments.push_back(body.value(instruction, i));
    }
    llvm::CallInst* call = body.call(name.text(), body.result_type(instruction), arguments, effect_of(function));
    if (!call->getType()->isVoidTy())
        body.define(instruction, call);
}

void call_printf(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* format = body.value(instruction, first_argument);
    if (!format->getType()->isPointerTy() || !body.result_type(instruction)->isIntegerTy(32))
        return body.refuse(instruction, "the format is not a pointer, or the result is not a 32-bit integer");
    llvm::Type* constant_pointer = builder.getPtrTy(2);
    if (format->getType() != constant_pointer)
        format = builder.CreateAddrSpaceCast(format, constant_pointer);
    llvm::SmallVector<Value*, 8> arguments{format};
    for (size_t i = first_argument + 1; i < instruction.operands.size(); ++i)
        arguments.push_back(body.value(instruction, i));
    llvm::FunctionCallee callee = body.translation().module().getOrInsertFunction(
        "printf", llvm::FunctionType::get(builder.getInt32Ty(), {constant_pointer}, true));
    llvm::CallInst* call = builder.CreateCall(callee, arguments);
    if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee()); function != nullptr) {
        function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
        call->setCallingConv(llvm::CallingConv::SPIR_FUNC);
    }
    body.define(instruction, call);
}

}  // namespace

bool emit_extended(Body& body, const Instruction& instruction) {
    if (instruction.opcode != spv::OpExtInst)
        return false;
    const std::string set = body.annotations().instruction_set(instruction.operand(0));
    if (set != "OpenCL.std")
        return true;  // debug information, which computes nothing
    const uint32_t number = instruction.operand(1);
    if (number == OpenCLLIB::Printf) {
        call_printf(body, instruction);
        return true;
    }
    const auto* const found = std::find_if(std::begin(extended_functions), std::end(extended_functions),
                                           [&](const ExtendedFunction& each) { return each.number == number; });
    if (found == std::end(extended_functions))
        body.refuse(instruction, "OpenCL.std has no instruction " + std::to_string(number));
    else
        call_extended(body, instruction, *found);
    return true;
}

}  // namespace polder::compiler::spirv
